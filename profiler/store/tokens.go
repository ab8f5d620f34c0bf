package store

import (
	"cmp"
	"slices"
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
	// StallSamples is how many gaps the median needs. Those gaps are judged when the next one has come.
	StallSamples = 8
)

// Token is one generated token, or several that share a stamp.
type Token struct {
	ID    int32
	N     int32 // tokens that share the stamp, at least 1
	Nth   int32 // tokens of the request received before it, as in Stall.Index
	Index int32 // position in the generated text, as reported by the engine; -1: not reported
	At    event.Time
	Gap   int64  // ns since the previous token without pacing; 0 for the first token, -1 if unknown
	Paced int64  // ns of pacing since the previous token
	Step  uint64 // number of the forward pass, 0 unknown
	Split event.Split
	// Reasoning is how many of the N tokens are reasoning, the first ones.
	Reasoning int32
	HasLP     bool
	Text      string
	LogP      float32 // natural log of the probability; see HasLP
	// Handover is when its text was handed over to whoever reads it, in ns after At; 0 unknown.
	Handover uint32
	Top      []event.TopProb // alternatives
	Picks    []uint16        // experts picked, layer by layer
	Calls    *event.Calls    // what its pass called of CUDA; nil: not known
	Read     float64         // bytes of weights and KV cache that its pass read; 0: unknown, or a pass of several tokens
}

// StampedTokens returns how many tokens share the stamp of a token event, 1..MaxTokens.
func StampedTokens(e *event.Event) int { return int(min(max(e.N, 1), MaxTokens)) }

// applyToken appends one token, or several that share a stamp: they divide the gap before them equally.
func (s *state) applyToken(e *event.Event) {
	k := StampedTokens(e)
	l := s.openRequest(e.Req)
	if l == nil {
		if s.requests.addUnlistedTokens(e.Req, k) {
			s.counts.StampedTokens += uint64(k)
			if e.At != beforeClock {
				s.countGenerated(e.At, k)
			}
		}
		return
	}
	v := &l.view
	at := max(e.At, v.Last, v.Enqueued)
	if v.State < event.StateDispatched {
		countBusy(s, at) // it may have waited until now
	}
	s.requests.setState(l, max(v.State, event.StateDispatched))
	all := metric.Choice{First: v.First, Last: v.Last, AtFirst: int(l.atFirst)}
	gap, paced, last := int64(-1), int64(0), l.choices.Add(e.Choice, at, k, all)
	if e.Lost {
		last, l.holed = 0, v.First != 0
		l.missedFirst = l.missedFirst || v.First == 0
		l.missedStart = l.missedStart || l.missedFirst
		v.MissedStart = l.missedStart
	}
	all.Add(at, k)
	v.Choices, l.atFirst = len(l.choices), int32(min(all.AtFirst, event.MaxTokens))
	if v.First == 0 {
		gap = 0
		v.First = at
		s.settleWaits(v, at)
		with := s.settings()
		l.load = with.load
		l.measure(with)
		if !s.excluded(l) {
			if !v.ColdLater {
				s.latency.recordFirst(v, at)
			}
			s.explainTTFT(l)
			l.promptShared = s.derived.begun > v.Enqueued
			derivePrompt(s, l)
			l.countPrompt(&s.counts)
		}
	} else if last != 0 && last != beforeClock { // otherwise the length of the gap is unknown, or there is none
		gap, paced = tokenGap(int64(at-last), l.pacedSinceToken, k)
		l.pacedTotal += paced
		if !s.excluded(l) {
			s.causes.observe(at, paced, 0)
			deriveDecode(s, at, gap*int64(k), k)
		}
		s.recordGaps(l, at, gap, k, e)
	}
	l.pacedSinceToken, l.lastStep, l.lastChoice = 0, e.Step, e.Choice
	l.addThinking(e, at, gap, k, s.requests.bound(MaxSpans))
	v.Last = at
	v.Generated += k
	v.Stamped += k
	s.counts.StampedTokens += uint64(k)
	if !s.excluded(l) && (e.At != beforeClock || !l.predatesClock) { // skip tokens generated before this session
		s.countGenerated(at, k)
	}
	if len(e.Picks) > 0 && s.routing.addToken(&s.model, l, at, e.Picks) {
		if distinct, single, whole := s.routing.pass.add(e, &s.model); whole {
			s.rates.addPass(at, distinct, single)
		}
	}
	read := 0.
	if e.Step > 0 && e.Step == s.routing.pass.alone && sized(s) {
		read = readAlone(s)
	}
	s.requests.appendToken(l, Token{
		ID: e.ID, N: int32(k), Nth: int32(v.Generated - k), Index: max(e.Index, -1), At: at, Gap: gap, Paced: paced, Handover: e.Handover, Step: e.Step, Split: e.Split,
		Reasoning: min(max(e.Reasoning, 0), int32(k)),
		Text:      clip(e.Text, MaxLine), LogP: e.LogP, HasLP: e.HasLogP, Top: e.Top, Picks: e.Picks, Calls: callsOf(s, e.Step), Read: read,
	})
}

