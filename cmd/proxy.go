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
	"github.com/llmtop/llmtop/runtime"
	"github.com/llmtop/llmtop/runtime/host"
	"github.com/llmtop/llmtop/runtime/proxy"
)

// proxyOptions are what the proxy command is told.
type proxyOptions struct {
	view
	recording   recording
	exports     exports
	tokenFile   string // of exports
	files       reportFiles
	config      string
	to          string
	listen      string
	groupHeader string
	allowRemote bool
	headless    bool
	used        int
}

// drain is how long requests may go on when the program is to end.
const drain = 10 * time.Second

func newProxyCommand() *cobra.Command {
	var opts proxyOptions
	c := &cobra.Command{
		Use:   "proxy --to URL",
		Short: "Measure the requests of real clients on their way to a server",
		Long: `proxy listens for clients of an inference server, passes everything on to it as it comes, and shows each request that generates: chat,
completions and responses of OpenAI's interface, Ollama's, Anthropic's. Clients are given the proxy's address instead of the server's; their
keys pass through. Of texts and keys nothing is kept, shown or recorded.

With --headless, or when standard output is not a terminal, it reports when it is interrupted.`,
		Example: `  llmtop proxy --to http://127.0.0.1:8080
  OPENAI_BASE_URL=http://127.0.0.1:7080/v1 your-client

  llmtop proxy --to http://127.0.0.1:11434 --group-header X-Tenant --headless --json report.json`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usagef("proxy takes the server's address as --to %s", args[0])
			}
			return nil
		},
		RunE: func(c *cobra.Command, _ []string) error {
			return opts.run(c)
		},
	}
	flags := c.Flags()
	flags.StringVar(&opts.to, "to", "", "the server: http://HOST:PORT, https://HOST/PATH, or as short as HOST:PORT or PORT")
	flags.StringVar(&opts.listen, "listen", "127.0.0.1:7080", "HOST:PORT that clients connect to; port 0: any that is free")
	flags.BoolVar(&opts.allowRemote, "allow-remote", false, "listen where other machines can connect; the proxy asks nobody for a key of its own")
	flags.StringVar(&opts.groupHeader, "group-header", "", "count requests under the value that they have in this header")
	flags.IntVar(&opts.used, "experts-used", 0, "of SGLang: how many experts each token picks, which its routed_experts do not say")
	flags.BoolVar(&opts.headless, "headless", false, "no screen: report when interrupted, exit")
	opts.view.bind(flags)
	opts.recording.bind(flags)
	_ = flags.MarkHidden("record-text") // it is always refused: the proxy keeps no text
	opts.exports.bind(flags)
	bindToken(flags, &opts.tokenFile)
	opts.files.bind(flags, headlessOnly)
	useConfig(c, &opts.config, &opts.tables, opts.check)
	return c
}

func (o *proxyOptions) check() error {
	if o.to == "" {
		return usagef("--to is missing: the address of the server, for example --to http://127.0.0.1:8080")
	}
	if o.recording.text {
		return usagef("--record-text: the proxy keeps no text")
	}
	return cmp.Or(o.files.checkHeadless(o.headless), o.exports.check(), o.view.check())
}

func (o *proxyOptions) run(c *cobra.Command) error {
	if at := serverAt(o.to); at != "" {
		o.to = at
	}
	o.to = baseOf(o.to)
	clock := runtime.NewClock()
	p, err := proxy.New(proxy.Options{
		To: o.to, Listen: o.listen, AllowRemote: o.allowRemote, GroupHeader: o.groupHeader, Clock: clock, Drain: drain, ExpertsUsed: o.used,
	})
	switch {
	case errors.Is(err, proxy.ErrRemote):
		return usagef("%w: give --allow-remote, or listen at 127.0.0.1", err)
	case err != nil:
		return usageError{err}
	}
	notes := c.ErrOrStderr()
	if o.allowRemote {
		fmt.Fprintln(notes, "llmtop: other machines may be able to reach the proxy, which asks for no key of its own")
	}
	if inTheClear(p.Target()) {
		fmt.Fprintf(notes, "llmtop: what passes on to %s, clients' API keys too, can be read on the way: it goes without https\n", shown(p.Target()))
	}
	fmt.Fprintf(notes, "listening: %s, passing on to %s\n", p.Address(), p.Target())
	defer tellDoubts(notes, p)
	o.exports.of = p.Target()
	if o.exports.screen = !o.headless && o.view.live(); o.exports.screen {
		return o.runLive(c.Context(), p, clock, notes)
	}
	return o.runHeadless(c.Context(), p, clock, c.OutOrStdout(), notes)
}

