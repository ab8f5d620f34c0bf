package cmd

import (
	"context"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/report"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/profiler/trace"
)

// replay is a recording on the screen. A seek back fills a new store from the beginning.
type replay struct {
	player *trace.Player
	opt    store.Options
	store  atomic.Pointer[store.Store]
}

// runLive opens the screen over a recording.
func (o *replayOptions) runLive(ctx context.Context, rec *trace.Recording) error {
	ctx, stop := interruptible(ctx, errClosed)
	defer stop()
	r := &replay{}
	var err error
	r.player, err = trace.NewPlayer(rec, trace.PlayOptions{
		Codec: newCodec, Speed: o.speed, Paused: o.paused, Reset: r.reset, Drain: func() { r.snapshot() },
	})
	if err != nil {
		return usageError{err}
	}
	r.opt = store.Options{Now: r.player.Now, Wall: r.player.Wall, TTFTTarget: o.ttftTarget}
	sink := r.reset()
	group, ctx := errgroup.WithContext(ctx)
	ctx, stop = context.WithCancel(ctx)
	defer stop()
	group.Go(guarded("replay", func() error { return r.player.Run(ctx, sink) }))
	alerts := newAlerting(o.tables.alerts, true, true)
	defer alerts.close() // it has no error
	if alerts != nil {
		group.Go(guarded("watch alerts", func() error {
			alerts.follow(ctx, "", r.store.Load)
			return nil
		}))
	}
	group.Go(func() error {
		defer stop()
		cfg := o.view.screen()
		cfg.Alerts = alerts.status()
		cfg.Snapshots, cfg.Replay = r.snapshot, r.player
		cfg.Actions.Report = reporting(report.Meta{Elsewhere: true, Configuration: replayed(o.file, o.ttftTarget)})
		return show(ctx, cfg)
	})
	return group.Wait()
}

// reset begins anew with a store that has seen nothing.
func (r *replay) reset() event.Sink {
	s := store.New(r.opt)
	r.store.Store(s)
	return s
}

func (r *replay) snapshot() *store.Snapshot { return r.store.Load().Snapshot() }