// tokenGap returns the gap before each of n tokens that share a stamp: they divide equally the time since the previous
// token, without pacing. paced is the pacing emitted since that token; within is the part of it that fits into since.
// All times are in ns.
func tokenGap(since, paced int64, n int) (gap, within int64) {
	within = min(paced, since)
	return (since - within) / int64(n), within
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
	if s.onGaps != nil {
		s.onGaps(v, gap, k)
	}
	stalled, typical := false, l.typicalGaps(e)
	if typical != nil {
		stalled = s.judgeGap(l, typical, lateGap{at: at, gap: gap, k: k, index: v.Generated}, e.Picks)
	}
	l.itl.Record(gap, uint32(k))
	if typical != nil && typical != l.itl {
		typical.Record(gap, uint32(k))
	}
	if !s.excluded(l) {
		s.causes.addGaps(v.ID, at, gap, k, stalled)
		s.latency.recordGaps(at, gap, k)
		gaps := &s.machine.gaps
		gaps.sum, gaps.n = gaps.sum+float64(gap)*float64(k), gaps.n+uint64(k)
	}
	limit := s.requests.bound(MaxGaps)
	for range k {
		v.FirstGap += evictCount(len(v.Gaps), limit)
		v.Gaps = pushOwn(v.Gaps, gap, limit, &l.sharedGaps)
	}
}

// typicalGaps returns the gaps that one is compared with: all of the request or, where forward passes generate several
// tokens (accepted drafts), those between passes; nil within a pass.
func (l *liveRequest) typicalGaps(e *event.Event) *metric.Histogram {
	within := e.Step != 0 && e.Step == l.lastStep && e.Choice == l.lastChoice
	if within && l.passGaps == nil {
		l.passGaps = l.itl.Clone() // so far each pass generated one
	}
	switch {
	case within:
		return nil
	case l.passGaps != nil:
		return l.passGaps
	}
	return l.itl
}

// lateGap is k gaps of equal length that ended at a time and may be a stall.
type lateGap struct {
	at       event.Time
	gap      int64
	k, index int    // of the late token
	absent   string // see absentPicks
	before   *lateGap
}

func (g *lateGap) from() event.Time { return g.at - event.Time(g.gap)*event.Time(g.k) }

// judgeGap records a stall if a gap is far above the median of those before it, and reports whether it is. The first
// gaps have too few before them: they wait until there is a median.
func (s *state) judgeGap(l *liveRequest, typical *metric.Histogram, g lateGap, picks []uint16) (stalled bool) {
	if l.early == nil && typical.Count() >= StallSamples && g.gap < StallFactor*typical.Min() { // nor is it by the median
		return false
	}
	if g.gap >= minStall {
		g.absent = absentPicks(s, picks, g.from())
	}
	if typical.Count() < StallSamples {
		if g.gap >= minStall {
			early := g // g stays off the heap
			early.before, l.early = l.early, &early
		}
		return false
	}
	median := typical.Median()
	s.judgeEarly(l, l.early, median)
	l.early = nil
	if stalled = g.gap >= StallFactor*median && g.gap >= minStall; stalled {
		s.recordStall(l, &g, median, true)
	}
	return stalled
}

