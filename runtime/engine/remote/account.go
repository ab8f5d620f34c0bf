package remote

import (
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime/source/streamed"
)

// account sums up the tokens of a request: the server's counts, or else the counted ones.
func (q *request) account() {
	o, r := &q.outcome, &q.last
	o.Generated = q.reported
	if q.reported == 0 {
		o.Generated = q.counter.Total()
	}
	counts := streamed.Usage{Generated: q.reported}
	if r.Usage != nil {
		counts.Reasoning = r.Usage.streamed().Reasoning
	}
	later, ok := q.counter.Later(counts)
	o.Later, o.AnyLater = later, !ok
	o.Prompt = len(q.want.IDs)
	o.AnyCached = q.client.opt.Cached || !q.client.Fresh()
	if u := r.Usage; u != nil {
		if u.Prompt > 0 {
			o.Prompt = count(u.Prompt)
		}
		if u.Details != nil && u.Details.Cached != nil {
			o.Cached, o.AnyCached = count(*u.Details.Cached), false
		}
	}
	if n := r.ollamaTimes.Prompt; n > 0 {
		o.Prompt = count(n)
	}
	o.Cold = time.Duration(r.Load) >= event.MinLoad
	if t := r.Timings; t != nil {
		o.Cached, o.AnyCached = count(t.Cached), false
		o.Prompt = max(o.Prompt, count(o.Cached+count(t.Prompt)))
	}
	o.Cached, o.AnyCached = min(o.Cached, o.Prompt), o.AnyCached && o.Prompt > 0
}

// stages emits the server's durations before the first token, as stages that end at the first token: the server does
// not report when they really ended.
func (q *request) stages() {
	if q.first == 0 {
		return
	}
	r := &q.last
	if m := r.Metrics; m != nil {
		q.stage(event.StageQueue, m.Queue*ms, 0)
		q.stage(event.StagePrompt, m.First*ms, q.computed())
	}
	if t := r.Timings; t != nil {
		q.stage(event.StagePrompt, t.PromptMS*ms, count(t.Prompt))
	}
	if q.outcome.Cold {
		q.stage(event.StageLoad, float64(r.Load), 0)
	}
	q.stage(event.StagePrompt, float64(r.PromptNS), q.computed())
}

// computed returns the number of prompt tokens that did not come from a cache, 0 if it is unknown.
func (q *request) computed() int {
	if q.outcome.AnyCached {
		return 0
	}
	return q.outcome.Prompt - q.outcome.Cached
}

const ms = float64(time.Millisecond)

// stage emits a stage of the given duration in ns.
func (q *request) stage(s event.Stage, ns float64, tokens int) {
	if ns >= 1 && ns <= float64(event.MaxRequestTime) {
		q.emit(event.Event{Kind: event.KindStage, At: q.first, Stage: s, Dur: int64(ns), N: int32(tokens)})
	}
}
