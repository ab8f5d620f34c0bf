package cmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/report"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/runtime/engine"
	"github.com/llmtop/llmtop/runtime/host"
	"github.com/llmtop/llmtop/runtime/source/proxy"
)

// proxyOptions are the flags of the proxy command.
type proxyOptions struct {
	view
	recording   recordFlags
	exports     exportFlags
	tokenFile   string // for exports
	files       reportFiles
	config      string
	to          string
	listen      string
	groupHeader string
	allowRemote bool
	headless    bool
	expertsUsed int
}

// drainTimeout is how long requests may continue when the proxy ends.
const drainTimeout = 10 * time.Second

func newProxyCommand() *cobra.Command {
	var opts proxyOptions
	c := &cobra.Command{
		Use:   "proxy --to URL",
		Short: "Measure the requests of real clients to a server",
		Long: `proxy listens for clients of an inference server, forwards everything unchanged, and shows each
request that generates: chat, completions and responses of the OpenAI API, and those of Ollama and
Anthropic. Give clients the address of the proxy instead of the server; their keys pass through.
proxy does not keep, show or record texts or keys.

With --headless, or if standard output is not a terminal, it reports when interrupted.`,
		Example: `  llmtop proxy --to http://127.0.0.1:8080
  OPENAI_BASE_URL=http://127.0.0.1:7080/v1 your-client

  llmtop proxy --to http://127.0.0.1:11434 --group-header X-Tenant --headless --json report.json`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usagef("proxy takes the address of the server as --to %s", args[0])
			}
			return nil
		},
		RunE: func(c *cobra.Command, _ []string) error {
			return opts.run(c)
		},
	}
	flags := c.Flags()
	flags.StringVar(&opts.to, "to", "", "server `URL`: http://HOST:PORT, https://HOST/PATH, HOST:PORT or PORT")
	flags.StringVar(&opts.listen, "listen", "127.0.0.1:7080", "`HOST:PORT` for clients to connect to; port 0: any free port")
	flags.BoolVar(&opts.allowRemote, "allow-remote", false, "allow --listen at an address that other machines can reach (without a key)")
	flags.StringVar(&opts.groupHeader, "group-header", "", "group requests by the value of header `NAME`")
	flags.IntVar(&opts.expertsUsed, "experts-used", 0, "experts that each token picks (for SGLang, which does not report it)")
	flags.BoolVar(&opts.headless, "headless", false, "run without a screen and report when interrupted")
	opts.view.bind(flags)
	opts.recording.bind(flags)
	_ = flags.MarkHidden("record-text") // always refused: the proxy keeps no text
	opts.exports.bind(flags)
	bindToken(flags, &opts.tokenFile)
	opts.files.bind(flags, headlessOnly)
	useConfig(c, &opts.config, &opts.tables, opts.check)
	return c
}

func (o *proxyOptions) check() error {
	if o.to == "" {
		return usagef("--to is missing: add the address of the server, for example --to http://127.0.0.1:8080")
	}
	if o.recording.text {
		return usagef("--record-text: the proxy keeps no text")
	}
	return cmp.Or(o.files.checkHeadless(o.headless), o.exports.check(), o.view.check())
}

func (o *proxyOptions) run(c *cobra.Command) error {
	if at := serverAddress(o.to); at != "" {
		o.to = at
	}
	o.to = trimAPIPath(o.to)
	clock := engine.NewClock()
	p, err := proxy.New(proxy.Options{
		To: o.to, Listen: o.listen, AllowRemote: o.allowRemote, GroupHeader: o.groupHeader, Clock: clock, Drain: drainTimeout, ExpertsUsed: o.expertsUsed, Allow: o.exports.allow,
	})
	switch {
	case errors.Is(err, proxy.ErrRemote):
		return usagef("%w: add --allow-remote, or listen at 127.0.0.1", err)
	case err != nil:
		return usageError{err}
	}
	notes := c.ErrOrStderr()
	if o.allowRemote {
		fmt.Fprintln(notes, "llmtop: other machines may reach the proxy, which requires no key of its own")
	}
	if unencrypted(p.Target()) {
		fmt.Fprintf(notes, "llmtop: requests to %s are not encrypted, API keys of clients included\n", redactURL(p.Target()))
	}
	fmt.Fprintf(notes, "listening: %s, forwarding to %s\n", p.Address(), p.Target())
	defer printDoubts(notes, p)
	o.exports.engineAddress = p.Target()
	if o.exports.screen = !o.headless && o.view.live(); o.exports.screen {
		return o.runLive(c.Context(), p, clock, notes)
	}
	return o.runHeadless(c.Context(), p, clock, c.OutOrStdout(), notes)
}