// judgeEarly judges gaps that waited for a median, the oldest first.
func (s *state) judgeEarly(l *liveRequest, g *lateGap, median int64) {
	if g == nil {
		return
	}
	s.judgeEarly(l, g.before, median)
	if g.gap >= StallFactor*median {
		s.recordStall(l, g, median, s.excluded(l) || s.causes.withdrawGaps(l.view.ID, g.at, g.gap, g.k))
	}
}

// recordStall records one stall. counts is false if a slow second counts what it lost.
func (s *state) recordStall(l *liveRequest, g *lateGap, median int64, counts bool) {
	v := &l.view
	st := Stall{Request: v.ID, Index: g.index, At: g.at, Gap: time.Duration(g.gap), Explanation: new(verdict.Explanation)}
	u := unexplained{req: st.Request, index: st.Index, from: g.from(), to: g.at, lost: (g.gap - median) * int64(g.k), absent: g.absent}
	if counts {
		*st.Explanation = s.explainLater(l, u)
	} else {
		*st.Explanation = s.explain(&u)
	}
	v.keepStalls(append(v.Stalls, st), s.requests.bound(MaxStalls))
	v.Late = push(v.Late, int32(g.index), s.requests.bound(MaxGaps))
	if !s.excluded(l) {
		s.latency.recordStall(st)
	}
}

// keepStalls sets the stalls of a request. Where there are too many, it omits the shortest quarter.
func (r *Request) keepStalls(list []Stall, bound int) {
	if len(list) > bound {
		list = slices.SortedStableFunc(slices.Values(list), func(a, b Stall) int { return cmp.Compare(b.Gap, a.Gap) })
		kept := bound - bound/4
		r.Omitted.Stalls += len(list) - kept
		list = list[:kept:kept]
		slices.SortFunc(list, func(a, b Stall) int { return cmp.Compare(a.Index, b.Index) })
	}
	r.Stalls = list
}

// explainTTFT explains why the first token of a request came later than its target, or than the default one.
func (s *state) explainTTFT(l *liveRequest) {
	v := &l.view
	if !v.TTFT.OK() {
		return
	}
	s.causes.observe(v.First, nanos(v.TTFT), 0)
	if u := l.slowTTFT(); u.lost > 0 {
		x := s.explainLater(l, u)
		v.Slow = &x
	}
}

// slowTTFT returns what a first token came later than its target, or than the default one.
func (l *liveRequest) slowTTFT() unexplained {
	v := &l.view
	took, to := nanos(v.TTFT), v.First+event.Time(l.stageTime[event.StageSend])
	return unexplained{req: v.ID, from: to - event.Time(took), to: to, lost: took - int64(cmp.Or(v.Targets.TTFT, DefaultTTFTTarget))}
}

// explainTTFTAgain explains a slow first token with what only the end of the request shows: when the engine began with it.
func (s *state) explainTTFTAgain(l *liveRequest) {
	given := l.view.Slow
	if given == nil || !l.view.TTFT.OK() {
		return
	}
	u := l.slowTTFT()
	x := s.explain(&u)
	if x == *given {
		return
	}
	if !s.excluded(l) {
		s.causes.count(u.to, given, -1, u.of())
		s.causes.count(u.to, &x, 1, u.of())
	}
	for i := range s.causes.pending {
		if p := &s.causes.pending[i]; p.req == u.req && p.index == 0 {
			p.given = x
		}
	}
	l.view.Slow = &x
}

// LoadTime returns the ns of the model load in the TTFT of a request.
func (r *Request) LoadTime() int64 { return int64(r.part(event.StageLoad)) }

// part returns the part of TTFT that a stage took; 0 if it is not reported.
func (r *Request) part(stage event.Stage) time.Duration {
	if i := slices.IndexFunc(r.Parts, func(p Part) bool { return p.Stage == stage }); i >= 0 {
		return r.Parts[i].Dur
	}
	return 0
}
