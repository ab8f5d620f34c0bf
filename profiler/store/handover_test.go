package store

import (
	"testing"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/profiler/verdict"
)

// answer plays the first token of a request after a time, and nine more 100 ms apart, or until others get theirs.
func answer(p *session, id event.RequestID, after int64) {
	p.token(after, id, 1)
	for range 9 {
		p.token(100*ms, id, 1)
	}
	p.state(0, id, event.StateFinished, &event.Outcome{Generated: 10})
}

// TestAnswersOneAfterTheOther checks that behind a proxy, the wait for the answers of others is the queue, if answers are
// generated one after the other.
func TestAnswersOneAfterTheOther(t *testing.T) {
	p := newSession()
	p.emit(0, event.Event{Kind: event.KindEngine, Data: &event.EngineInfo{Name: "proxy", Caps: event.CapTokens, State: event.EngineReady}})
	for id := range event.RequestID(4) {
		p.state(ms, id+1, event.StateQueued, nil)
	}
	for id := range event.RequestID(4) {
		answer(p, id+1, 100*ms)
	}
	if r := p.request(t, 1); r.STIL.OK() || r.Dominant.Stage != event.StageNone {
		t.Errorf("the first: queue time %v, parts %+v", r.STIL, r.Parts)
	}
	if l := p.store.Snapshot().Latency.Of[STIL][metric.Session]; l.Count != 0 {
		t.Errorf("%d queue times, of the requests that waited only", l.Count)
	}
	for id := range event.RequestID(3) {
		r := p.request(t, id+2)
		ended := float64(p.request(t, id+1).Closed-r.Enqueued) / second
		want(t, "queue time", r.STIL, ended)
		if r.Dominant.Stage != event.StageQueue || len(r.Parts) != 2 || r.Parts[1].Dur != 100e6 {
			t.Errorf("request %d: parts %+v", r.ID, r.Parts)
		}
		if r.Slow == nil || r.Slow.Cause != verdict.Queue || r.Waits[0].Cause != verdict.Queue {
			t.Errorf("request %d: %+v, waits %+v", r.ID, r.Slow, r.Waits)
		}
	}
}

// TestWholeAnswersOneAfterTheOther checks the same for answers that come in one piece.
func TestWholeAnswersOneAfterTheOther(t *testing.T) {
	p := newSession()
	p.emit(0, event.Event{Kind: event.KindEngine, Data: &event.EngineInfo{Name: "proxy", Caps: event.CapTokens, State: event.EngineReady}})
	for id := range event.RequestID(4) {
		p.state(ms, id+1, event.StateQueued, nil)
	}
	for id := range event.RequestID(4) {
		p.token(100*ms, id+1, 20)
		p.state(ms, id+1, event.StateFinished, nil) // the end of a stream comes after its text
	}
	for id := range event.RequestID(2) { // the first one that waited may have done so by chance
		r := p.request(t, id+3)
		want(t, "queue time", r.STIL, float64(p.request(t, id+2).Closed-r.Enqueued)/second)
	}
}

// TestAnswersAtOnceShowNoQueue checks that the end of an answer before a first token is no queue if answers are generated at
// once, or if it may be chance.
func TestAnswersAtOnceShowNoQueue(t *testing.T) {
	for name, play := range map[string]func(*session){
		"two at once before": func(p *session) {
			p.state(ms, 1, event.StateQueued, nil)
			p.state(ms, 2, event.StateQueued, nil)
			p.token(100*ms, 1, 1)
			p.token(100*ms, 2, 1)
			answer(p, 1, 100*ms)
			p.state(0, 2, event.StateFinished, nil)
			p.state(ms, 3, event.StateQueued, nil)
			p.state(ms, 9, event.StateQueued, nil)
			answer(p, 3, 100*ms)
			answer(p, 9, 100*ms)
		},
		"a long prompt beside a short answer": func(p *session) {
			p.state(ms, 1, event.StateQueued, nil)
			p.token(100*ms, 1, 1)
			p.state(ms, 9, event.StateQueued, nil)
			answer(p, 1, 100*ms)
			answer(p, 9, 900*ms)
		},
		"in one piece, at once": func(p *session) {
			for id := range event.RequestID(4) {
				p.state(ms, 2*id+1, event.StateQueued, nil)
				p.state(ms, 2*id+2, event.StateQueued, nil)
				p.token(100*ms, 2*id+1, 20)
				p.state(ms, 2*id+1, event.StateFinished, nil)
				p.token(ms, 2*id+2, 20)
				p.state(ms, 2*id+2, event.StateFinished, nil)
			}
			p.state(ms, 10, event.StateQueued, nil)
			p.state(ms, 9, event.StateQueued, nil)
			p.token(100*ms, 10, 20)
			p.state(ms, 10, event.StateFinished, nil)
			p.token(ms, 9, 20)
			p.state(ms, 9, event.StateFinished, nil)
		},
		"not at the same time": func(p *session) {
			p.state(ms, 1, event.StateQueued, nil)
			answer(p, 1, 100*ms)
			p.state(ms, 9, event.StateQueued, nil)
			answer(p, 9, 900*ms)
		},
	} {
		p := newSession()
		p.emit(0, event.Event{Kind: event.KindEngine, Data: &event.EngineInfo{Name: "proxy", Caps: event.CapTokens, State: event.EngineReady}})
		play(p)
		if r := p.request(t, 9); r.STIL.OK() || r.Dominant.Stage != event.StageNone {
			t.Errorf("%s: queue time %v, parts %+v", name, r.STIL, r.Parts)
		}
	}
}

// TestMachineIsNoCauseOfAWait checks that what the machine did while other requests may have held all slots is no cause of
// a slow first token.
func TestMachineIsNoCauseOfAWait(t *testing.T) {
	for name, c := range map[string]struct {
		beside bool
		want   verdict.Cause
	}{"alone": {false, verdict.OtherProcesses}, "beside another": {true, verdict.Unknown}} {
		p := newSession()
		p.emit(0, event.Event{Kind: event.KindEngine, Data: &event.EngineInfo{Name: "proxy", Caps: event.CapTokens, State: event.EngineReady}})
		if c.beside {
			p.state(ms, 1, event.StateQueued, nil)
			p.token(ms, 1, 1)
		}
		p.state(ms, 2, event.StateQueued, nil)
		p.emit(sec, event.Event{Kind: event.KindUsage, Data: &event.Usage{
			Interval: int64(sec), Running: event.MeasuredValue(0), Waiting: event.MeasuredValue(float64(sec)), Cores: event.MeasuredValue(1),
		}})
		p.token(ms, 2, 1)
		if r := p.request(t, 2); r.Slow == nil || r.Slow.Cause != c.want {
			t.Errorf("%s: %+v, want %v", name, r.Slow, c.want)
		}
	}
}
