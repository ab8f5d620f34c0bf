// Package watch watches engines that run elsewhere: at event sockets, behind servers and Prometheus, and in traces.
package watch

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net"
	"slices"
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
	"github.com/llmtop/llmtop/profiler/clean"
	"github.com/llmtop/llmtop/profiler/report"
	"github.com/llmtop/llmtop/runtime/engine"
	"github.com/llmtop/llmtop/runtime/engine/remote"
	"github.com/llmtop/llmtop/runtime/source/probe"
	scrape "github.com/llmtop/llmtop/runtime/source/scrape/engine"
	"github.com/llmtop/llmtop/runtime/source/scrape/fleet"
	"github.com/llmtop/llmtop/runtime/source/socket"
)

// Options are the flags and arguments that say what to watch.
type Options struct {
	screen.View
	session.Outputs
	Traces    string   // HOST:PORT at which to receive traces; "": nowhere
	Addresses []string // none: all event sockets of the user
	Note      string   // why these were chosen, "" if the user named them

	Stdout, Notes io.Writer // for the report and for notes

	flags    *pflag.FlagSet // nil: not those of this command
	length   time.Duration  // how long to watch; 0: until interrupted
	timed    bool           // --for is given
	shown    bool           // there is a screen
	reported bool           // a report is made at the end

	key       files.APIKey
	every     time.Duration // polling interval; 0: the default
	drain     bool
	keepAwake bool
	match     string  // selector of Prometheus targets; "": all
	tap       *tapped // in place of addresses; nil: none
}

// Bind adds the flags, and reads the config file.
func (o *Options) Bind(c *cobra.Command) {
	f := o.bind(c, "watch without a screen and report when interrupted")
	BindTraces(f, &o.Traces)
	f.DurationVar(&o.every, "interval", scrape.DefaultInterval, "polling interval of HTTP servers")
	f.BoolVar(&o.keepAwake, "keep-awake", false, "poll idle llama-servers even if that keeps them from sleeping")
	f.BoolVar(&o.drain, "drain", false, "read one-shot iterations of TensorRT-LLM (other readers miss them)")
	f.StringVar(&o.match, "match", "", "watch the Prometheus targets that match `SELECTOR`, like "+fleet.Example+" (default: all)")
	o.use(c, o.check)
}

// bind adds the flags that the commands which watch have in common.
func (o *Options) bind(c *cobra.Command, headless string) *pflag.FlagSet {
	f := c.Flags()
	o.flags, o.Watches = f, true
	o.View.Bind(f)
	o.Outputs.Bind(f)
	files.BindReports(f).BindHeadless(f, headless)
	f.DurationVar(&o.length, "for", 0, "stop after `DURATION`; without a screen, report")
	o.key.Bind(f, "$LLMTOP_API_KEY")
	return f
}

// use reads the config file, and then checks the flags.
func (o *Options) use(c *cobra.Command, check func() error) {
	config.Use(c, &o.Alerts, local.ConfigFlags(), func() error {
		o.timed = c.Flags().Changed("for")
		return check()
	})
}

// minInterval is the shortest polling interval.
const minInterval = 100 * time.Millisecond

// check refuses unusable values of flags.
func (o *Options) check() error {
	switch {
	case o.every < minInterval:
		return exit.Usagef("--interval %v: must be at least %v", o.every, minInterval)
	}
	return cmp.Or(o.checkCommon(), CheckTraces(o.Traces))
}

// checkCommon refuses unusable values of the flags of bind.
func (o *Options) checkCommon() error {
	if o.length < 0 || o.length == 0 && o.timed {
		return exit.Usagef("--for %v: must be more than 0", o.length)
	}
	return cmp.Or(o.Outputs.Check(), o.View.Check())
}

