package store

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/verdict"
)

// maxWaits bounds the parts of a wait, before the shorter ones of more are joined by cause.
const maxWaits = 8

// maxNear bounds the requests that had a slot during a wait. The wait of one with more is not divided.
const maxNear = 128

// together is the tolerance for one request that begins when another ends: their times may come from two clocks.
const together = 20 * event.Time(time.Millisecond)

// Wait is a part of the time before the first token of a request in which others held it up: verdict.Queue while they
// held all slots, verdict.PromptOfOther while the prompt of a request was processed, verdict.ModelLoad, or
// verdict.Unknown for the rest of the queue. Pacing is not apart: Parts has its sum, of the time in which slots were held.
type Wait struct {
	Cause    verdict.Cause
	By       event.RequestID // 0: several, or unknown
	From, To event.Time      // first and last moment
	NS       int64           // between them
}

// Began returns when the engine began with the request: when it was dispatched, or in an engine that reports no queue,
// when its prompt was processed or a slot was handed over. 0: not yet, or unknown.
func (r *Request) Began(caps event.Caps) event.Time {
	if r.Dispatched != 0 || caps.Has(event.CapQueue) {
		return r.Dispatched
	}
	if r.idle {
		return r.Enqueued
	}
	for _, p := range r.Spans {
		if p.Stage == event.StagePrompt {
			return p.Start
		}
	}
	return r.handed
}

// QueueInferred reports whether the queue time is known by what held the request up only, not by a report of the engine.
func (r *Request) QueueInferred() bool {
	return r.STIL.OK() && r.Dispatched == 0 && !slices.ContainsFunc(r.Spans, func(p StageSpan) bool { return p.Stage == event.StageQueue })
}

// waitedForSlot returns how long a request waited for the slots that others held, in ns, by its Waits.
func (r *Request) waitedForSlot(caps event.Caps) (ns int64) {
	if r.handed != 0 {
		return int64(r.handed - r.Enqueued)
	}
	began := r.Began(caps)
	for i := range r.Waits {
		if w := &r.Waits[i]; w.Cause == verdict.Queue || w.Cause == verdict.PromptOfOther && w.To <= began {
			ns += w.NS
		}
	}
	return ns
}

// holder is a request that had a slot since a moment.
type holder struct {
	*Request
	since event.Time
}

// holds reports whether the request has its slot at a moment.
func (h *holder) holds(at event.Time) bool { return h.since <= at && (h.Closed == 0 || at < h.Closed) }

// waits divides the wait of a request until its first token, or until now. An engine whose slots are unknown, or that
// reports no queue, is taken to have as many slots as others held during the wait, if the request began when one of them
// ended. If it is unknown when the request began, only the time counts in which others held all slots that the engine
// reports.
func waits(r *Request, others iter.Seq[*Request], load []StageSpan, e *event.EngineInfo, now event.Time) []Wait {
	caps, slots := e.Caps, e.Slots
	reported := caps.Has(event.CapQueue)
	anyBegin := !reported && r.Began(caps) == 0
	if r.MissedStart || r.Retrospective || r.Polled || anyBegin && (slots == 0 || !reportsItself(e)) {
		return nil
	}
	queued := cmp.Or(r.Began(caps), now)
	var near []holder // in the meantime
	edges := []event.Time{r.Enqueued, queued, now}
	edge := func(from, to event.Time) { edges = append(edges, from, cmp.Or(to, now)) }
	for o := range others {
		began := o.Began(caps)
		if !reported {
			began = cmp.Or(began, o.First)
		}
		if o == r || o.ID == r.ID || began == 0 || began >= now || o.Closed != 0 && o.Closed <= r.Enqueued {
			continue
		}
		if near = append(near, holder{o, began}); len(near) > maxNear {
			return nil
		}
		edge(began, o.Closed)
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
	slices.Sort(edges)
	edges = slices.Compact(edges)
	if slots == 0 || !reported && !anyBegin {
		if slots = cmp.Or(heldUntil(near, edges, r.Enqueued, queued), slots); slots == 0 && r.handed != 0 {
			slots = 1
		}
	}
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
			held = w.Cause != verdict.Unknown || !anyBegin
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

// heldUntil returns how many requests held slots at once during a wait, 0 if none of them ended when it did. The last
// moments of the wait are left out, in which a slot changes hands.
func heldUntil(near []holder, edges []event.Time, from, to event.Time) (slots int) {
	freed := func(h holder) bool {
		return h.since < to-together && h.Closed != 0 && max(h.Closed-to, to-h.Closed) <= together
	}
	if !slices.ContainsFunc(near, freed) {
		return 0
	}
	for _, at := range edges {
		if at < from || at >= to-together {
			continue
		}
		held := 0
		for i := range near {
			if near[i].holds(at) {
				held++
			}
		}
		slots = max(slots, held)
	}
	return slots
}

// covers reports whether a span of a stage, StageNone for any, covers a moment.
func covers(spans []StageSpan, stage event.Stage, at event.Time) bool {
	return slices.ContainsFunc(spans, func(p StageSpan) bool {
		counts := p.Stage == stage || stage == event.StageNone && p.Stage != event.StageQueue && p.Stage != event.StagePacedByOthers
		return counts && p.Start <= at && at < p.End
	})
}

// slotHolder returns why a request had no slot at a moment: of the requests that held all of them, the next to leave.
func slotHolder(near []holder, slots int, at event.Time) (verdict.Cause, event.RequestID) {
	held, open := 0, 0
	var next *Request
	for i := range near {
		o := &near[i]
		if !o.holds(at) {
			continue
		}
		held++
		switch {
		case o.Closed == 0:
			open++
			if next == nil {
				next = o.Request
			}
		case next == nil || next.Closed == 0 || o.Closed < next.Closed:
			next = o.Request
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
func promptAt(near []holder, at event.Time) (verdict.Cause, event.RequestID) {
	for i := range near {
		if covers(near[i].Spans, event.StagePrompt, at) {
			return verdict.PromptOfOther, near[i].ID
		}
	}
	return verdict.Unknown, 0
}

// addWait adds a part to those of the same cause.
func addWait(out []Wait, w Wait) []Wait {
	for i := range out {
		if p := &out[i]; p.Cause == w.Cause && p.By == w.By {
			p.From, p.To, p.NS = min(p.From, w.From), max(p.To, w.To), p.NS+w.NS
			return out
		}
	}
	return append(out, w)
}

// longest returns the parts, the longest first. Beyond maxWaits, those of a cause become one that names no request.
func longest(ws []Wait) []Wait {
	byLength := func(a, b Wait) int { return cmp.Compare(b.NS, a.NS) }
	slices.SortStableFunc(ws, byLength)
	if len(ws) <= maxWaits {
		return ws
	}
	out := slices.Clone(ws[:maxWaits])
	for _, w := range ws[maxWaits:] {
		w.By = 0
		out = addWait(out, w)
	}
	slices.SortStableFunc(out, byLength)
	return out
}

// Words describes a part: "slot of #12", "#14's prompt".
func (w *Wait) Words() string {
	switch {
	case w.Cause == verdict.Queue && w.By != 0:
		return fmt.Sprintf("slot of #%d", w.By)
	case w.Cause == verdict.Queue:
		return "all slots busy"
	case w.Cause == verdict.PromptOfOther && w.By == 0:
		return "other prompts"
	case w.Cause == verdict.PromptOfOther:
		return fmt.Sprintf("#%d's prompt", w.By)
	case w.Cause == verdict.ModelLoad:
		return "model load"
	}
	return "unexplained"
}
