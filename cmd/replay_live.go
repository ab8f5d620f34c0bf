package cmd

import (
	"cmp"
	"context"
	"io"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/recording"
	"github.com/llmtop/llmtop/profiler/report"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/ui"
)

// replay is a recording on the screen. A seek back fills a new store from the beginning.
type replay struct {
	player *recording.Player
	opt    store.Options
	store  atomic.Pointer[store.Store]
	hush   func(event.Sink) event.Sink
	played *played // nil: recording of one engine
}

// open prepares a recording for the screen. clock sets the pace; nil: the system clock.
func (o *replayOptions) open(rec *recording.Recording, clock func() time.Time) (r *replay, err error) {
	r = &replay{hush: o.view.dropCastText}
	opt := recording.PlayOptions{Codec: newCodec, Speed: o.speed, Paused: o.paused, Clock: clock, Reset: r.reset, Drain: func() { r.snapshot() }}
	if rec.MultiEngine {
		r.played = &played{rec: rec, newStore: r.engine}
		opt.SinkFor, opt.Drain, opt.Rebuild = r.played.sinkOf, r.played.drain, severalRebuild
	}
	if r.player, err = recording.NewPlayer(rec, opt); err != nil {
		return nil, usageError{err}
	}
	r.opt = store.Options{Now: r.player.Now, Wall: r.player.Wall, Targets: o.targets}
	return r, nil
}

// screen returns the configuration of the screen.
func (o *replayOptions) screen(r *replay) ui.Config {
	cfg := o.view.screen()
	cfg.Snapshots, cfg.Replay = r.snapshot, r.player
	cfg.Actions.Report = reporting(report.Meta{Remote: true, Configuration: replayed(o.file, &o.view)})
	if p := r.played; p != nil {
		p.actions = cfg.Actions
		cfg.StartWithList = len(p.rec.Engines) > 1
		cfg.Sessions = func() []ui.Session { return p.sessions(r.player.Status().State == recording.Seeking) }
	}
	return cfg
}

// runCast records the screen of a recording with a clock that advances by one frame per frame: as fast as possible, and
// always the same.
func (o *replayOptions) runCast(ctx context.Context, rec *recording.Recording, notes io.Writer) error {
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
	return ignoreClosed(o.camera.shoot(ctx, shot{
		screen: o.screen(r), wall: rec.Wall(rec.Begin),
		until: func(_ context.Context, at time.Duration) (time.Duration, error) {
			now = begin.Add(at)
			return at, r.player.Advance()
		},
		ended: func() bool { return r.player.Status().State == recording.Ended },
	}, notes))
}

// runLive opens the screen over a recording.
func (o *replayOptions) runLive(ctx context.Context, rec *recording.Recording) error {
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
	defer alerts.close() // always returns nil
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

// watch evaluates the alert rules for all engines of the recording.
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
	for n, s := range r.played.rec.Engines {
		follow(s.Name, func() *store.Store { return cmp.Or(r.played.storeOf(n), nothing) })
	}
}

// engine creates the store of one of several engines.
func (r *replay) engine(int) (*store.Store, event.Sink) {
	opt := r.opt
	opt.Queue = serverQueue
	s := store.New(opt)
	return s, r.hush(s)
}

// reset starts again with an empty store.
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
