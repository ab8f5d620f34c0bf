package cmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/llmtop/llmtop/cmd/address"
	"github.com/llmtop/llmtop/cmd/config"
	"github.com/llmtop/llmtop/cmd/exit"
	"github.com/llmtop/llmtop/cmd/files"
	"github.com/llmtop/llmtop/cmd/local"
	"github.com/llmtop/llmtop/cmd/screen"
	"github.com/llmtop/llmtop/cmd/session"
	"github.com/llmtop/llmtop/cmd/version"
	"github.com/llmtop/llmtop/profiler/clean"
	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/recording"
	"github.com/llmtop/llmtop/profiler/report"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/runtime/engine"
	"github.com/llmtop/llmtop/runtime/host"
	"github.com/llmtop/llmtop/runtime/source/proxy"
	"github.com/llmtop/llmtop/ui/view"
)

// proxyOptions are the flags of the proxy command.
type proxyOptions struct {
	screen.View
	session.Outputs
	to          string
	listen      string
	groupHeader string
	allowRemote bool
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

With --headless, or if standard output is not a terminal, it reports when interrupted. Report files,
such as --out FILE.json, are also written when the screen closes.`,
		Example: `  llmtop proxy --to http://127.0.0.1:8080
  OPENAI_BASE_URL=http://127.0.0.1:7080/v1 your-client

  llmtop proxy --to http://127.0.0.1:11434 --group-header X-Tenant --out report.json`,
		Args: takes(0, 0, "proxy takes the address of the server as --to %s"),
		RunE: func(c *cobra.Command, _ []string) error {
			return opts.run(c)
		},
	}
	flags := c.Flags()
	flags.StringVar(&opts.to, "to", "", "server `URL`: http://HOST:PORT, https://HOST/PATH, HOST:PORT or PORT")
	flags.StringVar(&opts.listen, "listen", "127.0.0.1:7080", "`HOST:PORT` for clients to connect to; port 0: any free port")
	flags.BoolVar(&opts.allowRemote, "allow-remote", false, "allow --listen at an address that other machines can reach (without a key)")
	bindAnswers(flags, &opts.groupHeader, &opts.expertsUsed)
	opts.Watches, opts.NoText = true, "not kept by the proxy"
	opts.View.Bind(flags)
	opts.Outputs.Bind(flags)
	files.BindReports(flags).BindHeadless(flags, "run without a screen and report when interrupted")
	_ = flags.MarkHidden("text") // always refused: the proxy keeps no text
	config.Use(c, &opts.Alerts, local.ConfigFlags(), opts.check)
	return c
}

// bindAnswers adds the flags about what requests and answers of a server contain.
func bindAnswers(set *pflag.FlagSet, groupHeader *string, expertsUsed *int) {
	set.StringVar(groupHeader, "group-header", "", "group requests by the value of header `NAME`")
	set.IntVar(expertsUsed, "experts-used", 0, "experts that each token picks (for SGLang, which does not report it)")
}

func (o *proxyOptions) check() error {
	if o.to == "" {
		return exit.Usagef("--to is missing: add the address of the server, for example --to http://127.0.0.1:8080")
	}
	if o.Out.Text {
		return exit.Usagef("--text: the proxy keeps no text")
	}
	return cmp.Or(o.Outputs.Check(), o.View.Check())
}

