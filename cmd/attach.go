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
	"github.com/llmtop/llmtop/profiler/recording"
	"github.com/llmtop/llmtop/profiler/report"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/runtime/engine"
	"github.com/llmtop/llmtop/runtime/engine/remote"
	"github.com/llmtop/llmtop/runtime/host"
	"github.com/llmtop/llmtop/runtime/source/scrape"
	"github.com/llmtop/llmtop/runtime/source/scrape/fleet"
	"github.com/llmtop/llmtop/runtime/source/socket"
	"github.com/llmtop/llmtop/ui"
)

// attachOptions are the flags and arguments of the attach command.
type attachOptions struct {
	view
	recording recordFlags
	probing   probeFlags
	zmq       []string
	imatrix   string
	exports   exportFlags
	traces    traceFlags
	headless  bool
	length    time.Duration // how long to watch without a screen; 0: until interrupted
	files     reportFiles
	tokenFile string
	key       serverKey
	config    string
	addresses []string
	note      string // why these were chosen, "" if the user named them
	every     time.Duration
	drain     bool

	stdout, notes io.Writer // for the report and for notes
	match         string    // selector of Prometheus targets; "": all
}

func newAttachCommand() *cobra.Command {
	var opts attachOptions
	c := &cobra.Command{
		Use:   "attach [ADDRESS...]",
		Short: "Watch running engines and inference servers",
		Long: `attach shows engines that other processes run. An ADDRESS is one of:

  unix:PATH, tcp:HOST:PORT     event socket: llmtop serve, llmtop run --listen, SDK emitters
  http://HOST:PORT, https://   server: llama.cpp, Ollama, vLLM, SGLang, TGI, TensorRT-LLM, LMDeploy
  HOST:PORT, PORT, pid:PID     the same, in short, or by a process of this machine
  prometheus+http://HOST:PORT  replicas that this Prometheus scrapes, up to hundreds

Without an address it watches all event sockets of your user on this machine, new ones included. It
reconnects when a connection breaks and keeps the data. It only reads from servers; with --probe it
also sends requests. --otlp adds the traces that vLLM, SGLang and others send by OpenTelemetry.

--headless watches without a terminal until interrupted, or as long as --for says, and reports.
--record, --metrics-listen, --otlp-push and alerts in the config file need no terminal either.`,
		Example: `  llmtop attach
  llmtop attach unix:/run/user/1000/llmtop/llmtop-4711.sock
  llmtop attach 8080
  llmtop attach http://127.0.0.1:8080 http://gpu1:8000 tcp:127.0.0.1:7070
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
	c.Flags().BoolVar(&opts.headless, "headless", false, "watch without a screen and report when interrupted")
	c.Flags().DurationVar(&opts.length, "for", 0, "stop after `DURATION` and report"+headlessOnly)
	opts.files.bind(c.Flags(), headlessOnly)
	opts.view.bind(c.Flags())
	opts.recording.bind(c.Flags())
	opts.exports.bind(c.Flags())
	bindToken(c.Flags(), &opts.tokenFile)
	opts.key.bind(c.Flags(), "$LLMTOP_API_KEY")
	opts.probing.bind(c.Flags())
	c.Flags().StringArrayVar(&opts.zmq, "zmq", nil, "read KV events or forward passes of one server at `ADDRESS`, tcp://HOST:PORT or ipc://PATH (repeatable)")
	c.Flags().StringVar(&opts.imatrix, "imatrix", "", "show the expert counts of llama-imatrix `FILE` as an engine")
	c.Flags().DurationVar(&opts.every, "interval", scrape.DefaultInterval, "polling interval of HTTP servers")
	c.Flags().BoolVar(&opts.drain, "drain", false, "read one-shot iterations of TensorRT-LLM (other readers miss them)")
	c.Flags().StringVar(&opts.match, "match", "", "watch the Prometheus targets that match `SELECTOR`, like "+fleet.Example+" (default: all)")
	useConfig(c, &opts.config, &opts.tables, opts.check)
	return c
}

// gcPercent is the GC percentage while llmtop runs next to an engine: the engine needs the memory, and the CPU cost of
// collecting more often was too small to measure.
const gcPercent = 60

func (o *attachOptions) run(ctx context.Context) error {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	o.exports.screen = !o.headless && o.view.visible()
	for i, at := range o.addresses {
		var err error
		if o.addresses[i], err = parseAddress(ctx, at); err != nil {
			return o.addressError(at, err)
		}
	}
	switch {
	case o.headless && len(o.addresses) == 0 && o.traces.at == "":
		return usagef("--headless needs an address: llmtop attach --headless ADDRESS, or --otlp HOST:PORT")
	case !o.exports.screen && !o.exports.any() && !o.headless && len(o.tables.alerts) == 0 && o.recording.file == "":
		return usagef("attach needs a terminal: without one use --plain, --headless to report, or --record FILE to record")
	case len(o.zmq) > 0 && (len(o.addresses) != 1 || !remote.IsAddress(o.addresses[0])):
		return usagef("--zmq needs the address of exactly one server: llmtop attach --zmq tcp://127.0.0.1:5557 http://127.0.0.1:8000")
	case o.match != "" && !slices.ContainsFunc(o.addresses, isFleet):
		return usagef("--match needs the address of a Prometheus: llmtop attach --match SELECTOR prometheus+http://HOST:PORT")
	}
	if err := o.checkAddressFlags(); err != nil {
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

// sharedHistoryBytes is the size of the history of all engines together, so that the screen can go back in time.
const sharedHistoryBytes = 48 << 20

// watch shows the engines until the user or a signal closes the screen, or without a screen until a signal arrives. It
// returns their final state.
func (o *attachOptions) watch(ctx context.Context, secret, key string, x *metricsExport) (*attached, error) {
	ctx, stop := interruptible(ctx, errClosed)
	defer stop()
	a := &attached{opt: o, token: secret, key: key, exporting: x, clock: o.traces.clock(), lanes: scrape.NewPollLimits()}
	if o.exports.screen {
		a.share = store.NewHistoryBudget(sharedHistoryBytes, store.AttachedHistory)
	}
	if o.several() {
		var err error
		if a.recorder, err = o.recording.begin(a.clock, true); err != nil {
			return nil, err
		}
	}
	return a, a.closeRecording(a.run(ctx))
}

// run shows the engines until ctx ends or the screen is closed.
func (a *attached) run(ctx context.Context) error {
	o := a.opt
	group, ctx := errgroup.WithContext(ctx)
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	a.group = group
	a.alerts = newAlerting(o.tables.alerts, o.exports.screen, false)
	defer a.alerts.close() // always returns nil
	a.sampled = make(chan struct{})
	if err := a.addAll(ctx); err != nil {
		close(a.sampled)
		return err
	}
	group.Go(guarded("sample host", func() error {
		defer close(a.sampled)
		defer a.machine.close()
		return host.New(host.Options{Clock: a.clock, NoGPU: !a.watchesLocal()}).Run(ctx, event.Tee{&a.self, &a.machine})
	}))
	o.announce()
	group.Go(func() error {
		defer stop()
		if !o.exports.screen {
			o.waitLength(ctx)
			return nil
		}
		cfg := o.view.screen()
		cfg.Sessions, cfg.Recording, cfg.Note, cfg.Alerts = a.sessions, a.recordStatus, o.note, a.alerts.status()
		return o.view.show(ctx, cfg)
	})
	return group.Wait()
}

// attached holds the watched engines.
type attached struct {
	opt       *attachOptions
	token     string
	key       string // API key of servers
	exporting *metricsExport
	alerts    *alerting
	clock     engine.Clock
	group     *errgroup.Group // everything that runs next to the screen
	self      selfSample
	machine   machine              // passes samples of this machine to the sessions of its servers
	sampled   chan struct{}        // closed after the last sample
	lanes     *scrape.PollLimits   // shared by all servers
	share     *store.HistoryBudget // history of all engines; nil without a screen
	recorder  *recording.Recorder  // records all engines together; nil: each session records itself, or nothing is recorded

	mu      sync.Mutex // guards engines
	engines []attachedEngine
}

// attachedEngine is one watched engine.
type attachedEngine struct {
	at      string
	session *session
	client  *socket.Client // nil: HTTP server
	fleet   bool           // a Prometheus that reports other engines

	hostUnknown bool // unknown whether the engine runs on this machine
}

// addAll starts to watch the given addresses, or without any the event sockets found.
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
		if err := a.addDiscovered(ctx); err != nil {
			return usageError{err}
		}
		a.group.Go(func() error { return a.discover(ctx) })
	}
	return nil
}

// add starts to watch the engine at an address. It returns an error for an unusable address; the screen shows later
// errors.
func (a *attached) add(ctx context.Context, at string) error {
	if isFleet(at) {
		return a.addFleet(ctx, at)
	}
	if remote.IsAddress(at) {
		return a.addServer(ctx, at)
	}
	client, err := socket.Dial(at, a.token, a.clock)
	if err != nil {
		return err
	}
	s := a.session(at, store.Options{Now: a.clock.Now, Targets: a.opt.targets})
	a.alerts.watch(s, a.alertName(at))
	s.sink[0] = a.opt.view.dropCastText(s.sink[0])
	if err := a.record(s, recording.EngineEntry{Name: at}); err != nil {
		return err
	}
	s.add("watch "+at, withReason(a.opt.note, func(ctx context.Context, sink event.Sink) error {
		return client.Run(ctx, withSelfSample{&a.self, sink})
	}))
	a.group.Go(func() error { return a.watch(ctx, s, at) })
	a.mu.Lock()
	defer a.mu.Unlock()
	a.engines = append(a.engines, attachedEngine{at: at, session: s, client: client})
	return nil
}

// watch runs a session until ctx ends. If an engine refuses the connection (ErrToken, ErrVersion) and is the only one,
// the error is returned if it was never reached or there is no screen; otherwise the screen shows it.
func (a *attached) watch(ctx context.Context, s *session, at string) error {
	err := s.run(ctx, func(own context.Context) error {
		<-own.Done()
		if ctx.Err() != nil {
			<-a.sampled // keep the session open for the last sample
		}
		return nil
	})
	switch refused := errors.Is(err, socket.ErrToken) || errors.Is(err, socket.ErrVersion); {
	case err == nil, refused && len(a.opt.addresses) != 1:
		return nil
	case refused && s.store.Snapshot().NeverReached():
		return usageError{fmt.Errorf("attach %s: %w", at, err)}
	case refused && a.opt.exports.screen:
		return nil
	}
	return fmt.Errorf("attach %s: %w", at, err)
}

// alertName returns the name of an engine in alerts, "" if it is the only one.
func (a *attached) alertName(at string) string {
	if len(a.opt.addresses) == 1 {
		return ""
	}
	return at
}

func (a *attached) watches(at string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.ContainsFunc(a.engines, func(e attachedEngine) bool { return e.at == at })
}

// sessions returns a session of the screen for each engine.
func (a *attached) sessions() []ui.Session {
	engines := a.visibleEngines()
	sessions := make([]ui.Session, len(engines))
	for i, e := range engines {
		sessions[i] = ui.Session{Name: e.at, Snapshots: e.session.store.Snapshot, Changed: e.session.store.Changed(), Past: e.session.history}
		if e.client != nil {
			sessions[i].Actions = actions(e.client, e.at)
		} else {
			sessions[i].Actions.Report = reporting(report.Meta{Remote: !remote.IsLocal(e.at)})
		}
	}
	return sessions
}
