package cmd

import (
	"sync/atomic"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime"
)

// ending is the clock of a session that is reported when it is over: from then on it stands still, and a recording of the session ends at that moment, so
// that it tells the same.
type ending struct {
	clock  runtime.Clock
	engine atomic.Pointer[event.Engine] // as it was introduced last
	at     atomic.Int64                 // 0: it is not over
}

// Emit implements event.Sink.
func (d *ending) Emit(e event.Event) {
	if p, ok := e.Data.(*event.Engine); ok && p != nil {
		d.engine.Store(p)
	}
}

// end stops the clock, and has what records the session say that the engine was there until now; nil: nothing does.
func (d *ending) end(recorder event.Sink) {
	now := d.clock.Now()
	if e := d.engine.Load(); e != nil && recorder != nil {
		recorder.Emit(event.Event{Kind: event.KindEngine, At: now, Layer: -1, Data: e})
	}
	d.at.Store(int64(now))
}

func (d *ending) now() event.Time {
	if at := d.at.Load(); at != 0 {
		return event.Time(at)
	}
	return d.clock.Now()
}

func (d *ending) wall() time.Time { return time.Unix(0, d.clock.Epoch()+int64(d.now())) }
