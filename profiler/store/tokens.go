package store

import (
	"fmt"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/profiler/verdict"
)

// A gap is a stall if it is at least StallFactor times the request's median gap and at least minStall, below which
// users do not notice and timers are imprecise.
const (
	StallFactor = 3
	minStall    = int64(500 * time.Microsecond) // ns
	// stallSamples is how many gaps the median needs.
	stallSamples = 8
)

// applyToken appends one token, or several that share a stamp: they divide the gap before them equally.
func (s *state) applyToken(e *event.Event) {
	k := int(min(max(e.N, 1), MaxTokens))
	l := s.openRequest(e.Req)
	if l == nil {
		if s.requests.byID[e.Req] == nil {
			s.countOverflowTokens(e, k)
		}
		return
	}
	v := &l.view
	at := max(e.At, v.Last, v.Enqueued)
	s.requests.setState(l, max(v.State, event.StateDispatched))
	gap := int64(-1)
	if v.First == 0 {
		gap = 0
		v.First = at
		s.recordFirstToken(l)
	} else if v.Last != beforeClock { // otherwise the length of the gap is unknown
		wait := min(l.pacedSinceToken, int64(at-v.Last))
		l.pacedTotal += wait
		gap = (int64(at-v.Last) - wait) / int64(k)
		s.recordGaps(l, at, gap, k)
	}
	l.pacedSinceToken = 0
	v.Last = at
	v.Generated += k
	if !s.excluded(l) && (e.At != beforeClock || !l.predatesClock) { // skip tokens generated before this session
		s.counts.GeneratedTokens += uint64(k)
		s.gapsSinceSample.tokens += uint64(k)
		s.rates.addGenerated(at, k)
	}
	if len(e.Picks) > 0 {
		s.countTokenPicks(l, at, e.Picks)
	}
	s.requests.appendToken(l, Token{
		ID: e.ID, N: k, Nth: v.Generated - k, Index: int(max(e.Index, 0)), At: at, Gap: gap, Step: e.Step, Split: e.Split,
		Text: clip(e.Text, MaxLine), LogP: e.LogP, HasLP: e.HasLogP, Top: e.Top, Picks: e.Picks,
	})
}

// push appends to a bounded list. When it is full, push drops the oldest quarter. It never writes to entries that
// exist, so that snapshots may share them.
func push[T any](list []T, v T, bound int) []T {
	if cut := evictCount(len(list), bound); cut > 0 {
		list = append(make([]T, 0, bound), list[cut:]...)
	}
	return append(list, v)
}

// evictCount returns how many of n values push drops to make room for one more.
func evictCount(n, bound int) int {
	if n < bound {
		return 0
	}
	return n - bound + max(bound/4, 1)
}

// recordGaps records k gaps of equal length that ended at the given time.
func (s *state) recordGaps(l *liveRequest, at event.Time, gap int64, k int) {
	v := &l.view
	if l.itl.Count() >= stallSamples {
		if median := l.itl.Median(); gap >= StallFactor*median && gap >= minStall {
			s.recordStall(l, at, gap, k)
		}
	}
	l.itl.Record(gap, uint32(k))
	if !s.excluded(l) {
		s.latency.of[ITL].Record(int64(at), gap, uint32(k))
		s.latency.spreads.record(at, gap, k)
		s.gapsSinceSample.add(gap, k)
	}
	limit := s.requests.bound(MaxGaps)
	for range k {
		v.FirstGap += evictCount(len(v.Gaps), limit)
		v.Gaps = push(v.Gaps, gap, limit)
	}
}

// recordStall records one stall for k gaps of equal length that ended at the given time.
func (s *state) recordStall(l *liveRequest, at event.Time, gap int64, k int) {
	st := Stall{
		Request: l.view.ID, Index: l.view.Generated, At: at, Gap: time.Duration(gap),
		Cause: s.stallCause(l, at-event.Time(gap)*event.Time(k), at),
	}
	limit := s.requests.bound(MaxStalls)
	l.view.Omitted.Stalls += evictCount(len(l.view.Stalls), limit)
	l.view.Stalls = push(l.view.Stalls, st, limit)
	if s.excluded(l) {
		return
	}
	s.latency.stalls = push(s.latency.stalls, st, MaxStalls)
	s.latency.stallCount.Record(int64(at), gap, 1)
}