// session creates a session with the proxy as source.
func (o *proxyOptions) session(p *proxy.Proxy, clock engine.Clock, opt store.Options) (*session, error) {
	x, err := o.exports.open(o.tokenFile)
	if err != nil {
		return nil, errors.Join(err, p.Close())
	}
	opt.Now, opt.Targets = clock.Now, o.targets
	s := x.session(o.exports.engine(), opt)
	s.alerts = newAlerting(o.tables.alerts, o.exports.screen, false)
	s.alerts.watch(s, "")
	s.atEnd = append(s.atEnd, x.close, s.alerts.close)
	if err := s.record(&o.recording, clock); err != nil {
		return nil, errors.Join(err, s.end(), p.Close())
	}
	sampler := host.New(host.Options{Clock: clock, NoGPU: !p.Local()})
	s.add("forward requests", p.Run)
	s.add("sample host", func(ctx context.Context, sink event.Sink) error {
		if !p.Local() {
			return sampler.Run(ctx, selfOnly{sink})
		}
		m := new(machine)
		defer m.close()
		m.add(p.Target(), sink)
		return sampler.Run(ctx, m)
	})
	return s, nil
}

// runLive opens the screen.
func (o *proxyOptions) runLive(ctx context.Context, p *proxy.Proxy, clock engine.Clock, notes io.Writer) error {
	ctx, stop := interruptible(ctx, errClosed)
	defer stop()
	s, err := o.session(p, clock, store.Options{})
	if err != nil {
		return err
	}
	return s.run(ctx, func(ctx context.Context) error {
		cfg := o.view.screen()
		cfg.Snapshots, cfg.Changed, cfg.Recording, cfg.Alerts = s.store.Snapshot, s.store.Changed(), s.recordStatus, s.alerts.status()
		err := o.view.open(ctx, cfg)
		stop() // a second signal ends the program at once
		printLiveRequests(notes, p)
		return err
	})
}

// runHeadless forwards requests until a signal ends it, and writes the report.
func (o *proxyOptions) runHeadless(ctx context.Context, p *proxy.Proxy, clock engine.Clock, stdout, notes io.Writer) error {
	out, err := o.files.open()
	if err != nil {
		return errors.Join(err, p.Close())
	}
	ctx, stop := interruptible(ctx, errClosed)
	defer stop()
	collector := report.NewCollector()
	s, err := o.session(p, clock, store.Options{OnRequest: collector.Request})
	if err != nil {
		out.discard()
		return err
	}
	s.sink = append(s.sink, collector)
	err = s.run(ctx, func(ctx context.Context) error {
		<-ctx.Done()
		printLiveRequests(notes, p)
		return nil
	})
	built := report.Build(report.Meta{
		Version: versionString(), Remote: !p.Local(), Partial: err != nil,
		Configuration: o.view.addTargets(map[string]string{"to": p.Target(), "listen": o.listen, "group-header": o.groupHeader}),
	}, s.store.Snapshot(), collector)
	return errors.Join(err, out.write(built, stdout))
}

// printLiveRequests prints how many requests the end waits for.
func printLiveRequests(notes io.Writer, p *proxy.Proxy) {
	if n := p.Stats().Live; n > 0 {
		fmt.Fprintf(notes, "llmtop: waiting up to %[2]v for %[1]d requests; interrupt again to end now\n", n, drainTimeout)
	}
}

// printDoubts prints what could not be measured reliably.
func printDoubts(notes io.Writer, p *proxy.Proxy) {
	doubts := p.Warnings()
	for _, words := range slices.Sorted(maps.Keys(doubts)) {
		fmt.Fprintf(notes, "llmtop: %s (requests: %d)\n", words, doubts[words])
	}
}

// selfOnly drops everything but llmtop's own process from samples of this machine, for servers on another machine.
type selfOnly struct{ sink event.Sink }

// Emit implements event.Sink.
func (o selfOnly) Emit(e event.Event) {
	if h, ok := e.Data.(*event.Host); ok && e.Kind == event.KindHost {
		e.Data = &event.Host{Interval: h.Interval, Self: h.Self, NoGPU: event.NotReported.String()}
	}
	o.sink.Emit(e)
}
