package store

import (
	"iter"
	"slices"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
)

// ring holds requests in order of arrival: up to MaxOpen open ones, which no newer request displaces, and the last
// MaxRequests that ended.
type ring struct {
	first, last *liveRequest // oldest and newest of the list linked by liveRequest.newer and older
	byID        map[event.RequestID]*liveRequest
	ended       []*liveRequest          // the ended ones in byID, first to end first
	states      [2][event.NumStates]int // open requests by probe (0 no, 1 yes) and state
	halvings    int                     // how often the bounds of open requests are halved, see bound
	viewedWith  settings                // settings that the views were computed with
	earlier     []*Request              // requests that have left the list; shared with snapshots, so only appended to
	keep, kept  int                     // bytes: Options.Keep, and used of them
	evicted     evictedIDs
	overflow    overflow
}

// openCount returns the number of listed requests that have not ended.
func (r *ring) openCount() int { return len(r.byID) - len(r.ended) }

// count returns the number of open requests in a state, including probes and overflow requests.
func (r *ring) count(state event.State) int {
	return r.states[0][state] + r.states[1][state] + r.overflow.count(state)
}

// newestFirst yields the listed requests. The caller may remove the yielded one.
func (r *ring) newestFirst() iter.Seq[*liveRequest] {
	return func(yield func(*liveRequest) bool) {
		for l := r.last; l != nil; {
			older := l.older
			if !yield(l) {
				return
			}
			l = older
		}
	}
}

// add appends a new request; nil if MaxOpen are open already.
func (r *ring) add(id event.RequestID) *liveRequest {
	if r.openCount() >= MaxOpen {
		return nil
	}
	l := &liveRequest{view: Request{ID: id, Slot: -1}, itl: new(metric.Histogram)}
	r.append(l)
	if r.openCount() > MaxRequests<<r.halvings {
		r.halvings++
		for o := range r.newestFirst() {
			if o.done == nil {
				o.fitBounds(r)
			}
		}
	}
	return l
}

// append adds a request at the newest end of the list.
func (r *ring) append(l *liveRequest) {
	if r.byID == nil {
		r.byID = make(map[event.RequestID]*liveRequest, MaxRequests)
	}
	r.byID[l.view.ID] = l
	if l.older = r.last; l.older != nil {
		l.older.newer = l
	} else {
		r.first = l
	}
	r.last = l
}

// setState moves an open request to a state and updates the counts.
func (r *ring) setState(l *liveRequest, to event.State) {
	counts := &r.states[0]
	if l.view.Probe {
		counts = &r.states[1]
	}
	if from := l.view.State; from != event.StateNone {
		counts[from]--
	}
	if !to.Final() {
		counts[to]++
	}
	l.view.State = to
}

// markEnded moves a request to the ended ones. It reports whether the oldest ended request was evicted for it.
func (r *ring) markEnded(l *liveRequest) (evicted bool) {
	r.ended = append(r.ended, l)
	if evicted = len(r.ended) > MaxRequests; evicted {
		r.retire(r.ended[0])
		r.ended[0] = nil
		r.ended = r.ended[1:]
	}
	// Hysteresis: a count that fluctuates does not change the bounds.
	if r.halvings > 0 && r.openCount() < MaxRequests<<r.halvings/4 {
		r.halvings--
	}
	return evicted
}

// retire removes an ended request from the list and keeps a slim copy in past.
func (r *ring) retire(ended *liveRequest) {
	delete(r.byID, ended.view.ID)
	if ended.older != nil {
		ended.older.newer = ended.newer
	} else {
		r.first = ended.newer
	}
	if ended.newer != nil {
		ended.newer.older = ended.older
	} else {
		r.last = ended.older
	}
	r.evicted.add(ended.view.ID)
	switch {
	case r.keep > 0 && len(r.earlier) >= MaxKept:
		return
	case r.keep == 0 && len(r.earlier) >= MaxEarlier:
		r.earlier = append(make([]*Request, 0, MaxEarlier), r.earlier[MaxEarlier/4:]...)
	}
	past := *ended.done
	past.Slim, past.Gaps, past.Late, past.Text, past.Prompt = true, nil, nil, "", ""
	if r.keep == 0 || ended.bounded {
		past.Layers, past.Tokens = nil, nil
	}
	r.earlier = append(r.earlier, &past)
}

// bound returns how much of a list or text of full size one open request keeps. It halves with each doubling of the
// open requests above MaxRequests, so that their total memory stays that of MaxRequests.
func (r *ring) bound(full int) int { return full >> r.halvings }

// fitBounds truncates a request to the current bounds.
func (l *liveRequest) fitBounds(r *ring) {
	v := &l.view
	tokens := r.bound(MaxTokens)
	if r.keep > 0 {
		tokens = max(tokens, len(l.tokens)) // appendToken shortens the list when there is no room
	}
	l.shorten(tokens, r.bound(MaxGaps), r.bound(MaxText))
	if r.keep == 0 && l.detailBytes > r.bound(MaxDetail) {
		l.trimDetail(r.bound(MaxDetail))
	}
	if limit := r.bound(MaxText); len(v.Prompt) > limit {
		v.Prompt, v.Omitted.Prompt = clip(v.Prompt, limit), true
	}
	if cut := len(v.Spans) - r.bound(MaxSpans); cut > 0 {
		v.Spans, v.Omitted.Spans = slices.Clone(v.Spans[:len(v.Spans)-cut]), v.Omitted.Spans+cut
	}
	v.keepStalls(v.Stalls, r.bound(MaxStalls))
	if len(v.Layers) > r.bound(MaxLayers) {
		v.Layers, v.Omitted.Layers = nil, true
	}
	l.lastView = nil // it shares the longer lists
}

// shorten keeps the last tokens, gaps and bytes of text.
func (l *liveRequest) shorten(tokens, gaps, text int) {
	v := &l.view
	if cut := len(v.Gaps) - gaps; cut > 0 {
		v.Gaps, v.FirstGap = slices.Clone(v.Gaps[cut:]), v.FirstGap+cut
	}
	if cut := max(len(l.tokens)-tokens, 0); cap(l.tokens) > tokens {
		for i := range l.tokens[:cut] {
			l.detailBytes -= l.tokens[i].detailSize()
		}
		l.tokens = slices.Clone(l.tokens[cut:])
	}
	if cut := len(l.text) - text; cut > 0 {
		l.text, v.TextCut = slices.Clone(l.text[cut:]), true
	}
}
