package store

import (
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
		{"three times the median", stallSamples, ms, 3*ms + 50*us, 1}, // the median may be off by 1/64
		{"less than that", stallSamples, ms, 2900 * us, 0},
		{"too few gaps for a median", stallSamples - 1, ms, 30 * ms, 0},
		{"too short to matter", stallSamples, 100 * us, minStall - us, 0},
		{"just long enough", stallSamples, 100 * us, minStall, 1},
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
	for i := range 4 * stallSamples {
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
	decoding(p, stallSamples, ms)
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
		decoding(p, stallSamples, ms)
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
	decoding(p, stallSamples, ms)
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