func (o *proxyOptions) run(c *cobra.Command) error {
	if at := address.Server(o.to); at != "" {
		o.to = at
	}
	o.to = address.TrimAPIPath(o.to)
	clock := engine.NewClock()
	p, err := proxy.New(proxy.Options{
		To: o.to, Listen: o.listen, AllowRemote: o.allowRemote, GroupHeader: o.groupHeader, Clock: clock, Drain: drainTimeout, ExpertsUsed: o.expertsUsed, Allow: o.Allow,
	})
	switch {
	case errors.Is(err, proxy.ErrRemote):
		return exit.Usagef("%w: add --allow-remote, or listen at 127.0.0.1", err)
	case err != nil:
		return exit.Usage(err)
	}
	defer p.Close() //nolint:errcheck // after Run it is closed already
	notes := c.ErrOrStderr()
	if o.allowRemote {
		fmt.Fprintln(notes, "llmtop: other machines may reach the proxy, which requires no key of its own")
	}
	if address.Unencrypted(p.Target()) {
		fmt.Fprintf(notes, "llmtop: requests to %s are not encrypted, API keys of clients included\n", clean.URL(p.Target()))
	}
	ctx, stop := exit.WithSignals(c.Context(), exit.ErrClosed)
	defer stop()
	fmt.Fprintf(notes, "listening: %s, forwarding to %s\n", p.Address(), p.Target())
	o.Out.Warnings = p.Warnings
	defer o.Out.PrintWarnings(notes)
	shown := !o.Out.Silent() && o.Visible()
	if !o.reported(shown) {
		_, err := o.forward(ctx, stop, p, clock, shown, notes)
		return err
	}
	return o.Out.Write(c.OutOrStdout(), notes, o.Out.Headless || !o.Out.Reports(), func() (*report.Report, error) {
		return o.forward(ctx, stop, p, clock, shown, notes)
	})
}

// reported says whether there will be a report.
func (o *proxyOptions) reported(shown bool) bool { return !shown || o.Out.Reports() }

// session creates a session with the proxy as source.
func (o *proxyOptions) session(p *proxy.Proxy, clock engine.Clock, shown bool) (*session.Session, *session.Group, error) {
	var opt store.Options
	if o.reported(shown) {
		opt.Keep = store.DefaultKeep
	}
	s, group, err := o.Outputs.OpenSession(session.Options{Clock: clock, View: &o.View, Shown: shown, Meta: o.meta(p)}, session.ExportName(p.Target()), opt)
	if err != nil {
		return nil, nil, err
	}
	if err := group.Record(s, recording.EngineEntry{Local: p.Local()}); err != nil {
		return nil, nil, s.End(err)
	}
	sampler, machine := host.New(host.Options{Clock: clock, NoGPU: !p.Local()}), new(session.Machine)
	s.Add("forward requests", p.Run)
	machine.Watch(s, clock, machine.At(p.Target()), s)
	s.Add("sample host", func(ctx context.Context, _ event.Sink) error {
		defer machine.Close()
		return sampler.Run(ctx, machine)
	})
	return s, group, nil
}

// forward forwards requests until the user or a signal ends it, and returns the report; nil if there is none. After stop, a
// signal ends the program at once.
func (o *proxyOptions) forward(ctx context.Context, stop func(), p *proxy.Proxy, clock engine.Clock, shown bool, notes io.Writer) (*report.Report, error) {
	defer stop()
	s, group, err := o.session(p, clock, shown)
	if err != nil {
		return nil, err
	}
	err = s.Run(ctx, func(ctx context.Context) (err error) {
		if shown {
			err = o.Show(ctx, group.ScreenOf(s, view.Actions{Report: session.ReportAction(o.meta(p)), Timeline: session.TimelineAction(s.Store)}))
			stop()
		} else {
			<-ctx.Done()
		}
		printLiveRequests(notes, p)
		return err
	})
	if !o.reported(shown) {
		return nil, err
	}
	meta := o.meta(p)
	meta.Partial = err != nil
	return report.Build(meta, s.Store.Snapshot()), err
}

// meta returns the metadata of the report.
func (o *proxyOptions) meta(p *proxy.Proxy) report.Meta {
	return report.Meta{
		Version: version.String(), Remote: !p.Local(),
		Configuration: o.AddTargets(map[string]string{"to": p.Target(), "listen": o.listen, "group-header": o.groupHeader}),
	}
}

// printLiveRequests prints how many requests the end waits for.
func printLiveRequests(notes io.Writer, p *proxy.Proxy) {
	if n := p.Live(); n > 0 {
		fmt.Fprintf(notes, "llmtop: waiting up to %[2]v for %[1]d requests; interrupt again to end now\n", n, drainTimeout)
	}
}
