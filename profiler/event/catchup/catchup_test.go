package catchup

import (
	"testing"

	"github.com/llmtop/llmtop/profiler/event"
)

// limits are those of a recording.
var limits = Limits{Detailed: 256, Begin: 128, UntilToken: true, Tokens: 128, LeastTokens: 1, Chunk: 512}

func TestStateIsBounded(t *testing.T) {
	s := State{Limits: limits}
	const more = 7
	for id := event.RequestID(1); id <= MaxLive+more; id++ {
		s.Apply(&event.Event{Kind: event.KindRequest, Req: id, State: event.StateQueued}, event.Time(id), 0)
		s.Apply(&event.Event{Kind: event.KindStage, Stage: event.StageLoadMap, At: event.Time(id)}, event.Time(id), 0)
	}
	const last = event.RequestID(MaxLive)
	for i := range 3 * limits.Begin {
		s.Apply(&event.Event{Kind: event.KindStage, Stage: event.StageRouter, Req: last}, event.Time(i), 0)
	}
	for i := range 3 * limits.Chunk * limits.Tokens {
		s.Apply(&event.Event{Kind: event.KindToken, Req: last, N: 1}, event.Time(i), 0)
	}
	if s.live != MaxLive || s.untracked != more || s.engines[0].live[1] == nil || len(s.engines[0].load) != maxLoad {
		t.Errorf("%d requests, %d untracked, %d stages of the load", s.live, s.untracked, len(s.engines[0].load))
	}
	if n, most := len(s.All()), MaxLive+maxLoad+least+1+limits.Tokens*limits.Detailed/MaxLive; n > most {
		t.Errorf("the state has %d events, more than %d", n, most)
	}
	for id := event.RequestID(2); id <= MaxLive+more; id++ {
		s.Apply(&event.Event{Kind: event.KindRequest, Req: id, State: event.StateFailed}, 0, 0)
	}
	if s.live != 1 || s.untracked != 0 {
		t.Errorf("%d requests after all but one ended, %d untracked", s.live, s.untracked)
	}
	for id := event.RequestID(2); id <= 3*MaxLive; id++ {
		s.Apply(&event.Event{Kind: event.KindRequest, Req: MaxLive + id, State: event.StateQueued}, 0, 0)
		s.Apply(&event.Event{Kind: event.KindRequest, Req: MaxLive + id, State: event.StateFailed}, 0, 0)
	}
	if s.live != 1 || len(s.order) > 2*MaxLive || s.engines[0].live[1] == nil {
		t.Errorf("%d requests, %d in order", s.live, len(s.order))
	}
}

// TestReasoningIsKeptApart checks that a late joiner gets the time of the first token of the answer.
func TestReasoningIsKeptApart(t *testing.T) {
	s := State{Limits: limits}
	s.Apply(&event.Event{Kind: event.KindRequest, Req: 1, State: event.StateQueued}, 0, 0)
	for i := range int32(40) {
		e := event.Event{Kind: event.KindToken, Req: 1, N: 1, At: event.Time(i + 1), Index: i}
		if i < 30 {
			e.Reasoning = 1
		}
		s.Apply(&e, e.At, 0)
	}
	var reasons, answers int32
	first := event.Time(0)
	for _, e := range s.All() {
		if e.Kind != event.KindToken {
			continue
		}
		if reasons, answers = reasons+e.Reasoning, answers+e.N-e.Reasoning; first == 0 && e.Reasoning < e.N {
			first = e.At
		}
	}
	if reasons != 30 || answers != 10 || first != 31 {
		t.Errorf("%d tokens of reasoning, %d of the answer from %d on", reasons, answers, first)
	}
}

// TestPastUsageIsNotKept checks that a late joiner gets no evidence of intervals that have passed.
func TestPastUsageIsNotKept(t *testing.T) {
	s := State{Limits: limits}
	s.Limits.Kinds[event.KindHost] = true
	s.Apply(&event.Event{Kind: event.KindHost, Data: new(event.Host)}, 1, 0)
	s.Apply(&event.Event{Kind: event.KindUsage, Data: &event.Usage{Interval: 5}}, 2, 0)
	if all := s.All(); len(all) != 1 || all[0].Kind != event.KindHost {
		t.Errorf("the state is %v, want the sample of the machine only", all)
	}
}

func TestSpreadAddsUp(t *testing.T) {
	for _, n := range []int{0, 1, 5, limits.Chunk, limits.Chunk + 1, 10_000} {
		for _, chunk := range []int{0, limits.Chunk} {
			sum, at := int64(0), event.Time(100)
			for _, e := range Spread(100, 1100, int64(n), 7, chunk, limits.Tokens) {
				if e.Index != int32(7+sum) || e.At <= at {
					t.Errorf("of %d: %d tokens at %d with index %d after %d", n, e.N, e.At, e.Index, sum)
				}
				sum, at = sum+int64(e.N), e.At
			}
			if sum != int64(n) || n > 0 && at != 1100 {
				t.Errorf("%d tokens up to %d, want %d", sum, at, n)
			}
		}
	}
}
