package cmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/report"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/profiler/trace"
	"github.com/llmtop/llmtop/runtime"
	"github.com/llmtop/llmtop/runtime/api"
	"github.com/llmtop/llmtop/runtime/host"
	"github.com/llmtop/llmtop/runtime/scrape"
	"github.com/llmtop/llmtop/runtime/scrape/fleet"
	"github.com/llmtop/llmtop/runtime/socket"
	"github.com/llmtop/llmtop/ui"
)

// attachOptions are what the attach command is told.
type attachOptions struct {
	view
	recording recording
	probing   probing
	zmq       []string
	imatrix   string
	exports   exports
	traces    traces
	headless  bool
	length    time.Duration // after which it ends, without a screen; 0: when interrupted
	files     reportFiles
	tokenFile string
	key       serverKey
	config    string
	addresses []string
	note      string // why these are watched, "" if the user has named them
	every     time.Duration
	drain     bool

	stdout, notes io.Writer // of a report
	match         string    // which targets of a Prometheus; "": all
}

func newAttachCommand() *cobra.Command {
	var opts attachOptions
	c := &cobra.Command{
		Use:   "attach [ADDRESS...]",
		Short: "Watch engines and servers that run elsewhere",
		Long: `attach shows engines that let others watch, at the addresses unix:PATH or tcp:HOST:PORT: those of llmtop serve, of llmtop run --listen,
and of every engine that speaks the event protocol. Without an address it finds those in ` + homely(socket.Folder()) + `,
also the ones that come later. What breaks off is connected again, and what was seen is kept.

It also watches servers at http://HOST:PORT and https://HOST: llama.cpp, Ollama, vLLM, SGLang, TGI, TensorRT-LLM, LMDeploy and others, found out
by what they answer. They are only read, and made to generate only with --probe. What a server does not tell is not reported. HOST:PORT and
PORT alone are such servers, too, and pid:PROCESS is the engine in a process of this machine.

With --otlp HOST:PORT it also takes the traces that vLLM, SGLang and others send by OpenTelemetry, and makes requests of them, with their stages,
and the waterfall of a model's load.

Replicas that a Prometheus scrapes already are watched through it, at prometheus+http://HOST:PORT: a few questions tell of hundreds of them.

With --record all that is watched goes into one file, which llmtop replay shows again as it was here.

With --headless it needs no terminal: it watches until it is interrupted, or for as long as --for says, and reports. With --record,
--metrics-listen or --otlp-push it records, or tells the metrics of all engines, until it is ended. So it does with alerts in the config
file, which are told on standard error.`,
		Example: `  llmtop attach
  llmtop attach unix:/run/user/1000/llmtop/llmtop-4711.sock
  llmtop attach tcp:127.0.0.1:7070 tcp:127.0.0.1:7071
  llmtop attach http://127.0.0.1:8080 http://gpu1:8000
  llmtop attach 8080
  llmtop attach --headless --for 60s --json report.json http://127.0.0.1:8000
  llmtop attach --otlp 127.0.0.1:4318
  llmtop attach prometheus+http://prometheus:9090 --match 'job="vllm"'`,
		RunE: func(c *cobra.Command, args []string) error {
			opts.addresses = args
			opts.stdout, opts.notes = c.OutOrStdout(), c.ErrOrStderr()
			return opts.run(c.Context())
		},
	}
	opts.traces.bind(c.Flags())
	c.Flags().BoolVar(&opts.headless, "headless", false, "no screen: report when interrupted, exit")
	c.Flags().DurationVar(&opts.length, "for", 0, "end after this long, and report"+headlessOnly)
	opts.files.bind(c.Flags(), headlessOnly)
	opts.view.bind(c.Flags())
	opts.recording.bind(c.Flags())
	opts.exports.bind(c.Flags())
	bindToken(c.Flags(), &opts.tokenFile)
	opts.key.bind(c.Flags(), "of servers", "their API key (or $LLMTOP_API_KEY)")
	opts.probing.bind(c.Flags())
	c.Flags().StringArrayVar(&opts.zmq, "zmq", nil, "of one server: where it publishes KV events or forward passes, tcp://HOST:PORT or ipc://PATH; may be repeated")
	c.Flags().StringVar(&opts.imatrix, "imatrix", "", "also show, as an engine of its own, the experts that a file of llama-imatrix has counted")
	c.Flags().DurationVar(&opts.every, "interval", scrape.DefaultInterval, "of servers: how often they are asked")
	c.Flags().BoolVar(&opts.drain, "drain", false, "of TensorRT-LLM: take what it hands out once, which other readers then lack")
	c.Flags().StringVar(&opts.match, "match", "", "of a Prometheus: which of its targets are watched, as "+fleet.Example+" (default: all)")
	useConfig(c, &opts.config, &opts.tables, opts.check)
	return c
}

