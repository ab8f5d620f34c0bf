package store

import (
	"testing"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
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
			if st := r.Stalls[0]; st.Index != c.gaps+1 || st.Gap != time.Duration(c.late) || st.At != p.now || st.Cause != "unknown" {
				t.Errorf("%s: %+v, want token %d after %d ns", c.name, st, c.gaps+1, c.late)
			}
		}
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

func TestCausesOfStalls(t *testing.T) {
	sampled := func(engine, self event.Process) func(p *session) {
		return func(p *session) {
			p.emit(ms, event.Event{Kind: event.KindHost, Data: &event.Host{Interval: sec, Engine: engine, Self: self}})
		}
	}
	for want, during := range map[string]func(p *session){
		"while #2's prompt was processed": func(p *session) {
			p.state(0, 2, event.StateQueued, nil)
			p.state(0, 2, event.StateDispatched, nil)
			p.step(5*ms, 1, 64)
		},
		"while a prompt was processed": func(p *session) { p.step(5*ms, 1, 64) },
		"waiting for a core":           sampled(event.Process{CPU: event.MeasuredValue(.6), RunWait: event.MeasuredValue(.3)}, event.Process{}),
		"llmtop's garbage collection":  sampled(event.Process{PID: 7}, event.Process{PID: 7, GCPause: event.MeasuredValue(float64(8 * ms))}),
		"unknown":                      sampled(event.Process{PID: 8, CPU: event.MeasuredValue(.6), RunWait: event.MeasuredValue(.05)}, event.Process{PID: 7, GCPause: event.MeasuredValue(float64(8 * ms))}),
	} {
		p := newSession()
		decoding(p, stallSamples, ms)
		during(p)
		p.token(9*ms, 1, 1)
		stalls := p.request(t, 1).Stalls
		if len(stalls) != 1 || stalls[0].Cause != want {
			t.Errorf("stalls %+v, want one: %s", stalls, want)
		}
	}
}

func TestStallsBecomeEvidence(t *testing.T) {
	p := newSession()
	decoding(p, 200, ms)
	for range 6 {
		p.step(5*ms, 1, 64)
		p.token(5*ms, 1, 1)
	}
	for _, v := range p.store.Snapshot().Verdicts {
		if v.Topic == "token gaps" {
			if v.Evidence != "6 while a prompt was processed" {
				t.Errorf("evidence %q", v.Evidence)
			}
			return
		}
	}
	t.Error("no verdict on token gaps although 3 % of them are ten times the median")
}
