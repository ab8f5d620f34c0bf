package engine

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

// driver holds the state that only the goroutine of Run accesses.
type driver struct {
	*Scheduler
	engine Engine
	info   event.EngineInfo
	model  event.Model
	thread int // thread id of Run's thread; 0 if not available

	slots       []slot
	running     []*slot // occupied slots, in order of dispatch
	prompt      []int32 // tokens of the request being dispatched
	batch       Batch
	batched     []*slot // slots with rows in batch, in order of the rows
	steps       uint64
	activeHooks Hooks   // as last set in the engine
	appliedPace float64 // pace last applied, in tokens/s
	suspended   bool    // whether the engine is paused, as last applied
	timer       *time.Timer
	timerDelay  event.Time // delay of the timer before the next batch

	loadFrom, loadTo event.Time
	usedCells        int64      // KV cells in use
	lastReport       event.Time // time of the last KV and expert report
	lastOpsReport    event.Time // time of the last report of operation times

	tops  slab[event.TopProb]
	picks slab[uint16]
	kv    slab[event.KV]
}

// Run loads the engine, runs requests until ctx ends or the engine breaks, then ends all requests and closes the
// engine. It locks its goroutine to a thread, so that the engine's CPU time can be separated from the rest. It can be
// called once.
func (s *Scheduler) Run(ctx context.Context, sink event.Sink) error {
	goruntime.LockOSThread()
	defer goruntime.UnlockOSThread()
	defer context.AfterFunc(ctx, s.wakeDriver)()
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
			return err // already names the model
		}
		return d.loop(ctx)
	})
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		err = nil
	}
	return d.end(err)
}

// begin stores the sink, applies the settings and announces requests submitted before Run.
func (d *driver) begin(sink event.Sink) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.sink != nil {
		return errors.New("run scheduler: it can run only once")
	}
	d.sink, d.appliedPace, d.suspended = sink, d.pace, d.paused
	d.reportEngine(event.EngineLoading, "")
	for _, h := range d.queue {
		d.announce(h)
	}
	return nil
}

// guarded calls a function that may call the engine and converts a panic to an error.
func guarded(call func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: panic: %v\n%s", ErrBroken, p, debug.Stack())
		}
	}()
	return call()
}

// open loads the engine and reports it.
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
	d.changed.Store(true)
	d.reportEngine(d.state(), "")
	return nil
}

// prepare allocates the slots and the buffers of the batch.
func (d *driver) prepare() {
	rows := d.engine.MaxBatch()
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
	d.info.Caps |= event.CapStages | event.CapTokens | event.CapText | event.CapKV | event.CapSteps | event.CapQueue |
		event.CapPrompt | event.CapCancel | event.CapPause | event.CapHooks
	if d.model.Experts > 0 {
		d.info.Caps |= event.CapExperts | event.CapPicks
	}
}

// loop runs batches until ctx ends. An error means that the engine is broken.
func (d *driver) loop(ctx context.Context) error {
	for ctx.Err() == nil {
		if d.changed.Swap(false) {
			d.apply()
			d.reap()
		}
		d.admit()
		now := d.clock.Now()
		if at, ok := d.nextDue(now); !ok || at > now {
			d.sleep(ok, time.Duration(at-now))
			d.chargePacing(now)
			continue
		}
		if err := d.step(now); err != nil {
			return err
		}
		d.timerDelay = 0
	}
	return ctx.Err()
}

// nextDue returns when there is work: now, or when the next paced token is due. ok is false if none exists.
func (d *driver) nextDue(now event.Time) (at event.Time, ok bool) {
	if d.suspended {
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

// sleep waits for a change of settings or queue; if timed is set, at most span.
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
		d.timerDelay = d.clock.Now() - due
	}
	d.timer.Stop()
}

// chargePacing adds a sleep of the engine since from to the requests that waited in the queue, if paced requests held
// all slots or the engine was paused. Otherwise, a new request has ended the sleep.
func (d *driver) chargePacing(from event.Time) {
	if !d.suspended && len(d.running) < len(d.slots) {
		return
	}
	to := d.clock.Now()
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, h := range d.queue {
		h.paced += max(to-max(from, h.enqueued), 0)
	}
}

// apply applies changed settings to the engine and the running requests.
func (d *driver) apply() {
	d.mu.Lock()
	hooks, pace, paused := d.hooks, d.pace, d.paused
	d.mu.Unlock()
	for _, s := range d.running {
		hooks.Picks = hooks.Picks || s.handle.request.Picks
	}
	if hooks != d.activeHooks {
		d.engine.SetHooks(hooks)
		d.activeHooks = hooks
	}
	if pace == d.appliedPace && paused == d.suspended {
		return
	}
	resumed := d.suspended && !paused
	d.appliedPace, d.suspended = pace, paused
	now := d.clock.Now()
	for _, s := range d.running {
		s.repace(now, d.interval(), resumed)
	}
	d.reportEngine(d.state(), "")
}

// state returns whether the loaded engine is ready or paused.
func (d *driver) state() event.EngineState {
	if d.suspended {
		return event.EnginePaused
	}
	return event.EngineReady
}

// interval returns the time between the tokens of a paced request; 0 means unlimited.
func (d *driver) interval() event.Time {
	if d.appliedPace <= 0 {
		return 0
	}
	return event.Time(float64(time.Second) / d.appliedPace)
}

// end ends all requests, closes the engine and reports the reason.
func (d *driver) end(err error) error {
	r := Result{State: event.StateCancelled, Outcome: event.Outcome{Reason: reasonCancelled}}
	state, reason := event.EngineStopped, ""
	if err != nil {
		state = event.EngineFailed
		reason, _, _ = strings.Cut(err.Error(), "\n") // a stack trace may follow
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
	d.reportEngine(state, reason)
	return err
}
