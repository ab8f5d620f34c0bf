package store

import (
	"cmp"
	"fmt"
	"iter"
	"slices"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/verdict"
)

// maxWaits bounds the parts of a wait. The shorter ones of more join the unknown.
const maxWaits = 8

// maxNear bounds the requests that had a slot during a wait. The wait of one with more is not divided.
const maxNear = 128

// Wait is a part of the time before the first token of a request in which others held it up: verdict.Queue while they
// held all slots, verdict.PromptOfOther while the prompt of a request was processed, verdict.ModelLoad, or
// verdict.Unknown for the rest of the queue. Pacing is not apart: Parts has its sum, of the time in which slots were held.
type Wait struct {
	Cause    verdict.Cause
	By       event.RequestID // 0: several, or unknown
	From, To event.Time      // first and last moment
	NS       int64           // between them
}

// WaitsOf divides what a request has waited so far. Parts do not overlap.
func (s *Snapshot) WaitsOf(r *Request) []Wait {
	if r.First != 0 || r.State.Final() {
		return r.Waits
	}
	slots := 0
	if s.Engine.Caps.Has(event.CapQueue) {
		slots = s.Engine.Slots
	}
	return waits(r, slices.Values(s.Requests), s.Load, slots, s.Now)
}

// settleWaits divides what a request waited before its first token, or its end.
func (s *state) settleWaits(r *Request, at event.Time) {
	if !s.engine.Caps.Has(event.CapQueue) {
		return
	}
	r.Waits = waits(r, func(yield func(*Request) bool) {
		for l := range s.requests.newestFirst() {
			v := &l.view
			if l.done != nil {
				v = l.done
			}
			if !yield(v) {
				return
			}
		}
	}, s.load, s.engine.Slots, at)
}

// waits divides the wait of a request until its first token, or until now. With slots 0, the number of slots is unknown.
func waits(r *Request, others iter.Seq[*Request], load []StageSpan, slots int, now event.Time) []Wait {
	if r.MissedStart || r.Retrospective || r.Polled {
		return nil
	}
	queued := now
	if r.Dispatched != 0 {
		queued = r.Dispatched
	}
	var near []*Request // that had a slot in the meantime
	edges := []event.Time{r.Enqueued, queued, now}
	edge := func(from, to event.Time) { edges = append(edges, from, cmp.Or(to, now)) }
	for o := range others {
		if o == r || o.ID == r.ID || o.Dispatched == 0 || o.Dispatched >= now || o.Closed != 0 && o.Closed <= r.Enqueued {
			continue
		}
		near = append(near, o)
		edge(o.Dispatched, o.Closed)
		for _, p := range o.Spans {
			if p.Stage == event.StagePrompt {
				edge(p.Start, p.End)
			}
		}
	}
	for _, p := range load {
		edge(p.Start, p.End)
	}
	for _, p := range r.Spans {
		edge(p.Start, p.End)
	}
	if len(near) > maxNear {
		return nil
	}
	slices.Sort(edges)
	edges = slices.Compact(edges)
	var out []Wait
	for i, from := range edges[:len(edges)-1] {
		to := edges[i+1]
		if from < r.Enqueued || to > now {
			continue
		}
		w, held := Wait{From: from, To: to, NS: int64(to - from)}, true
		if covers(load, event.StageNone, from) {
			w.Cause = verdict.ModelLoad
		} else if from < queued {
			w.Cause, w.By = slotHolder(near, slots, from)
		} else {
			w.Cause, w.By = promptAt(near, from)
			held = w.Cause != verdict.Unknown && !covers(r.Spans, event.StageNone, from)
		}
		if held {
			out = addWait(out, w)
		}
	}
	return longest(out)
}

// covers reports whether a span of a stage, StageNone for any, covers a moment.
func covers(spans []StageSpan, stage event.Stage, at event.Time) bool {
	return slices.ContainsFunc(spans, func(p StageSpan) bool {
		counts := p.Stage == stage || stage == event.StageNone && p.Stage != event.StageQueue && p.Stage != event.StagePacedByOthers
		return counts && p.Start <= at && at < p.End
	})
}

// slotHolder returns why a request had no slot at a moment: of the requests that held all of them, the next to leave.
func slotHolder(near []*Request, slots int, at event.Time) (verdict.Cause, event.RequestID) {
	held, open := 0, 0
	var next *Request
	for _, o := range near {
		if o.Dispatched > at || o.Closed != 0 && o.Closed <= at {
			continue
		}
		held++
		switch {
		case o.Closed == 0:
			open++
			if next == nil {
				next = o
			}
		case next == nil || next.Closed == 0 || o.Closed < next.Closed:
			next = o
		}
	}
	switch {
	case slots == 0 || held < slots || next == nil:
		return verdict.Unknown, 0
	case next.Closed == 0 && open > 1: // which one leaves first is not known yet
		return verdict.Queue, 0
	case covers(next.Spans, event.StagePrompt, at):
		return verdict.PromptOfOther, next.ID
	}
	return verdict.Queue, next.ID
}

// promptAt returns the request whose prompt was processed at a moment.
func promptAt(near []*Request, at event.Time) (verdict.Cause, event.RequestID) {
	for _, o := range near {
		if covers(o.Spans, event.StagePrompt, at) {
			return verdict.PromptOfOther, o.ID
		}
	}
	return verdict.Unknown, 0
}

// addWait adds a part to those of the same cause.
func addWait(out []Wait, w Wait) []Wait {
	for i := range out {
		if p := &out[i]; p.Cause == w.Cause && p.By == w.By {
			p.To, p.NS = w.To, p.NS+w.NS
			return out
		}
	}
	return append(out, w)
}

// longest keeps maxWaits parts, the longest first.
func longest(ws []Wait) []Wait {
	slices.SortStableFunc(ws, func(a, b Wait) int { return cmp.Compare(b.NS, a.NS) })
	if len(ws) <= maxWaits {
		return ws
	}
	out := slices.Clone(ws[:maxWaits-1])
	for _, w := range ws[maxWaits-1:] {
		w.Cause, w.By = verdict.Unknown, 0
		out = addWait(out, w)
	}
	return out
}

// Words describes a part: "slot of #12", "#14's prompt".
func (w *Wait) Words() string {
	switch {
	case w.Cause == verdict.Queue && w.By != 0:
		return fmt.Sprintf("slot of #%d", w.By)
	case w.Cause == verdict.Queue:
		return "all slots busy"
	case w.Cause == verdict.PromptOfOther:
		return fmt.Sprintf("#%d's prompt", w.By)
	case w.Cause == verdict.ModelLoad:
		return "model load"
	}
	return "unexplained"
}