// Run watches the engines until the user or a signal ends it, and writes the report if one is asked for.
func (o *Options) Run(ctx context.Context) error {
	o.Notes = clean.NewWriter(o.Notes) // engines write to it at the same time
	o.shown, o.every = !o.Out.Silent() && o.Visible(), cmp.Or(o.every, scrape.DefaultInterval)
	o.reported = o.Out.Headless || o.Out.Reports() || (o.length > 0 || o.tap != nil) && !o.shown
	w := &watcher{opt: o, clock: o.clock(), sampled: make(chan struct{}), reached: make(chan struct{}), probes: map[string]*probe.Probe{}, merged: map[string]bool{}, sockets: map[string]*socket.Client{}}
	if !o.shown && o.reported && len(o.Addresses) == 0 && o.Traces == "" {
		at, name, err := address.Only(ctx)
		if err != nil {
			return err
		}
		o.Addresses = []string{at}
		o.note("the only engine found: " + name)
	}
	if o.tap == nil {
		if err := o.openProbes(ctx, w); err != nil {
			return err
		}
	}
	if err := o.checkAddresses(); err != nil {
		return err
	}
	token, err := files.Token(o.TokenFile)
	if err != nil {
		return err
	}
	key, err := o.key.Read()
	if err != nil {
		return err
	}
	if err := o.key.Check(o.verb(), key, o.Addresses...); err != nil {
		return err
	}
	w.token, w.key = token, key
	if !o.reported {
		return w.watchReached(ctx)
	}
	return o.Out.Write(o.Stdout, o.Notes, o.Out.Headless || o.tap != nil && !o.Out.Reports(), func() (*report.Report, error) {
		err := w.watchReached(ctx)
		if exit.IsUsage(err) || len(w.engines) == 0 { // nothing was watched
			return nil, err
		}
		return w.report(err != nil), err
	})
}

// checkAddresses refuses flags that have no effect on the addresses, or lack what they need.
func (o *Options) checkAddresses() error {
	servers, fleets := slices.ContainsFunc(o.Addresses, remote.IsAddress), o.fleets()
	switch {
	case !o.shown && !o.Exports() && !o.reported && len(o.Alerts) == 0 && o.Out.Name(files.Recording) == "":
		return exit.Usagef("attach needs a terminal: without one use --plain, --headless to report, or --out FILE.llmtop to record")
	case o.match != "" && !fleets:
		return exit.Usagef("--match needs the address of a Prometheus: llmtop attach --match SELECTOR prometheus+http://HOST:PORT")
	case o.drain && !servers:
		return exit.Usagef("--drain needs the address of a TensorRT-LLM server: llmtop attach --drain http://HOST:PORT")
	case o.keepAwake && !servers:
		return exit.Usagef("--keep-awake needs the address of a llama-server: llmtop attach --keep-awake http://HOST:PORT")
	case o.key.File != "" && !servers && !fleets:
		return exit.Usagef("--api-key-file needs the address of a server: llmtop attach --api-key-file FILE http://HOST:PORT")
	}
	return nil
}

// fleets reports whether the replicas of a Prometheus are watched.
func (o *Options) fleets() bool { return slices.ContainsFunc(o.Addresses, address.IsFleet) }

// several reports whether more than one engine may be watched. They share one recording.
func (o *Options) several() bool {
	sources := len(o.Addresses)
	if o.Traces != "" {
		sources++
	}
	return sources != 1 || o.fleets()
}

// announce prints what a run without a screen does.
func (o *Options) announce() {
	if o.Out.Name(files.Recording) != "" && !o.shown && !o.reported {
		fmt.Fprintf(o.Notes, "recording to %s until interrupted\n", o.Out.Name(files.Recording))
	}
	if o.shown || !o.reported || len(o.Addresses) == 0 {
		return
	}
	until := "until interrupted"
	if o.length > 0 {
		until = fmt.Sprintf("for %v", o.length)
	}
	what := o.Addresses[0]
	switch n := len(o.Addresses); {
	case o.tap != nil && o.tap.port != 0:
		what = fmt.Sprintf("packets of port %d", o.tap.port)
	case o.tap != nil:
		what = "packets of standard input"
	case n > 1:
		what = fmt.Sprintf("%d addresses", n)
	}
	fmt.Fprintf(o.Notes, "watching: %s, %s\n", what, until)
}

// BindTraces adds the flag that receives traces of servers.
func BindTraces(set *pflag.FlagSet, at *string) {
	set.StringVar(at, "otlp", "", "receive OpenTelemetry traces of servers at http://`HOST:PORT`/v1/traces")
}

// CheckTraces refuses an address that cannot be used.
func CheckTraces(at string) error {
	if at == "" {
		return nil
	}
	if _, err := net.ResolveTCPAddr("tcp", at); err != nil {
		return exit.Usagef("--otlp %q: must be HOST:PORT", at)
	}
	return nil
}

// traceBacklog is how long before the start of a session its events may begin: the load of a model, and running
// requests.
const traceBacklog = time.Hour

// clock returns the clock of a session: that of the tap, or one that starts earlier if it receives traces.
func (o *Options) clock() engine.Clock {
	switch {
	case o.tap != nil:
		return o.tap.clock
	case o.Traces == "":
		return engine.NewClock()
	}
	return engine.NewClockSince(traceBacklog)
}
