package runtime

import (
	"context"
	"errors"
	"fmt"
	goruntime "runtime"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
)

// driver is the goroutine of Run with all that it alone may touch.
type driver struct {
	*Scheduler
	engine Engine
	keeper Keeper // the engine, if it is one and may keep what it has computed
	info   event.Engine
	model  event.Model
	thread int // operating system's id of the thread it runs on; 0 unknown

	slots   []slot
	running []*slot // those in use, in order of dispatch
	prompt  []int32 // of the request that is being dispatched
	batch   Batch
	batched []*slot // those with rows in batch, in order of the rows
	steps   uint64
	hooked  Hooks   // as set in the engine
	pacing  float64 // as of the last look at the settings
	held    bool    // paused, likewise
	timer   *time.Timer
	late    event.Time // by how much the timer rang late for the batch to come

	loadFrom, loadTo event.Time
	cells            int64      // KV cells in use
	reported         event.Time // when KV and experts were last emitted
	reportedOps      event.Time // when the times of operations were

	tops  slab[event.TopProb]
	picks slab[uint16]
	kv    slab[event.KV]
}

// Run loads the engine and runs requests on it until ctx ends or the engine breaks, then ends all requests and closes the
// engine. It keeps its thread to itself, so that the engine's share of the CPU can be told from the rest. It may be called once.
func (s *Scheduler) Run(ctx context.Context, sink event.Sink) error {
	goruntime.LockOSThread()
	defer goruntime.UnlockOSThread()
	defer context.AfterFunc(ctx, s.poke)()
	d := &driver{
		Scheduler: s, thread: claimThread("llmtop-engine"), info: s.opt.Engine, timer: time.NewTimer(time.Hour),
		tops: slab[event.TopProb]{size: 512}, picks: slab[uint16]{size: 8192}, kv: slab[event.KV]{size: 64},
	}
	if err := d.begin(sink); err != nil {
		return err
	}
	d.timer.Stop()
	err := guarded(func() error {
		if err := d.open(ctx); err != nil {
			return err // names the model
		}
		return d.loop(ctx)
	})
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		err = nil
	}
	return d.end(err)
}

// begin takes the sink and the settings, and announces what was submitted before.
func (d *driver) begin(sink event.Sink) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.sink != nil {
		return errors.New("run scheduler: it can run only once")
	}
	d.sink, d.pacing, d.held = sink, d.pace, d.paused
	d.introduce(event.EngineLoading, "")
	for _, h := range d.queue {
		d.announce(h)
	}
	return nil
}

// guarded calls what may call the engine; a panic on the way becomes an error.
func guarded(call func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: panic: %v\n%s", ErrBroken, p, debug.Stack())
		}
	}()
	return call()
}

// open loads the engine and introduces it.
func (d *driver) open(ctx context.Context) error {
	d.loadFrom = d.clock.Now()
	e, err := d.load(ctx, func(l LoadStage) {
		d.sink.Emit(event.Event{
			Kind: event.KindStage, At: d.clock.At(l.Start.Add(l.Dur)), Dur: int64(l.Dur), Stage: l.Stage, Text: l.Name, Layer: -1,
		})
	})
	if err != nil {
		return err
	}
	d.loadTo = d.clock.Now()
	took := int64(d.loadTo - d.loadFrom)
	d.stage(0, event.StageLoad, -1, d.loadTo, took, 0)
	d.engine, d.info, d.model = e, e.Info(), e.Model()
	d.prepare()
	model := d.model
	d.sink.Emit(event.Event{Kind: event.KindModel, At: d.loadTo, Dur: took, Layer: -1, Data: &model})
	d.log("loaded %s in %v", d.model.Name, time.Duration(took).Round(time.Microsecond))
	d.ready.Store(d)
	d.mu.Lock()
	d.loading = false
	d.mu.Unlock()
	d.changed.Store(true)
	d.introduce(d.state(), "")
	return nil
}

