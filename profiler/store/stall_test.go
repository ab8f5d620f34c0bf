package store

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/profiler/verdict"
)

// decoding plays the start of a request: a first token and a number of gaps.
func decoding(p *session, gaps int, gap int64) {
	p.state(0, 1, event.StateQueued, nil)
	p.state(0, 1, event.StateDispatched, nil)
	p.token(ms, 1, 1)
	for range gaps {
		p.token(gap, 1, 1)
	}
}

func TestStallsBeginAtTheirLimit(t *testing.T) {
	for _, c := range []struct {
		name      string
		gaps      int
		gap, late int64
		stalls    int
	}{
		{"three times the median", StallSamples, ms, 3*ms + 50*us, 1}, // the median may be off by 1/64
		{"less than that", StallSamples, ms, 2900 * us, 0},
		{"too few gaps for a median", StallSamples - 1, ms, 30 * ms, 0},
		{"too short to matter", StallSamples, 100 * us, minStall - us, 0},
		{"just long enough", StallSamples, 100 * us, minStall, 1},
	} {
		p := newSession()
		decoding(p, c.gaps, c.gap)
		p.token(c.late, 1, 1)
		s := p.store.Snapshot()
		r := s.Requests[0]
		if len(r.Stalls) != c.stalls || len(s.Latency.Stalls) != c.stalls || s.Latency.StallCount[metric.Session] != uint64(c.stalls) {
			t.Errorf("%s: %d stalls, want %d", c.name, len(r.Stalls), c.stalls)
		}
		if c.stalls > 0 {
			if st := r.Stalls[0]; st.Index != c.gaps+1 || st.Gap != time.Duration(c.late) || st.At != p.now || st.Cause != verdict.Unknown {
				t.Errorf("%s: %+v, want token %d after %d ns", c.name, st, c.gaps+1, c.late)
			}
		}
	}
}

// TestFirstGapsAreJudged: a gap that comes before there is a median is a stall once there is one, and counts once.
func TestFirstGapsAreJudged(t *testing.T) {
	for _, c := range []struct {
		name  string
		gaps  []int64
		index []int
	}{
		{"the second token", []int64{433 * ms, ms, ms, ms, ms, ms, ms, ms, ms}, []int{1}},
		{"two of the first", []int64{ms, 50 * ms, ms, ms, 433 * ms, ms, ms, ms, ms, 9 * ms}, []int{2, 5, 10}},
		{"with too few after it", []int64{433 * ms, ms, ms, ms, ms, ms, ms, ms}, nil},
		{"all alike", []int64{9 * ms, 9 * ms, 9 * ms, 9 * ms, 9 * ms, 9 * ms, 9 * ms, 9 * ms, 9 * ms}, nil},
		{"short ones", []int64{400 * us, 50 * us, 50 * us, 50 * us, 50 * us, 50 * us, 50 * us, 50 * us, 50 * us}, nil},
	} {
		p := newSession()
		decoding(p, 0, 0)
		stalled, all := int64(0), int64(0)
		for i, gap := range c.gaps {
			p.token(gap, 1, 1)
			all += gap
			if slices.Contains(c.index, i+1) {
				stalled += gap - ms
			}
		}
		s := p.store.Snapshot()
		r := s.Requests[0]
		var index []int
		for _, st := range r.Stalls {
			index = append(index, st.Index)
		}
		if !slices.Equal(index, c.index) || s.Latency.StallCount[metric.Session] != uint64(len(c.index)) || len(r.Late) != len(c.index) {
			t.Errorf("%s: stalls at %v, marks %v, %d counted, want %v", c.name, index, r.Late, s.Latency.StallCount[metric.Session], c.index)
		}
		if lost := s.Losses.Windows[metric.Session].Total(); len(c.index) > 0 && (lost < stalled*98/100 || lost > all) {
			t.Errorf("%s: lost %d ns of %d, stalls lost %d", c.name, lost, all, stalled)
		}
	}
}