// stallCause returns the likely cause of a stall between two times: a prompt processed in the same batch, llmtop's own
// garbage collection, or threads waiting for a core.
func (s *state) stallCause(l *liveRequest, from, to event.Time) string {
	if s.rates.lastPrompt >= from && s.rates.lastPrompt <= to {
		checked := 0
		for o := range s.requests.newestFirst() {
			if o != l && o.prefilling(from, to) {
				return fmt.Sprintf("while #%d's prompt was processed", o.view.ID)
			}
			if checked++; checked == MaxRequests { // with thousands of requests, checking all is too slow
				break
			}
		}
		return "while a prompt was processed"
	}
	if h := &s.host; h.Sampled && to-h.At < event.Time(2*h.Interval) {
		if wait, ran := h.Engine.RunWait, h.Engine.CPU; wait.OK() && ran.OK() && wait.V > starvedShare*(wait.V+ran.V) {
			return verdict.WaitingForCore
		}
		if p := h.Self.GCPause; p.OK() && h.Engine.PID == h.Self.PID && p.V > float64(to-from)/2 {
			return "llmtop's garbage collection"
		}
	}
	return "unknown"
}

// prefilling reports whether the request's prompt may have been processed between two times: it was dispatched by then,
// and before that it had neither a token nor an end.
func (l *liveRequest) prefilling(from, to event.Time) bool {
	v := &l.view
	return v.Dispatched != 0 && v.Dispatched <= to && (v.First == 0 || v.First >= from) && (v.Closed == 0 || v.Closed >= from)
}

// starvedShare bounds how long the engine's threads may wait for a core, as a share of the time in which they are
// runnable. Stalls above it are attributed to waiting.
const starvedShare = 0.2

// recordFirstToken records TTFT and queue time of a request at its first token.
func (s *state) recordFirstToken(l *liveRequest) {
	s.measure(l)
	if s.excluded(l) {
		return
	}
	s.recordLatencies(&l.view, AtFirstToken, l.view.First)
}

// recordLatencies records the latencies of a request that are due at a moment.
func (s *state) recordLatencies(r *Request, moment Moment, at event.Time) {
	for id := range Latencies {
		if row := &Latencies[id]; row.Moment == moment && row.Of != nil {
			if v := row.Of(r); v.OK() {
				s.latency.of[id].Record(int64(at), nanos(v), 1)
			}
		}
	}
}

// latency holds the session's latency data.
type latency struct {
	*distributions
	stalls  []Stall
	series  []LatencyPoint // one point per second
	spreads spreads
}

// distributions are kept for every window.
type distributions struct {
	of              [NumLatencies]metric.Windowed
	stallCount, met metric.Windowed // stalls; requests that met every target
}

// windows returns all distributions, always in the same order.
func (d *distributions) windows() [NumLatencies + 2]*metric.Windowed {
	out := [NumLatencies + 2]*metric.Windowed{&d.stallCount, &d.met}
	for i := range d.of {
		out[2+i] = &d.of[i]
	}
	return out
}

// recordRequest records a request that has ended.
func (s *state) recordRequest(r *Request) {
	if r.State == event.StateFinished {
		s.recordLatencies(r, AtEnd, r.Closed)
		if r.met() {
			s.latency.met.Record(int64(r.Closed), 1, 1)
		}
	}
	s.addToGroup(r)
}

// groupSum sums the requests of one group.
type groupSum struct {
	requests, generated uint64  // requests, tokens
	latency             float64 // s, sum of E2EL
}

func (s *state) addToGroup(r *Request) {
	g := s.groups[r.Group]
	if g == nil {
		if len(s.groups) >= MaxGroups {
			s.counts.OmittedGroups++
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
