package store

import (
	"fmt"
	"slices"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/profiler/verdict"
)

// A gap is a stall when it is StallFactor times the request's median gap or more, and at least stallFloor, below which nobody
// can see it and timers are not to be trusted.
const (
	StallFactor = 3
	stallFloor  = int64(500 * time.Microsecond)
	// stallSamples is how many gaps a median must rest on.
	stallSamples = 8
)

// applyToken appends one or more tokens that share a stamp. The gap before them is divided among them.
func (s *state) applyToken(e *event.Event) {
	l := s.open(e.Req)
	if l == nil {
		return
	}
	v := &l.view
	k := int(min(max(e.N, 1), MaxTokens))
	at := max(e.At, v.Last, v.Enqueued)
	v.State = max(v.State, event.StateDispatched)
	gap := int64(-1)
	if v.First == 0 {
		gap = 0
		v.First = at
		s.firstToken(l)
	} else if v.Last != before { // or it is not known how long the gap was
		wait := min(l.paced, int64(at-v.Last))
		l.waits += wait
		gap = (int64(at-v.Last) - wait) / int64(k)
		s.recordGaps(l, at, gap, k)
	}
	l.paced = 0
	v.Last = at
	v.Generated += k
	if !s.aside(l) && (e.At != before || !l.old) { // those from before were not generated in this session
		s.counts.GeneratedTokens += uint64(k)
		s.gaps.tokens += uint64(k)
		s.rates.generated(at, k)
	}
	if len(e.Picks) > 0 {
		s.tell(l, at, e.Picks)
	}
	l.keep(Token{
		ID: e.ID, N: k, Nth: v.Generated - k, Index: int(max(e.Index, 0)), At: at, Gap: gap, Step: e.Step, Split: e.Split,
		Text: clip(e.Text, MaxLine), LogP: e.LogP, HasLP: e.HasLogP, Top: e.Top, Picks: e.Picks,
	})
}

// push appends to a bounded list, of which it drops the oldest quarter when it is full. What has been in the list is not written again, so that
// snapshots may share it.
func push[T any](list []T, v T, bound int) []T {
	if len(list) >= bound {
		list = append(make([]T, 0, bound), list[bound/4:]...)
	}
	return append(list, v)
}

// recordGaps counts k gaps of equal length that ended at the given time.
func (s *state) recordGaps(l *live, at event.Time, gap int64, k int) {
	v := &l.view
	if l.itl.Count() >= stallSamples {
		if median := l.itl.Median(); gap >= StallFactor*median && gap >= stallFloor {
			s.stall(l, at, gap, k)
		}
	}
	l.itl.Record(gap, uint32(k))
	if !s.aside(l) {
		s.latency.itl.Record(int64(at), gap, uint32(k))
		s.latency.spreads.record(at, gap, k)
		s.gaps.add(gap, k)
	}
	for range k {
		if len(v.Gaps) >= MaxGaps {
			v.FirstGap += MaxGaps / 4
		}
		v.Gaps = push(v.Gaps, gap, MaxGaps)
	}
}

// stall records k gaps of equal length that were far too long, with the cause that the evidence supports: all k passed before the stamp.
func (s *state) stall(l *live, at event.Time, gap int64, k int) {
	st := Stall{
		Request: l.view.ID, Index: l.view.Generated, At: at, Gap: time.Duration(gap),
		Cause: s.cause(l, at-event.Time(gap)*event.Time(k), at),
	}
	l.view.Stalls = push(l.view.Stalls, st, MaxStalls)
	if s.aside(l) {
		return
	}
	s.latency.stalls = push(s.latency.stalls, st, MaxStalls)
	s.latency.stallCount.Record(int64(at), gap, 1)
}

// cause names what was going on between two times: a prompt that was processed in the same batch, llmtop's own garbage collector, or
// threads that waited for a core.
func (s *state) cause(l *live, from, to event.Time) string {
	if s.rates.lastPrompt >= from && s.rates.lastPrompt <= to {
		for _, o := range slices.Backward(s.requests.list) {
			if o != l && o.prefilling(from, to) {
				return fmt.Sprintf("while #%d's prompt was processed", o.view.ID)
			}
		}
		return "while a prompt was processed"
	}
	if h := &s.host; h.Known && to-h.At < event.Time(2*h.Interval) {
		if wait, ran := h.Engine.RunWait, h.Engine.CPU; wait.OK() && ran.OK() && wait.V > starved*(wait.V+ran.V) {
			return verdict.WaitingForCore
		}
		if p := h.Self.GCPause; p.OK() && h.Engine.PID == h.Self.PID && p.V > float64(to-from)/2 {
			return "llmtop's garbage collection"
		}
	}
	return "unknown"
}

// prefilling reports whether the request's prompt may have been processed between two times: it had been dispatched, and neither had its
// first token come nor had it ended before.
func (l *live) prefilling(from, to event.Time) bool {
	v := &l.view
	return v.Dispatched != 0 && v.Dispatched <= to && (v.First == 0 || v.First >= from) && (v.Closed == 0 || v.Closed >= from)
}

// starved is the share of the time in which the engine's threads wanted to run that they may wait for a core; a late token is put down
// to more than that.
const starved = 0.2

// firstToken records what is known with the first token of a request.
func (s *state) firstToken(l *live) {
	s.measure(l)
	if s.aside(l) {
		return
	}
	v := &l.view
	if v.TTFT.OK() {
		into := &s.latency.ttft
		if v.Cold {
			into = &s.latency.cold
		}
		into.Record(int64(v.First), nanos(v.TTFT), 1)
	}
	if v.STIL.OK() {
		s.latency.stil.Record(int64(v.First), nanos(v.STIL), 1)
	}
}

// latency are the session's distributions.
type latency struct {
	*distributions
	stalls  []Stall
	series  []LatencyPoint
	spreads spreads
}

// distributions are those that are kept for every window.
type distributions struct {
	ttft, cold, itl, stil, e2el, tpot, stallCount metric.Windowed
	met                                           metric.Windowed // requests that met their targets
}

// all are they in some order that stays.
func (d *distributions) all() [8]*metric.Windowed {
	return [...]*metric.Windowed{&d.ttft, &d.cold, &d.itl, &d.stil, &d.e2el, &d.tpot, &d.stallCount, &d.met}
}

// recordRequest counts a request that has ended.
func (s *state) recordRequest(r *Request) {
	at := int64(r.Closed)
	if r.State == event.StateFinished {
		if r.E2EL.OK() {
			s.latency.e2el.Record(at, nanos(r.E2EL), 1)
		}
		if r.TPOT.OK() {
			s.latency.tpot.Record(at, nanos(r.TPOT), 1)
		}
		if r.met() {
			s.latency.met.Record(at, 1, 1)
		}
	}
	s.group(r)
}

// groupSum sums one group's requests.
type groupSum struct {
	requests, generated uint64
	latency             float64 // s
}

func (s *state) group(r *Request) {
	g := s.groups[r.Group]
	if g == nil {
		if len(s.groups) >= MaxGroups {
			s.counts.MoreGroups++
			return
		}
		g = new(groupSum)
		s.groups[r.Group] = g
	}
	g.requests++
	g.generated += uint64(r.Generated)
	if r.E2EL.OK() {
		g.latency += r.E2EL.V
	}
}