// TestLongestStallsAreKept: of many stalls, all keep their marks, and the longest their causes, wherever they came.
func TestLongestStallsAreKept(t *testing.T) {
	p := newSession()
	decoding(p, 0, 0)
	p.token(433*ms, 1, 1) // the longest comes first
	const stalls = 149
	for i := range stalls - 1 {
		for range StallSamples {
			p.token(ms, 1, 1)
		}
		p.token(5*ms+int64(i%7)*us, 1, 1)
	}
	for ended := range 2 {
		r := p.request(t, 1)
		if r.StallCount() != stalls || len(r.Late) != stalls || len(r.Stalls) > MaxStalls || r.Stalls[0].Gap != 433*time.Millisecond {
			t.Errorf("ended %d: %d stalls, %d marks, %d kept from %v on", ended, r.StallCount(), len(r.Late), len(r.Stalls), r.Stalls[0].Gap)
		}
		if !slices.IsSortedFunc(r.Stalls, func(a, b Stall) int { return a.Index - b.Index }) {
			t.Error("the stalls are not in order")
		}
		p.state(ms, 1, event.StateFinished, nil)
	}
	marked := 0
	for _, point := range p.store.Snapshot().Latency.Series {
		marked += point.Stalls
	}
	if n := p.store.Snapshot().Latency.StallCount[metric.Session]; n != stalls || marked == 0 {
		t.Errorf("%d stalls in the session, %d marked in the series", n, marked)
	}
}

// TestPassesWithSeveralTokens: tokens of accepted drafts follow each other at once, and the next pass is no stall.
func TestPassesWithSeveralTokens(t *testing.T) {
	p := newSession()
	step := uint64(1)
	pass := func(took int64, tokens int) {
		for i := range tokens {
			after := took
			if i > 0 {
				after = 30 * us
			}
			p.emit(after, event.Event{Kind: event.KindToken, Req: 1, N: 1, Index: -1, Step: step})
		}
		step++
	}
	p.state(0, 1, event.StateQueued, nil)
	for i := range 4 * StallSamples {
		pass(10*ms, 1+i%5)
	}
	if r := p.request(t, 1); len(r.Stalls) != 0 || r.ITL.P50 > ms {
		t.Errorf("%d stalls at a median of %d ns", len(r.Stalls), r.ITL.P50)
	}
	pass(40*ms, 3)
	if r := p.request(t, 1); len(r.Stalls) != 1 || r.Stalls[0].Lost < 29*ms || r.Stalls[0].Lost > 31*ms {
		t.Errorf("a pass of 40 ms is %+v, want one stall that lost 30 ms", r.Stalls)
	}
}

func TestPacingIsNotAStall(t *testing.T) {
	p := newSession()
	decoding(p, StallSamples, ms)
	p.stage(1, event.StagePace, 100*ms, 1)
	p.token(ms, 1, 1)
	if r := p.request(t, 1); len(r.Stalls) != 0 || r.ITL.Max != ms {
		t.Errorf("stalls %+v and longest gap %d after pacing, want none and 1 ms", r.Stalls, r.ITL.Max)
	}
}

// host emits a sample of the machine over the last second.
func (p *session) host(h event.Host) {
	h.Interval = sec
	p.emit(0, event.Event{Kind: event.KindHost, Data: &h})
}

// usage emits what the engine's threads did over the last ns.
func (p *session) usage(ns int64, u event.Usage) {
	u.Interval = ns
	p.emit(0, event.Event{Kind: event.KindUsage, Data: &u})
}

func readingMS(n int64) event.Reading { return event.MeasuredValue(float64(n * ms)) }

