package playback

import (
	"cmp"
	"context"
	"io"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/llmtop/llmtop/cmd/exit"
	"github.com/llmtop/llmtop/cmd/screen"
	"github.com/llmtop/llmtop/cmd/session"
	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/recording"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/ui"
	"github.com/llmtop/llmtop/ui/view"
)

// maxRebuild is how many bytes a seek in a recording of several engines reads at most.
const maxRebuild = 32 << 20

// load prepares a recording for the screen. clock sets the pace; nil: the system clock.
func (o *Options) load(rec *recording.Recording, clock func() time.Time) (*played, error) {
	opt := recording.PlayOptions{Speed: o.speed, Paused: o.paused, Clock: clock}
	if rec.MultiEngine {
		opt.Rebuild = maxRebuild
	}
	return newPlayed(rec, o.Targets, opt, func(_ int, opt store.Options) (*store.Store, event.Sink) {
		s := store.New(opt)
		return s, o.DropCastText(s)
	})
}

// screen returns the configuration of the screen.
func (o *Options) screen(r *played) ui.Config {
	cfg := o.View.Config()
	cfg.Replay = r.player
	r.actions = view.Actions{Report: session.ReportAction(replayed(r.rec, o.file, &o.View)), Timeline: o.timeline}
	if r.rec.MultiEngine {
		cfg.StartWithList = func() bool { return len(r.rec.Engines) > 1 }
		cfg.Sessions = func() []ui.Session { return r.sessions(r.player.Status().State == recording.Seeking) }
	} else {
		cfg.Sessions = ui.One(ui.Session{Snapshots: func() *store.Snapshot { return r.snapshot(0) }, Actions: r.actions})
	}
	return cfg
}

// cast records the screen of a recording with a clock that advances by one frame per frame: as fast as possible, and
// always the same.
func (o *Options) cast(ctx context.Context, rec *recording.Recording, notes io.Writer) error {
	ctx, stop := exit.WithSignals(ctx, exit.ErrClosed)
	defer stop()
	begin := time.Unix(0, 0)
	now := begin
	r, err := o.load(rec, func() time.Time { return now })
	if err != nil {
		return err
	}
	if err := r.player.Begin(r.reset()); err != nil {
		return err
	}
	return exit.IgnoreClosed(o.Camera.Shoot(ctx, screen.Shot{
		Screen: o.screen(r), Wall: rec.Wall(rec.Begin),
		Until: func(_ context.Context, at time.Duration) (time.Duration, error) {
			now = begin.Add(at)
			return at, r.player.Advance()
		},
		Ended: func() bool { return r.player.Status().State == recording.Ended },
	}, notes))
}

// live opens the screen over a recording.
func (o *Options) live(ctx context.Context, rec *recording.Recording) error {
	ctx, stop := exit.WithSignals(ctx, exit.ErrClosed)
	defer stop()
	r, err := o.load(rec, nil)
	if err != nil {
		return err
	}
	sink := r.reset()
	group, ctx := errgroup.WithContext(ctx)
	ctx, stop = context.WithCancel(ctx)
	defer stop()
	group.Go(session.Guarded("replay", func() error { return r.player.Run(ctx, sink) }))
	alerts := session.NewAlerts(o.Alerts, true, true)
	defer alerts.Close()
	if alerts != nil {
		r.watch(ctx, group, alerts)
	}
	group.Go(func() error {
		defer stop()
		cfg := o.screen(r)
		cfg.Alerts = alerts.Status()
		return o.View.Show(ctx, cfg)
	})
	return group.Wait()
}

// watch evaluates the alert rules for all engines of the recording.
func (p *played) watch(ctx context.Context, group *errgroup.Group, alerts *session.Alerts) {
	engines := p.rec.Engines
	if !p.rec.MultiEngine {
		engines = make([]recording.EngineEntry, 1)
	}
	nothing := store.New(store.Options{Now: p.player.Now, Queue: 1})
	for n, e := range engines {
		group.Go(session.Guarded("watch alerts", func() error {
			alerts.Follow(ctx, e.Name, func() *store.Store { return cmp.Or(p.storeOf(n), nothing) })
			return nil
		}))
	}
}
