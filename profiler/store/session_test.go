package store

import (
	"math"
	"testing"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
)

const (
	us  = int64(time.Microsecond)
	ms  = int64(time.Millisecond)
	sec = int64(time.Second)
)

// session is a store with a clock that moves only with emit and advance by hand.
type session struct {
	now   event.Time
	store *Store
	ended []*Request
}

func newSession() *session { return newSessionWithTargets(Targets{}) }

// newSessionWithTargets returns a session that checks requests against targets.
func newSessionWithTargets(targets Targets) *session {
	p := &session{now: event.Time(sec)}
	p.store = New(Options{
		Now:       func() event.Time { return p.now },
		Wall:      func() time.Time { return time.Unix(1_700_000_000, int64(p.now)) },
		Targets:   targets,
		OnRequest: func(r *Request) { p.ended = append(p.ended, r) },
	})
	return p
}

// emit sends an event after a wait in ns.
func (p *session) emit(wait int64, e event.Event) {
	p.now += event.Time(wait)
	e.At = p.now
	p.store.Emit(e)
}

func (p *session) engine(caps event.Caps) {
	p.emit(0, event.Event{Kind: event.KindEngine, Data: &event.EngineInfo{Name: "native", Caps: caps, Slots: 2, State: event.EngineReady, Device: event.Device{Name: "CPU", Host: true, Threads: 1}}})
}

func (p *session) state(wait int64, id event.RequestID, s event.State, data any) {
	p.emit(wait, event.Event{Kind: event.KindRequest, Req: id, State: s, Data: data})
}

// stage emits a stage of a request that took dur.
func (p *session) stage(id event.RequestID, s event.Stage, dur int64, n int32) {
	p.emit(dur, event.Event{Kind: event.KindStage, Stage: s, Req: id, Layer: -1, Dur: dur, N: n})
}

func (p *session) token(wait int64, id event.RequestID, n int32) {
	p.emit(wait, event.Event{Kind: event.KindToken, Req: id, N: n, Text: "w"})
}

func (p *session) step(dur int64, decode, prompt int32) {
	p.emit(dur, event.Event{Kind: event.KindStep, Dur: dur, N: decode, Prompt: prompt})
}

// request returns one request of a new snapshot.
func (p *session) request(t testing.TB, id event.RequestID) *Request {
	t.Helper()
	for _, r := range p.store.Snapshot().Requests {
		if r.ID == id {
			return r
		}
	}
	t.Fatalf("request %d is not in the snapshot", id)
	return nil
}

// want compares a reading with the expected number, or with the expected word if it must be absent.
func want(t testing.TB, name string, got event.Reading, expected any) {
	t.Helper()
	switch x := expected.(type) {
	case string:
		if got.OK() || got.Absence() != x {
			t.Errorf("%s = %+v, want %s", name, got, x)
		}
	case float64:
		if !got.OK() || math.Abs(got.V-x) > 1e-9*math.Abs(x) {
			t.Errorf("%s = %+v, want %v", name, got, x)
		}
	default:
		t.Fatalf("compare %s with a %T: want a float64 or a string", name, expected)
	}
}
