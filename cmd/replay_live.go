package cmd

import (
	"cmp"
	"context"
	"io"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/report"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/profiler/trace"
	"github.com/llmtop/llmtop/ui"
)

// replay is a recording on the screen. A seek back fills a new store from the beginning.
type replay struct {
	player *trace.Player
	opt    store.Options
	store  atomic.Pointer[store.Store]
	hush   func(event.Sink) event.Sink
	played *played // nil: the recording is of one engine
}

// open prepares to show a recording; clock is what it is paced by, nil: the clock of the machine.
func (o *replayOptions) open(rec *trace.Recording, clock func() time.Time) (r *replay, err error) {
	r = &replay{hush: o.view.hush}
	opt := trace.PlayOptions{Codec: newCodec, Speed: o.speed, Paused: o.paused, Clock: clock, Reset: r.reset, Drain: func() { r.snapshot() }}
	if rec.Several {
		r.played = &played{rec: rec, make: r.engine}
		opt.Of, opt.Drain, opt.Rebuild = r.played.of, r.played.drain, severalRebuild
	}
	if r.player, err = trace.NewPlayer(rec, opt); err != nil {
		return nil, usageError{err}
	}
	r.opt = store.Options{Now: r.player.Now, Wall: r.player.Wall, Targets: o.targets}
	return r, nil
}

// screen configures the ui.
func (o *replayOptions) screen(r *replay) ui.Config {
	cfg := o.view.screen()
	cfg.Snapshots, cfg.Replay = r.snapshot, r.player
	cfg.Actions.Report = reporting(report.Meta{Elsewhere: true, Configuration: replayed(o.file, &o.view)})
	if p := r.played; p != nil {
		p.actions = cfg.Actions
		cfg.Several = len(p.rec.Sources) > 1
		cfg.Sessions = func() []ui.Session { return p.sessions(r.player.Status().State == trace.Seeking) }
	}
	return cfg
}

// runCast records what the screen shows of a recording, on a clock that goes on by a frame as soon as a frame has been made: as fast as
// that can be, and always the same.
func (o *replayOptions) runCast(ctx context.Context, rec *trace.Recording, notes io.Writer) error {
	ctx, stop := interruptible(ctx, errClosed)
	defer stop()
	begin := time.Unix(0, 0)
	now := begin
	r, err := o.open(rec, func() time.Time { return now })
	if err != nil {
		return err
	}
	if err := r.player.Begin(r.reset()); err != nil {
		return err
	}
	return closedInOrder(o.camera.shoot(ctx, shot{
		screen: o.screen(r), wall: rec.Wall(rec.Begin),
		until: func(_ context.Context, at time.Duration) (time.Duration, error) {
			now = begin.Add(at)
			return at, r.player.Advance()
		},
		ended: func() bool { return r.player.Status().State == trace.Ended },
	}, notes))
}

// runLive opens the screen over a recording.
func (o *replayOptions) runLive(ctx context.Context, rec *trace.Recording) error {
	ctx, stop := interruptible(ctx, errClosed)
	defer stop()
	r, err := o.open(rec, nil)
	if err != nil {
		return err
	}
	sink := r.reset()
	group, ctx := errgroup.WithContext(ctx)
	ctx, stop = context.WithCancel(ctx)
	defer stop()
	group.Go(guarded("replay", func() error { return r.player.Run(ctx, sink) }))
	alerts := newAlerting(o.tables.alerts, true, true)
	defer alerts.close() // it has no error
	if alerts != nil {
		r.watch(ctx, group, alerts)
	}
	group.Go(func() error {
		defer stop()
		cfg := o.screen(r)
		cfg.Alerts = alerts.status()
		return o.view.open(ctx, cfg)
	})
	return group.Wait()
}

// watch holds the rules of the user against all engines of the recording.
func (r *replay) watch(ctx context.Context, group *errgroup.Group, alerts *alerting) {
	follow := func(name string, at func() *store.Store) {
		group.Go(guarded("watch alerts", func() error {
			alerts.follow(ctx, name, at)
			return nil
		}))
	}
	if r.played == nil {
		follow("", r.store.Load)
		return
	}
	nothing := store.New(store.Options{Now: r.player.Now, Queue: 1})
	for n, s := range r.played.rec.Sources {
		follow(s.Name, func() *store.Store { return cmp.Or(r.played.at(n), nothing) })
	}
}

// engine makes a store for one of several engines.
func (r *replay) engine(int) (*store.Store, event.Sink) {
	opt := r.opt
	opt.Queue = serverQueue
	s := store.New(opt)
	return s, r.hush(s)
}

// reset begins anew with a store that has seen nothing.
func (r *replay) reset() event.Sink {
	if r.played != nil {
		r.played.reset()
		return nil
	}
	s := store.New(r.opt)
	r.store.Store(s)
	return r.hush(s)
}

func (r *replay) snapshot() *store.Snapshot { return r.store.Load().Snapshot() }