// beside is the garbage collector's percentage for a program that runs beside an engine: memory is what the engine is short of, and what
// collecting more often costs could not be measured.
const beside = 60

func (o *attachOptions) run(ctx context.Context) error {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(beside)
	}
	o.exports.screen = !o.headless && o.view.visible()
	for i, at := range o.addresses {
		var err error
		if o.addresses[i], err = addressOf(ctx, at); err != nil {
			return o.explained(at, err)
		}
	}
	switch {
	case o.headless && len(o.addresses) == 0 && o.traces.at == "":
		return usagef("--headless needs an address to watch: llmtop attach --headless ADDRESS, or --otlp HOST:PORT")
	case !o.exports.screen && !o.exports.any() && !o.headless && len(o.tables.alerts) == 0 && o.recording.file == "":
		return usagef("attach needs a terminal, or --plain; without one it can report, with --headless, or record: llmtop attach --record FILE ADDRESS...")
	case len(o.zmq) > 0 && (len(o.addresses) != 1 || !api.IsAddress(o.addresses[0])):
		return usagef("--zmq goes with the address of one server: llmtop attach --zmq tcp://127.0.0.1:5557 http://127.0.0.1:8000")
	case o.match != "" && !slices.ContainsFunc(o.addresses, isFleet):
		return usagef("--match chooses targets of a Prometheus: llmtop attach --match MATCH prometheus+http://HOST:PORT")
	}
	if err := o.misplaced(); err != nil {
		return err
	}
	secret, err := token(o.tokenFile)
	if err != nil {
		return err
	}
	key, err := o.key.read()
	if err != nil {
		return err
	}
	if err := o.key.check("attach", key, o.addresses...); err != nil {
		return err
	}
	x, err := o.exports.open(o.tokenFile)
	if err != nil {
		return err
	}
	if o.headless {
		return errors.Join(o.runHeadless(ctx, secret, key, x), x.close())
	}
	_, err = o.watch(ctx, secret, key, x)
	return errors.Join(err, x.close())
}

// allHistories is how many bytes are remembered of all engines together, so that the screen can go back in time.
const allHistories = 48 << 20

// watch shows the engines until the user or a signal closes the screen, or without one until a signal comes. It returns them as they were then.
func (o *attachOptions) watch(ctx context.Context, secret, key string, x *exporting) (*attached, error) {
	ctx, stop := interruptible(ctx, errClosed)
	defer stop()
	a := &attached{opt: o, token: secret, key: key, exporting: x, clock: o.traces.clock(), lanes: scrape.NewLanes()}
	if o.exports.screen {
		a.share = store.NewShare(allHistories, store.BesideHistory)
	}
	if o.several() {
		var err error
		if a.recorder, err = o.recording.begin(a.clock, true); err != nil {
			return nil, err
		}
	}
	return a, a.recordedAll(a.run(ctx))
}

// run shows the engines until ctx ends or the screen is closed.
func (a *attached) run(ctx context.Context) error {
	o := a.opt
	group, ctx := errgroup.WithContext(ctx)
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	a.group = group
	a.alerts = newAlerting(o.tables.alerts, o.exports.screen, false)
	defer a.alerts.close() // it has no error
	a.sampled = make(chan struct{})
	if err := a.addAll(ctx); err != nil {
		close(a.sampled)
		return err
	}
	group.Go(guarded("sample host", func() error {
		defer close(a.sampled)
		defer a.machine.close()
		return host.New(host.Options{Clock: a.clock, NoGPU: !a.local()}).Run(ctx, event.Tee{&a.self, &a.machine})
	}))
	o.tellHeadless()
	group.Go(func() error {
		defer stop()
		if !o.exports.screen {
			o.await(ctx)
			return nil
		}
		cfg := o.view.screen()
		cfg.Sessions, cfg.Recording, cfg.Note, cfg.Alerts = a.sessions, a.recorded, o.note, a.alerts.status()
		return o.view.show(ctx, cfg)
	})
	return group.Wait()
}