// TestCausesOfStalls plays a stall that loses 19 ms, with evidence that arrives before or after it.
func TestCausesOfStalls(t *testing.T) {
	waiting := func(n int64) event.Usage {
		return event.Usage{Running: readingMS(30), Waiting: readingMS(n), Threads: event.MeasuredValue(2), Cores: event.MeasuredValue(2)}
	}
	process := func(wait float64) event.Host {
		return event.Host{Cores: []float64{1, 1}, CPU: event.MeasuredValue(1), Engine: event.Process{CPU: event.MeasuredValue(.6), RunWait: event.MeasuredValue(wait)}}
	}
	gc := func(engine int, pause int64) event.Host {
		return event.Host{Engine: event.Process{PID: engine}, Self: event.Process{PID: 7, GCPause: readingMS(pause)}}
	}
	for _, c := range []struct {
		name   string
		want   verdict.Cause
		during func(p *session)
		after  func(p *session)
	}{
		{"a prompt", verdict.PromptOfOther, func(p *session) { p.step(15*ms, 1, 64) }, nil},
		{"a short prompt", verdict.Unknown, func(p *session) { p.step(5*ms, 1, 64) }, nil},
		{"a wait", verdict.OtherProcesses, nil, func(p *session) { p.usage(30*ms, waiting(12)) }},
		{"a short wait", verdict.Unknown, nil, func(p *session) { p.usage(30*ms, waiting(9)) }},
		{"a wait before it", verdict.Unknown, func(p *session) {
			p.now -= event.Time(ms / 2)
			p.usage(30*ms, waiting(30))
			p.now += event.Time(ms / 2)
		}, func(p *session) { p.usage(20*ms, waiting(1)) }},
		{"a second with a wait", verdict.OtherProcesses, nil, func(p *session) { p.host(process(.02)) }},
		{"a second with a short wait", verdict.Unknown, nil, func(p *session) { p.host(process(.018)) }},
		{"a finer sample without a wait", verdict.Unknown, nil, func(p *session) { p.usage(30*ms, waiting(0)); p.host(process(.5)) }},
		{"a first finer sample after that of the machine", verdict.Unknown, nil, func(p *session) { p.host(process(.5)); p.usage(30*ms, waiting(0)) }},
		{"collections", verdict.GC, nil, func(p *session) { p.host(gc(7, 20)) }},
		{"collections of another process", verdict.Unknown, nil, func(p *session) { p.host(gc(8, 20)) }},
		{"a stop whose sample follows that of the machine", verdict.Stopped, func(p *session) {
			p.now -= event.Time(2 * ms)
			p.usage(20*ms, waiting(0))
			p.now += event.Time(2 * ms)
		}, func(p *session) {
			p.host(event.Host{})
			p.now += event.Time(20 * ms)
			p.usage(40*ms, event.Usage{Stopped: readingMS(19)})
		}},
		{"evidence that comes too late", verdict.Unknown, nil, func(p *session) {
			p.now += evidenceDelay + 1
			p.usage(4*sec, waiting(100))
		}},
	} {
		p := newSession()
		decoding(p, StallSamples, ms)
		start := p.now
		if c.during != nil {
			c.during(p)
		}
		p.token(int64(start-p.now)+20*ms, 1, 1)
		before := p.store.Snapshot()
		old := before.Requests[0].Stalls[0]
		if c.after != nil {
			c.after(p)
		}
		s := p.store.Snapshot()
		stalls := p.request(t, 1).Stalls
		if len(stalls) != 1 || stalls[0].Cause != c.want || s.Latency.Stalls[0] != stalls[0] || stalls[0].Lost > 19*ms+ms/8 {
			t.Errorf("%s: %+v, want one by %v", c.name, stalls, c.want)
		}
		if before.Requests[0].Stalls[0] != old {
			t.Errorf("%s: later evidence changed a snapshot", c.name)
		}
		if l := &s.Losses.Stalls[metric.Session]; l.N[c.want] != 1 || l.NS[c.want] == 0 || l.Total() != stalls[0].Lost {
			t.Errorf("%s: losses %+v of %+v", c.name, l, stalls)
		}
	}
}

// TestEvidenceAfterTheEnd checks that evidence reaches the stalls of a request that has ended.
func TestEvidenceAfterTheEnd(t *testing.T) {
	p := newSession()
	decoding(p, StallSamples, ms)
	p.token(20*ms, 1, 1)
	p.state(0, 1, event.StateFinished, &event.Outcome{Generated: 10})
	before := p.request(t, 1)
	p.usage(25*ms, event.Usage{Stopped: readingMS(20)})
	if r := p.request(t, 1); before.Stalls[0].Cause != verdict.Unknown || r.Stalls[0].Cause != verdict.Stopped {
		t.Errorf("stall by %v, then by %v", before.Stalls[0].Cause, r.Stalls[0].Cause)
	}
}

func TestStallsBecomeEvidence(t *testing.T) {
	p := newSession()
	decoding(p, 200, ms)
	for i := range 10 { // gaps of 21 ms
		if i%3 == 0 { // prompts of several requests are one cause
			p.state(0, event.RequestID(2+i), event.StateQueued, nil)
			p.state(0, event.RequestID(2+i), event.StateDispatched, nil)
		}
		p.step(20*ms, 1, 64)
		p.token(ms, 1, 1)
	}
	s := p.store.Snapshot()
	if l := &s.Losses.Stalls[metric.Minute]; l.N[verdict.PromptOfOther] != 10 {
		t.Errorf("losses %+v, want ten by prompts", l)
	}
	for _, v := range s.Verdicts {
		if v.Topic == "token gaps" {
			if !strings.Contains(v.Text, "stalls, most of their time: while a prompt was processed") || v.Try != verdict.Causes[verdict.PromptOfOther].Remedy {
				t.Errorf("verdict %+v", v)
			}
			return
		}
	}
	t.Error("no verdict on token gaps although 5 % of them are ten times the median")
}
