package watch

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/llmtop/llmtop/cmd/address"
	"github.com/llmtop/llmtop/cmd/exit"
	"github.com/llmtop/llmtop/cmd/session"
	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/recording"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/runtime/engine"
	"github.com/llmtop/llmtop/runtime/engine/remote"
	"github.com/llmtop/llmtop/runtime/host"
	"github.com/llmtop/llmtop/runtime/source/probe"
	"github.com/llmtop/llmtop/runtime/source/socket"
	"github.com/llmtop/llmtop/ui"
)

// watcher holds the watched engines.
type watcher struct {
	opt     *Options
	token   string
	key     string // API key of servers
	clock   engine.Clock
	group   *session.Group
	tasks   *errgroup.Group         // everything that runs next to the screen
	stop    context.CancelFunc      // ends watching
	machine session.Machine         // passes samples of this machine to the sessions of its servers
	sampled chan struct{}           // closed after the last sample
	reached chan struct{}           // closed at the first connection to an engine
	past    *store.PastBudget       // of all engines; nil without a screen
	probes  map[string]*probe.Probe // open ones, by address

	onceReached sync.Once // closes reached

	mu       sync.Mutex // guards what follows
	engines  []watched
	merged   map[string]bool           // addresses of processes that other engines show
	sockets  map[string]*socket.Client // by the address of the engine that each follows now
	onScreen []ui.Session              // of the visible engines, which the screen takes once per frame; nil: outdated
}

// watched is an engine to watch. run is its source.
type watched struct {
	at          string // address and name
	doing       string // for errors of run
	run         func(context.Context, event.Sink) error
	session     *session.Session
	queue       int             // capacity of the event queue; 0: the default
	unalerted   bool            // alert rules are not evaluated
	client      *socket.Client  // nil: no event socket
	hosted      *session.Hosted // of client: whether its engine runs here shows once it is connected
	fleet       bool            // a Prometheus that reports other engines
	inspector   *host.Inspector // nil: its model is not a file of this machine for certain
	hostUnknown bool            // unknown whether the engine runs on this machine
	onScreen    ui.Session      // set by start
}

// sharedPastBytes is what is kept of the past of all engines together, so that the screen can go back in time.
const sharedPastBytes = 24 << 20

// watchReached is watchAll, and returns an error if no engine could be watched, unless only a screen says so.
func (w *watcher) watchReached(ctx context.Context) error {
	err := w.watchAll(ctx)
	if err == nil && (!w.opt.shown || w.opt.reported) {
		return w.unreached()
	}
	return err
}

// watchAll shows the engines until the user or a signal closes the screen, or without a screen until a signal arrives.
func (w *watcher) watchAll(ctx context.Context) (err error) {
	ctx, stop := exit.WithSignals(ctx, exit.ErrClosed)
	defer stop()
	o := w.opt
	w.group, err = o.Outputs.Open(session.Options{Clock: w.clock, View: &o.View, Shown: o.shown, Several: o.several(), Meta: o.meta()})
	if err != nil {
		return err
	}
	if o.shown {
		w.past = store.NewPastBudget(sharedPastBytes)
	}
	return w.group.Close(w.runAll(ctx))
}

// runAll shows the engines until ctx ends or the screen is closed.
func (w *watcher) runAll(ctx context.Context) error {
	o := w.opt
	tasks, ctx := errgroup.WithContext(ctx)
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	w.tasks, w.stop = tasks, stop
	if err := w.addAll(ctx); err != nil {
		close(w.sampled)
		stop()
		_ = tasks.Wait() // engines that were added before still write notes
		return err
	}
	tasks.Go(session.Guarded("sample host", func() error {
		defer close(w.sampled)
		defer w.machine.Close()
		return host.New(host.Options{Clock: w.clock, NoGPU: !w.watchesLocal(), NoRead: w.onlyServers()}).Run(ctx, &w.machine)
	}))
	o.announce()
	tasks.Go(func() error {
		defer stop()
		if !o.shown {
			<-w.limited(ctx).Done()
			return nil
		}
		cfg := w.group.Screen()
		cfg.Sessions, cfg.Note = w.sessions, o.Note
		// When replicas replace a Prometheus on the screen, it lists them. They may be there before the screen is.
		cfg.StartWithList = func() bool { return o.fleets() && !w.visible()[0].fleet }
		return o.Show(w.limited(ctx), cfg)
	})
	return tasks.Wait()
}

// limited returns a context that also ends when the time is over, if it is limited. The time that an engine is waited for
// by its name does not count.
func (w *watcher) limited(ctx context.Context) context.Context {
	if w.opt.length == 0 {
		return ctx
	}
	ctx, end := context.WithCancelCause(ctx)
	w.tasks.Go(func() error {
		if at := w.opt.Addresses; len(at) > 0 && !slices.ContainsFunc(at, func(at string) bool { return !socket.IsName(at) }) {
			select {
			case <-ctx.Done():
			case <-w.reached:
			}
		}
		select {
		case <-ctx.Done():
		case <-time.After(w.opt.length):
		}
		end(exit.ErrClosed)
		return nil
	})
	return ctx
}

// addAll starts to watch the given addresses, or without any the event sockets found.
func (w *watcher) addAll(ctx context.Context) error {
	o := w.opt
	for _, at := range o.Addresses {
		if err := w.add(ctx, at); err != nil {
			return exit.Usage(err)
		}
	}
	if o.Traces != "" {
		return w.addTraces(ctx)
	}
	if len(o.Addresses) == 0 {
		if err := w.addDiscovered(ctx); err != nil {
			return exit.Usage(err)
		}
		w.tasks.Go(func() error { return w.discover(ctx) })
	}
	return nil
}

