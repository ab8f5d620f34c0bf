package timeline

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/store"
)

// run is a request on its track, and its wait for it.
type run struct {
	request
	span
}

// writeRequests writes the requests: where they waited, and below it where they ran.
func (e *Engine) writeRequests(w *writer) {
	var waits, runs []run
	for _, r := range e.requests {
		end := r.Closed
		if end == 0 {
			end = max(e.end, r.Last, r.Enqueued)
		}
		start := r.Enqueued
		if queued := r.Dispatched == 0 && r.First == 0 && e.info.Caps.Has(event.CapQueue); !r.MissedStart && (r.Dispatched > start || queued) {
			start = r.Dispatched
			if queued {
				start = end
			}
			waits = append(waits, run{r, span{start: r.Enqueued, end: start}})
			if queued {
				continue
			}
		}
		runs = append(runs, run{r, span{start: min(start, end), end: end}})
	}
	for _, group := range []struct {
		name  string
		runs  []run
		write func(*writer, *run, int)
	}{{"waiting", waits, e.writeWait}, {"requests", runs, e.writeRun}} {
		slices.SortFunc(group.runs, func(a, b run) int {
			return cmp.Or(cmp.Compare(a.end, b.end), cmp.Compare(a.start, b.start), cmp.Compare(a.ID, b.ID))
		})
		spans := make([]span, len(group.runs))
		for i := range group.runs {
			spans[i] = group.runs[i].span
		}
		tracks := w.tracks(group.name, layOut(spans))
		for i := range group.runs {
			group.write(w, &group.runs[i], tracks[spans[i].track])
		}
	}
}

func (e *Engine) writeWait(w *writer, q *run, track int) {
	w.slice(track, "queue", fmt.Sprintf("queue #%d", q.ID), q.start, q.end, args{"request": q.ID, "state": q.Status()})
}

// writeRun writes a request, its stages before the first token, and its tokens.
func (e *Engine) writeRun(w *writer, q *run, track int) {
	r := q.Request
	a := args{"request": r.ID, "state": r.Status()}
	for name, text := range map[string]string{"reason": r.Reason, "label": r.Label, "group": r.Group, "model": r.Model} {
		if text != "" {
			a[name] = text
		}
	}
	for name, n := range map[string]int{"prompt_tokens": r.PromptTokens, "cached_tokens": r.CachedTokens, "generated_tokens": r.Generated} {
		if n > 0 {
			a[name] = n
		}
	}
	for name, reading := range map[string]event.Reading{"ttft_s": r.TTFT, "queue_s": r.STIL, "tpot_s": r.TPOT, "answer_s": r.Answer, "thinking_s": r.Thinking, "answer_tpot_s": r.AnswerTPOT, "reasoning_tokens": r.Reasoning, "e2el_s": r.E2EL, "paced_s": r.Paced} {
		a.set(name, reading)
	}
	if r.MissedStart {
		a["start"] = event.NotReported.String()
	}
	if x := r.Slow; x != nil {
		a["ttft_cause"], a["ttft_evidence"] = x.Words(), x.Evidence
	}
	w.slice(track, "request", fmt.Sprintf("request #%d", r.ID), q.start, q.end, a)
	if r.First == 0 {
		return
	}
	if first := min(r.First, q.end); !r.MissedStart && first > q.start {
		name := "prefill"
		if r.Dispatched == 0 {
			name = "time to first token" // the queue, if there is one, is not reported
		}
		p := args{}
		for _, part := range r.Parts {
			p.seconds(part.Stage.Component()+"_s", int64(part.Dur))
		}
		p.set("prefill_s", r.Prefill)
		p.set("prefill_tokens_per_s", r.PrefillRate)
		w.slice(track, "prefill", name, q.start, first, p)
		writeStages(w, track, r.Spans, q.start, first)
	}
	e.writeTokens(w, q, track)
}

// writeStages writes the stages of a request between two times. Engines that report durations only, and no times, have
// stages that overlap: the arguments of the slice around them have those.
func writeStages(w *writer, track int, spans []store.StageSpan, from, to event.Time) {
	spans = slices.Clone(spans)
	slices.SortStableFunc(spans, func(a, b store.StageSpan) int { return cmp.Compare(a.Start, b.Start) })
	for _, s := range spans {
		if s.Layer >= 0 || s.Start < from || s.End > to || s.End <= s.Start || s.Stage == event.StageQueue || s.Stage == event.StagePacedByOthers {
			continue
		}
		a := args{}
		a.seconds("time_s", int64(s.End-s.Start))
		if s.Tokens > 0 {
			a["tokens"] = s.Tokens
		}
		w.slice(track, "stage", s.Label(), s.Start, s.End, a)
		from = s.End
	}
}

// writeTokens writes the decoding of a request: a slice for the time before each token. Stalls have their cause.
func (e *Engine) writeTokens(w *writer, q *run, track int) {
	r, stalls := q.Request, map[event.Time]*store.Stall{}
	for i := range r.Stalls {
		stalls[r.Stalls[i].At] = &r.Stalls[i]
	}
	last := min(r.Last, q.end)
	if r.First < q.start || last <= r.First {
		return
	}
	a := args{"tokens": r.Generated}
	a.set("decode_s", r.Decode)
	a.set("decode_tokens_per_s", r.DecodeRate)
	w.slice(track, "decode", "decode", r.First, last, a)
	writeStages(w, track, slices.DeleteFunc(slices.Clone(r.Spans), func(s store.StageSpan) bool { return s.Stage != event.StageThinking }), r.First, last)
	from := r.First
	for i := 0; i < len(q.tokens); i++ {
		t := &q.tokens[i]
		if gap := event.Time(t.Gap*int64(t.N) + t.Paced); i == 0 && t.Nth > 0 && t.Gap >= 0 {
			from = max(from, t.At-gap) // those before are no longer kept
		}
		if t.At <= from || t.At > last {
			continue
		}
		if t.Paced > 0 {
			until := min(from+event.Time(t.Paced), t.At)
			w.slice(track, "pace", "paced", from, until, nil)
			from = until
		}
		name, category, a := "token", "token", args{"index": t.Index}
		if t.Index < 0 {
			delete(a, "index")
		}
		n := t.N
		for ; i+1 < len(q.tokens) && q.tokens[i+1].At == t.At; i++ {
			n += q.tokens[i+1].N
		}
		if n > 1 {
			name, a["tokens"] = "tokens", n
		}
		if t.Step > 0 {
			a["pass"] = t.Step
		}
		if len(t.Picks) > 0 {
			a["experts"] = t.Picks
		}
		if s := stalls[t.At]; s != nil {
			name, category = "stall: "+s.Words(), "stall"
			a["cause"], a["evidence"] = s.Cause.String(), s.Evidence
			a.seconds("lost_s", s.Lost)
			a.seconds("explained_s", s.Explains)
		}
		w.slice(track, category, name, from, t.At, a)
		from = t.At
	}
}