// prepare makes the slots and the buffers of the batch.
func (d *driver) prepare() {
	rows := d.engine.MaxBatch()
	if d.opt.Reuse {
		d.keeper, _ = d.engine.(Keeper)
	}
	d.slots = make([]slot, min(d.engine.Slots(), rows))
	for i := range d.slots {
		d.slots[i].index = int32(i)
		d.slots[i].layers = make([]LayerTime, d.model.Layers)
	}
	d.running = make([]*slot, 0, len(d.slots))
	d.batched = make([]*slot, 0, len(d.slots))
	d.batch.Rows = make([]Row, 0, rows)
	d.info.PID = d.opt.Engine.PID
	d.info.Slots = len(d.slots)
	d.info.Caps |= d.opt.Engine.Caps & event.CapSample
	d.info.Caps |= event.CapStages | event.CapTokens | event.CapText | event.CapKV | event.CapSteps | event.CapQueue | event.CapPrompt
	if d.model.Experts > 0 {
		d.info.Caps |= event.CapExperts | event.CapPicks
	}
	if _, ok := d.engine.(Profiled); ok {
		d.info.Caps |= event.CapOps
	}
}

// loop runs batch after batch. An error means that the engine is broken.
func (d *driver) loop(ctx context.Context) error {
	for ctx.Err() == nil {
		if d.changed.Swap(false) {
			d.apply()
			d.reap()
		}
		d.admit()
		now := d.clock.Now()
		if at, ok := d.next(now); !ok || at > now {
			d.sleep(ok, time.Duration(at-now))
			continue
		}
		if err := d.step(now); err != nil {
			return err
		}
		d.late = 0
	}
	return ctx.Err()
}

// next says when there is something to compute: now, when a paced token is due, or not before something changes.
func (d *driver) next(now event.Time) (at event.Time, ok bool) {
	if d.held {
		return 0, false
	}
	for _, s := range d.running {
		if !s.decoding() {
			return now, true
		}
		if !ok || s.due < at {
			at, ok = s.due, true
		}
	}
	return at, ok
}

// sleep waits for a change, and no longer than span if it is timed.
func (d *driver) sleep(timed bool, span time.Duration) {
	if !timed {
		<-d.wake
		return
	}
	due := d.clock.Now() + event.Time(span)
	d.timer.Reset(span)
	select {
	case <-d.wake:
	case <-d.timer.C:
		d.late = d.clock.Now() - due
	}
	d.timer.Stop()
}

// apply takes over the settings.
func (d *driver) apply() {
	d.mu.Lock()
	hooks, pace, paused := d.hooks, d.pace, d.paused
	d.mu.Unlock()
	for _, s := range d.running {
		hooks.Picks = hooks.Picks || s.handle.request.Picks
	}
	if hooks != d.hooked {
		d.engine.SetHooks(hooks)
		d.hooked = hooks
	}
	if pace == d.pacing && paused == d.held {
		return
	}
	resumed := d.held && !paused
	d.pacing, d.held = pace, paused
	now := d.clock.Now()
	for _, s := range d.running {
		s.repace(now, d.interval(), resumed)
	}
	d.introduce(d.state(), "")
}

// state is what a loaded engine is doing.
func (d *driver) state() event.EngineState {
	if d.held {
		return event.EnginePaused
	}
	return event.EngineReady
}

// interval is the time between the tokens of a paced request; 0 is flat out.
func (d *driver) interval() event.Time {
	if d.pacing <= 0 {
		return 0
	}
	return event.Time(float64(time.Second) / d.pacing)
}

// end ends all requests and the engine, and says why.
func (d *driver) end(err error) error {
	r := Result{State: event.StateCancelled, Outcome: event.Outcome{Reason: reasonCancelled}}
	state, reason := event.EngineStopped, ""
	if err != nil {
		state = event.EngineFailed
		reason, _, _ = strings.Cut(err.Error(), "\n") // what follows is a stack
		r = Result{State: event.StateFailed, Outcome: event.Outcome{Reason: reason}, Err: err}
	}
	d.ready.Store(nil)
	for _, s := range slices.Clone(d.running) {
		if e := guarded(func() error { d.release(s, r); return nil }); err == nil {
			err = e
		}
	}
	d.stop(r)
	if d.engine != nil {
		if e := guarded(d.engine.Close); e != nil {
			err = errors.Join(err, fmt.Errorf("close engine: %w", e))
		}
	}
	if reason != "" {
		d.log("%s", reason)
	}
	d.introduce(state, reason)
	return err
}