// add starts to watch the engine at an address. It returns an error for an unusable address; the screen shows later
// errors.
func (w *watcher) add(ctx context.Context, at string) error {
	switch {
	case w.opt.tap != nil:
		return addTap(ctx, w, at)
	case w.probes[at] != nil:
		return addProbed(ctx, w, at, w.probes[at])
	case address.IsFleet(at):
		return w.addFleet(ctx, at)
	case remote.IsAddress(at):
		return w.addServer(ctx, at)
	}
	return w.addSocket(ctx, at)
}

// newSession creates the session of an engine. It keeps all requests for a report.
func (w *watcher) newSession(name string, queue int) *session.Session {
	opt := store.Options{Queue: queue, Past: w.past}
	if !w.opt.reported {
		return w.group.New(name, opt)
	}
	ending := &stoppableClock{clock: w.clock}
	opt.Keep, opt.Now, opt.Wall = store.DefaultKeep, ending.now, ending.wall
	s := w.group.New(name, opt)
	s.AlsoTo(ending)
	s.AtEnd(func() error { // before the recording is closed
		ending.end(s)
		return nil
	})
	return s
}

// start starts the session of an engine, with the sources that more adds.
func (w *watcher) start(ctx context.Context, e watched, more ...func(*session.Session)) (event.Sink, error) {
	if e.session == nil {
		e.session = w.newSession(e.at, e.queue)
	}
	s := e.session
	if !e.unalerted {
		w.group.Alerts.Watch(s, w.alertName(e.at))
	}
	if err := w.group.Record(s, recording.EngineEntry{Name: e.at, Fleet: e.fleet, Local: e.local()}); err != nil {
		return nil, err
	}
	if !w.opt.shown {
		s.AlsoTo(linkNotes(w.opt.Notes, e.at))
	}
	s.AlsoTo(event.SinkFunc(func(ev event.Event) {
		if p, ok := ev.Data.(*event.EngineInfo); ok && p != nil && p.Remote.Link == event.LinkConnected {
			w.onceReached.Do(func() { close(w.reached) })
		}
	}))
	if e.run != nil {
		s.Add(e.doing, session.WithReason(w.opt.Note, e.run))
	}
	for _, f := range more {
		f(s)
	}
	w.tasks.Go(func() error { return w.watch(ctx, s, e.at) })
	e.onScreen = e.screenSession(w.opt)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.engines, w.onScreen = append(w.engines, e), nil
	return s, nil
}

// watch runs a session until ctx ends. If an engine refuses the connection (ErrToken, ErrVersion) and is the only one,
// the error is returned if it was never reached or there is no screen; otherwise the screen shows it.
func (w *watcher) watch(ctx context.Context, s *session.Session, at string) error {
	err := s.RunUntil(ctx, func() { <-w.sampled }) // keep the session open for the last sample
	switch refused := errors.Is(err, socket.ErrToken) || errors.Is(err, socket.ErrVersion); {
	case err == nil, refused && len(w.opt.Addresses) != 1:
		return nil
	case refused && s.Store.Snapshot().NeverReached():
		return exit.Usage(err) // it names the address
	case refused && w.opt.shown:
		return nil
	}
	return fmt.Errorf("%s %s: %w", w.opt.verb(), at, err)
}

// alertName returns the name of an engine in alerts, "" if it is the only one.
func (w *watcher) alertName(at string) string {
	if len(w.opt.Addresses) == 1 {
		return ""
	}
	return at
}

// local reports whether the engine runs on this machine for certain.
func (e *watched) local() bool {
	return e.client == nil && !e.hostUnknown && remote.IsLocal(e.at)
}

// remote reports whether the engine runs, or may run, on another machine.
func (e *watched) remote() bool { return !e.local() && !e.hosted.Here() }

func (w *watcher) watches(at string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.sockets[at] != nil || slices.ContainsFunc(w.engines, func(e watched) bool { return e.client == nil && e.at == at })
}

// visible returns the engines to show: a Prometheus only while there is nothing else.
func (w *watcher) visible() []watched {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.visibleLocked()
}

// visibleLocked is visible for callers that hold mu.
func (w *watcher) visibleLocked() []watched {
	out := make([]watched, 0, len(w.engines))
	for _, e := range w.engines {
		if !e.fleet && !w.merged[e.at] {
			out = append(out, e)
		}
	}
	if len(out) == 0 {
		out = append(out, w.engines...)
	}
	return out
}

// sessions returns a session of the screen for each engine. The caller must not change them.
func (w *watcher) sessions() []ui.Session {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.onScreen == nil {
		for _, e := range w.visibleLocked() {
			w.onScreen = append(w.onScreen, e.onScreen)
		}
	}
	return w.onScreen
}

// screenSession returns the session of the screen.
func (e *watched) screenSession(o *Options) ui.Session {
	s := e.session
	shown := s.OnScreen(e.at)
	if e.client != nil {
		shown.Actions = actions(e.client)
	}
	of := *e
	shown.Actions.Report = func(s *store.Snapshot) ([]byte, error) {
		meta := o.meta()
		meta.Remote, meta.Configuration["attach"] = of.remote(), of.at
		return session.ReportAction(meta)(s)
	}
	if e.inspector != nil && host.Inspects {
		shown.Actions.Watch, shown.Actions.Inspect = e.inspector.Watch, e.inspector.Inspect
	}
	shown.Actions.Timeline = session.TimelineAction(s.Store)
	return shown
}
