package store

import (
	"cmp"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
)

// A gap is a stall if it is at least StallFactor times the request's median gap and at least minStall, below which
// users do not notice and timers are imprecise.
const (
	StallFactor = 3
	minStall    = int64(500 * time.Microsecond) // ns
	// stallSamples is how many gaps the median needs.
	stallSamples = 8
)

// StampedTokens returns how many tokens share the stamp of a token event, 1..MaxTokens.
func StampedTokens(e *event.Event) int { return int(min(max(e.N, 1), MaxTokens)) }

// applyToken appends one token, or several that share a stamp: they divide the gap before them equally.
func (s *state) applyToken(e *event.Event) {
	k := StampedTokens(e)
	l := s.openRequest(e.Req)
	if l == nil {
		if s.requests.addUnlistedTokens(e.Req, k) && e.At != beforeClock {
			s.countGenerated(e.At, k)
		}
		return
	}
	v := &l.view
	at := max(e.At, v.Last, v.Enqueued)
	s.requests.setState(l, max(v.State, event.StateDispatched))
	all := metric.Choice{First: v.First, Last: v.Last, AtFirst: l.atFirst}
	gap, last := int64(-1), l.choices.Add(e.Choice, at, k, all)
	all.Add(at, k)
	v.Choices, l.atFirst = len(l.choices), all.AtFirst
	if v.First == 0 {
		gap = 0
		v.First = at
		s.settleWaits(v, at)
		l.measure(s.settings())
		if !s.excluded(l) {
			if !v.ColdLater {
				s.latency.recordFirst(v, at)
			}
			s.explainTTFT(l)
		}
	} else if last != 0 && last != beforeClock { // otherwise the length of the gap is unknown, or there is none
		var paced int64
		gap, paced = metric.TokenGap(int64(at-last), l.pacedSinceToken, k)
		l.pacedTotal += paced
		if !s.excluded(l) {
			s.causes.observe(at, paced, 0)
		}
		s.recordGaps(l, at, gap, k, e)
	}
	l.pacedSinceToken, l.lastStep, l.lastChoice = 0, e.Step, e.Choice
	v.Last = at
	v.Generated += k
	if !s.excluded(l) && (e.At != beforeClock || !l.predatesClock) { // skip tokens generated before this session
		s.countGenerated(at, k)
	}
	if len(e.Picks) > 0 && s.routing.addToken(&s.model, l, at, e.Picks) {
		if distinct, single, whole := s.routing.pass.add(e, &s.model); whole {
			s.rates.addPass(at, distinct, single)
		}
	}
	read := 0.
	if e.Step > 0 && e.Step == s.routing.pass.alone && s.model.WeightBytes > 0 {
		read = readAlone(s)
	}
	s.requests.appendToken(l, Token{
		ID: e.ID, N: k, Nth: v.Generated - k, Index: int(max(e.Index, 0)), At: at, Gap: gap, Step: e.Step, Split: e.Split,
		Text: clip(e.Text, MaxLine), LogP: e.LogP, HasLP: e.HasLogP, Top: e.Top, Picks: e.Picks, Read: read,
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

// pushOwn is push, but overwrites the entries unless somebody shares them: at many tokens a second, most lists fill up
// between two snapshots.
func pushOwn[T any](list []T, v T, bound int, shared *bool) []T {
	cut := evictCount(len(list), bound)
	if cut == 0 || *shared {
		*shared = *shared && cut == 0
		return push(list, v, bound)
	}
	kept := copy(list, list[cut:])
	clear(list[kept:]) // releases what they refer to
	return append(list[:kept], v)
}

// evictCount returns how many of n values push drops to make room for one more.
func evictCount(n, bound int) int {
	if n < bound {
		return 0
	}
	return n - bound + max(bound/4, 1)
}

// recordGaps records k gaps of equal length that ended at the given time with the tokens of an event.
func (s *state) recordGaps(l *liveRequest, at event.Time, gap int64, k int, e *event.Event) {
	v := &l.view
	stalled, typical := false, l.typicalGaps(e)
	if typical != nil && typical.Count() >= stallSamples {
		if median := typical.Median(); gap >= StallFactor*median && gap >= minStall {
			s.recordStall(l, at, gap, gap-median, k, e.Picks)
			stalled = true
		}
	}
	l.itl.Record(gap, uint32(k))
	if typical != nil && typical != l.itl {
		typical.Record(gap, uint32(k))
	}
	if !s.excluded(l) {
		s.causes.addGaps(v.ID, at, gap, k, stalled)
		s.latency.recordGaps(at, gap, k)
		s.machine.gaps.add(gap, k)
	}
	limit := s.requests.bound(MaxGaps)
	for range k {
		v.FirstGap += evictCount(len(v.Gaps), limit)
		v.Gaps = pushOwn(v.Gaps, gap, limit, &l.sharedGaps)
	}
}

// typicalGaps returns the gaps that one is compared with: all of the request or, where forward passes generate several
// tokens (accepted drafts), those between passes; nil within a pass.
func (l *liveRequest) typicalGaps(e *event.Event) *metric.Sparse {
	within := e.Step != 0 && e.Step == l.lastStep && e.Choice == l.lastChoice
	if within && l.passGaps == nil {
		l.passGaps = l.itl.Pack().Sparse() // so far each pass generated one
	}
	switch {
	case within:
		return nil
	case l.passGaps != nil:
		return l.passGaps
	}
	return l.itl
}

// recordStall records one stall for k gaps of equal length that ended at the given time. lost is what each took
// longer, in ns.
func (s *state) recordStall(l *liveRequest, at event.Time, gap, lost int64, k int, picks []uint16) {
	st := Stall{Request: l.view.ID, Index: l.view.Generated, At: at, Gap: time.Duration(gap)}
	from := at - event.Time(gap)*event.Time(k)
	st.Explanation = s.explainLater(l, unexplained{
		req: st.Request, index: st.Index, from: from, to: at, lost: lost * int64(k), absent: absentPicks(s, picks, from),
	})
	limit := s.requests.bound(MaxStalls)
	l.view.Omitted.Stalls += evictCount(len(l.view.Stalls), limit)
	l.view.Stalls = push(l.view.Stalls, st, limit)
	if !s.excluded(l) {
		s.latency.recordStall(st)
	}
}

// explainTTFT explains why the first token of a request came later than its target, or than the default one.
func (s *state) explainTTFT(l *liveRequest) {
	v := &l.view
	if !v.TTFT.OK() {
		return
	}
	took := nanos(v.TTFT)
	s.causes.observe(v.First, took, 0)
	if lost := took - int64(cmp.Or(v.Targets.TTFT, DefaultTTFTTarget)); lost > 0 {
		to := v.First + event.Time(l.stageTime[event.StageSend])
		x := s.explainLater(l, unexplained{req: v.ID, from: to - event.Time(took), to: to, lost: lost})
		v.Slow = &x
	}
}

// loadTime returns the ns of the model load in the TTFT of a request.
func (l *liveRequest) loadTime() (ns int64) {
	for _, p := range l.view.Parts {
		if p.Stage == event.StageLoad {
			ns += int64(p.Dur)
		}
	}
	return ns
}
