package recording

import (
	"slices"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/event/catchup"
)

const (
	tokenStep = 512 // most tokens that one event of a state represents
	maxSpread = 128 // most events that represent the tokens of a request; tokens beyond them are counted when the request ends
)

// stateLimits limit the state at the start of a segment, which a reader needs that starts in the middle of a recording.
// The events of all requests before their first tokens take 30 MB at most.
var stateLimits = catchup.Limits{
	Kinds: [event.NumKinds]bool{
		event.KindEngine: true, event.KindModel: true, event.KindExperts: true, event.KindKV: true, event.KindHost: true,
		event.KindCounters: true, event.KindOps: true, event.KindDrops: true, event.KindAggregates: true,
	},
	Detailed: 256, Begin: 128, UntilToken: true, Tokens: maxSpread, LeastTokens: 1, Chunk: tokenStep,
}

// stateEvents returns the state in the order of arrival.
func (r *Recorder) stateEvents() []catchup.Entry {
	all := r.state.All()
	slices.SortStableFunc(all, func(a, b catchup.Entry) int { return int(min(max(a.Arrived-b.Arrived, -1), 1)) })
	return all
}
