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

// play is a session with a clock that moves only when told.
type play struct {
	now   event.Time
	store *Store
	ended []*Request
}

func newPlay() *play { return newPlayOf(Targets{}) }

// newPlayOf is one in which requests are held against targets.
func newPlayOf(targets Targets) *play {
	p := &play{now: event.Time(sec)}
	p.store = New(Options{
		Now:       func() event.Time { return p.now },
		Wall:      func() time.Time { return time.Unix(1_700_000_000, int64(p.now)) },
		Targets:   targets,
		OnRequest: func(r *Request) { p.ended = append(p.ended, r) },
	})
	return p
}

// emit sends an event after a wait in ns.
func (p *play) emit(wait int64, e event.Event) {
	p.now += event.Time(wait)
	e.At = p.now
	p.store.Emit(e)
}

func (p *play) engine(caps event.Caps) {
	p.emit(0, event.Event{Kind: event.KindEngine, Data: &event.Engine{Name: "native", Caps: caps, Slots: 2, State: event.EngineReady}})
}

func (p *play) state(wait int64, id event.RequestID, s event.State, data any) {
	p.emit(wait, event.Event{Kind: event.KindRequest, Req: id, State: s, Data: data})
}

// stage lets a stage of a request take its time.
func (p *play) stage(id event.RequestID, s event.Stage, dur int64, n int32) {
	p.emit(dur, event.Event{Kind: event.KindStage, Stage: s, Req: id, Layer: -1, Dur: dur, N: n})
}

func (p *play) token(wait int64, id event.RequestID, n int32) {
	p.emit(wait, event.Event{Kind: event.KindToken, Req: id, N: n, Text: "w"})
}

func (p *play) step(dur int64, decode, prompt int32) {
	p.emit(dur, event.Event{Kind: event.KindStep, Dur: dur, N: decode, Prompt: prompt})
}

// request is the view of one request in a new snapshot.
func (p *play) request(t testing.TB, id event.RequestID) *Request {
	t.Helper()
	for _, r := range p.store.Snapshot().Requests {
		if r.ID == id {
			return r
		}
	}
	t.Fatalf("request %d is not kept", id)
	return nil
}

// want compares readings with what was computed by hand, an absent one with the word for its absence.
func want(t testing.TB, name string, got event.Reading, expected any) {
	t.Helper()
	switch x := expected.(type) {
	case string:
		if got.OK() || got.Why() != x {
			t.Errorf("%s = %+v, want %s", name, got, x)
		}
	case float64:
		if !got.OK() || math.Abs(got.V-x) > 1e-9*math.Abs(x) {
			t.Errorf("%s = %+v, want %v", name, got, x)
		}
	default:
		t.Fatalf("%s is compared with a %T", name, expected)
	}
}