// attached are the engines that are watched.
type attached struct {
	opt       *attachOptions
	token     string
	key       string // of servers
	exporting *exporting
	alerts    *alerting
	clock     runtime.Clock
	group     *errgroup.Group // of what runs beside the screen
	self      self
	machine   machine         // samples of this machine, for servers that run on it
	sampled   chan struct{}   // closed after the last sample
	lanes     *scrape.Lanes   // of all servers
	share     *store.Share    // what is remembered of all engines; nil: nothing, as nobody can look back
	recorder  *trace.Recorder // of all engines together; nil: of the only one, or none

	mu      sync.Mutex // guards what follows
	engines []engine
}

// engine is one of them.
type engine struct {
	at      string
	session *session
	client  *socket.Client // nil: a server over HTTP
	fleet   bool           // it is a Prometheus that tells of others

	elsewhere bool // where it runs is not known
}

// addAll begins to watch what was asked for, or what there is.
func (a *attached) addAll(ctx context.Context) error {
	o := a.opt
	for _, at := range o.addresses {
		if err := a.add(ctx, at); err != nil {
			return usageError{err}
		}
	}
	if o.imatrix != "" {
		if err := a.addCounts(ctx, o.imatrix); err != nil {
			return usageError{err}
		}
	}
	if o.traces.at != "" {
		return a.addTraces(ctx)
	}
	if len(o.addresses) == 0 {
		if err := a.find(ctx); err != nil {
			return err
		}
		a.group.Go(func() error { return a.discover(ctx) })
	}
	return nil
}

// add begins to watch the engine at an address. What cannot be used is told at once; whatever else goes wrong is shown on the screen.
func (a *attached) add(ctx context.Context, at string) error {
	if isFleet(at) {
		return a.addFleet(ctx, at)
	}
	if api.IsAddress(at) {
		return a.addServer(ctx, at)
	}
	client, err := socket.Dial(at, a.token, a.clock)
	if err != nil {
		return err
	}
	s := a.session(at, store.Options{Now: a.clock.Now, Targets: a.opt.targets})
	a.alerts.over(s, a.called(at))
	s.sink[0] = a.opt.view.hush(s.sink[0])
	if err := a.record(s, trace.Source{Name: at}); err != nil {
		return err
	}
	s.add("watch "+at, because(a.opt.note, func(ctx context.Context, sink event.Sink) error { return client.Run(ctx, withSelf{&a.self, sink}) }))
	a.group.Go(func() error { return a.watch(ctx, s, at) })
	a.mu.Lock()
	defer a.mu.Unlock()
	a.engines = append(a.engines, engine{at: at, session: s, client: client})
	return nil
}

// watch runs a session until ctx ends. An engine that refuses to be watched ends the program if it is the only one; among others the
// screen says so.
func (a *attached) watch(ctx context.Context, s *session, at string) error {
	err := s.run(ctx, func(own context.Context) error {
		<-own.Done()
		if ctx.Err() != nil {
			<-a.sampled // the session is open for what is told until then
		}
		return nil
	})
	switch refused := errors.Is(err, socket.ErrToken) || errors.Is(err, socket.ErrVersion); {
	case err == nil, refused && len(a.opt.addresses) != 1:
		return nil
	case refused:
		return usageError{fmt.Errorf("attach %s: %w", at, err)}
	}
	return fmt.Errorf("attach %s: %w", at, err)
}

// called is what alerts call an engine: nothing if it is the only one.
func (a *attached) called(at string) string {
	if len(a.opt.addresses) == 1 {
		return ""
	}
	return at
}

func (a *attached) watches(at string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.ContainsFunc(a.engines, func(e engine) bool { return e.at == at })
}

// sessions is what the screen shows of each.
func (a *attached) sessions() []ui.Session {
	engines := a.shown()
	sessions := make([]ui.Session, len(engines))
	for i, e := range engines {
		sessions[i] = ui.Session{Name: e.at, Snapshots: e.session.store.Snapshot, Changed: e.session.store.Changed(), Past: e.session.past}
		if e.client != nil {
			sessions[i].Actions = actions(e.client, e.at)
		} else {
			sessions[i].Actions.Report = reporting(report.Meta{Elsewhere: !api.IsLocal(e.at)})
		}
	}
	return sessions
}