// session is one in which the proxy runs.
func (o *proxyOptions) session(p *proxy.Proxy, clock runtime.Clock, opt store.Options) (*session, error) {
	x, err := o.exports.open(o.tokenFile)
	if err != nil {
		return nil, errors.Join(err, p.Close())
	}
	opt.Now, opt.Targets = clock.Now, o.targets
	s := x.session(o.exports.engine(), opt)
	s.alerts = newAlerting(o.tables.alerts, o.exports.screen, false)
	s.alerts.over(s, "")
	s.atEnd = append(s.atEnd, x.close, s.alerts.close)
	if err := s.record(&o.recording, clock); err != nil {
		return nil, errors.Join(err, s.end(), p.Close())
	}
	sampler := host.New(host.Options{Clock: clock, NoGPU: !p.Local()})
	s.add("pass requests on", p.Run)
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
func (o *proxyOptions) runLive(ctx context.Context, p *proxy.Proxy, clock runtime.Clock, notes io.Writer) error {
	ctx, stop := interruptible(ctx, errClosed)
	defer stop()
	s, err := o.session(p, clock, store.Options{})
	if err != nil {
		return err
	}
	return s.run(ctx, func(ctx context.Context) error {
		cfg := o.view.screen()
		cfg.Snapshots, cfg.Changed, cfg.Recording, cfg.Alerts = s.store.Snapshot, s.store.Changed(), s.recorded, s.alerts.status()
		err := o.view.open(ctx, cfg)
		stop() // a second signal ends the program at once
		tellLive(notes, p)
		return err
	})
}

// runHeadless passes requests on until a signal ends it, and reports.
func (o *proxyOptions) runHeadless(ctx context.Context, p *proxy.Proxy, clock runtime.Clock, stdout, notes io.Writer) error {
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
		tellLive(notes, p)
		return nil
	})
	built := report.Build(report.Meta{
		Version: versionString(), Elsewhere: !p.Local(), Partial: err != nil,
		Configuration: o.view.tell(map[string]string{"to": p.Target(), "listen": o.listen, "group-header": o.groupHeader}),
	}, s.store.Snapshot(), collector)
	return errors.Join(err, out.write(built, stdout))
}

// tellLive says what the end is waiting for.
func tellLive(notes io.Writer, p *proxy.Proxy) {
	if n := p.Stats().Live; n > 0 {
		fmt.Fprintf(notes, "llmtop: %d requests are passing through; they have %v, or until you interrupt again\n", n, drain)
	}
}

// tellDoubts says what could not be measured, or not well.
func tellDoubts(notes io.Writer, p *proxy.Proxy) {
	doubts := p.Doubts()
	for _, words := range slices.Sorted(maps.Keys(doubts)) {
		fmt.Fprintf(notes, "llmtop: %s (requests: %d)\n", words, doubts[words])
	}
}

// selfOnly is a sink for samples of this machine, of which only those of llmtop itself are of use: the server runs on another.
type selfOnly struct{ sink event.Sink }

// Emit implements event.Sink.
func (o selfOnly) Emit(e event.Event) {
	if h, ok := e.Data.(*event.Host); ok && e.Kind == event.KindHost {
		e.Data = &event.Host{Interval: h.Interval, Self: h.Self, NoGPU: event.NotReported.String()}
	}
	o.sink.Emit(e)
}
