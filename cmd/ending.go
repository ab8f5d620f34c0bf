package cmd

import (
	"sync/atomic"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime/engine"
)

// stoppableClock is the clock of a session that is reported at its end. end stops it, and marks that moment in the
// recording, so that the report of the recording is the same.
type stoppableClock struct {
	clock  engine.Clock
	engine atomic.Pointer[event.EngineInfo] // latest introduction
	at     atomic.Int64                     // when it stopped; 0: still running
}

// Emit implements event.Sink.
func (d *stoppableClock) Emit(e event.Event) {
	if p, ok := e.Data.(*event.EngineInfo); ok && p != nil {
		d.engine.Store(p)
	}
}

// end stops the clock and repeats the introduction of the engine to recorder (nil: not recorded), so that the recording
// lasts until now.
func (d *stoppableClock) end(recorder event.Sink) {
	now := d.clock.Now()
	if e := d.engine.Load(); e != nil && recorder != nil {
		recorder.Emit(event.Event{Kind: event.KindEngine, At: now, Layer: -1, Data: e})
	}
	d.at.Store(int64(now))
}

func (d *stoppableClock) now() event.Time {
	if at := d.at.Load(); at != 0 {
		return event.Time(at)
	}
	return d.clock.Now()
}

func (d *stoppableClock) wall() time.Time { return time.Unix(0, d.clock.Epoch()+int64(d.now())) }
