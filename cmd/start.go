package cmd

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/llmtop/llmtop/runtime/source/discover"
	"github.com/llmtop/llmtop/runtime/source/scrape"
	"github.com/llmtop/llmtop/ui"
)

// Values of --discover.
const (
	discoverAll     = "all"
	discoverSockets = "sockets" // event sockets only: no processes, no ports
	discoverOff     = "off"
)

// discoverVariable is the environment variable with the default of --discover.
const discoverVariable = "LLMTOP_DISCOVER"

// discoverFlags are the flags of llmtop without a command that concern running engines.
type discoverFlags struct {
	discover string
	traces   traceFlags
}

func (s *discoverFlags) bind(set *pflag.FlagSet) {
	s.traces.bind(set)
	set.StringVar(&s.discover, "discover", cmp.Or(os.Getenv(discoverVariable), discoverAll), "look for engines on this machine: `MODE` all, sockets or off (or $"+discoverVariable+")")
}

func (s *discoverFlags) check() error {
	if !slices.Contains([]string{discoverAll, discoverSockets, discoverOff}, s.discover) {
		return usagef("--discover %q: must be all, sockets or off", s.discover)
	}
	return s.traces.check()
}

// wanted reports whether to look for engines: there is a screen, and no flag is set for running the built-in model.
func (s *discoverFlags) wanted(set *pflag.FlagSet, v *view) bool {
	return s.discover != discoverOff && !hasRunFlag(set) && v.live()
}

// hasRunFlag reports whether a flag is set that is about running the built-in model, not about the screen.
func hasRunFlag(set *pflag.FlagSet) (about bool) {
	looks := pflag.NewFlagSet("looks", pflag.ContinueOnError)
	new(view).bind(looks)
	set.Visit(func(f *pflag.Flag) {
		about = about || looks.Lookup(f.Name) == nil && f.Name != "discover" && f.Name != "config"
	})
	return about
}

// begin runs llmtop without a command: on the only engine found, on those that the user chooses, or on the built-in
// model.
func (o *runOptions) begin(c *cobra.Command, s *discoverFlags) error {
	if err := s.check(); err != nil {
		return err
	}
	if s.traces.at != "" {
		a := attachOptions{view: o.view, recording: o.recording, exports: o.exports, tokenFile: o.listening.tokenFile, traces: s.traces, notes: c.ErrOrStderr()}
		a.tables = o.tables
		return a.run(c.Context())
	}
	if !s.wanted(c.Flags(), &o.view) {
		return o.run(c)
	}
	watch := &discover.Watch{Options: discover.Options{NoServers: s.discover == discoverSockets}}
	found := watch.Look(c.Context())
	engines := slices.DeleteFunc(slices.Clone(found.Engines), func(f discover.Found) bool { return !f.Known() })
	switch {
	case len(engines) == 0:
		o.reason, o.note = "no engine found", builtinReason(found.Engines)
		return o.run(c)
	case len(engines) == 1 && blocked(&engines[0]) == "":
		return o.attach(c.Context(), []string{engines[0].Address}, "the only engine found; built-in model: llmtop --discover off")
	}
	if o.plain { // no list to choose from: report all
		return o.attach(c.Context(), attachable(engines), "")
	}
	pick, err := o.choosing(c.Context(), watch, found)
	switch {
	case err != nil:
		return err
	case pick.BuiltIn:
		return o.run(c)
	case len(pick.Addresses) == 0:
		return nil
	}
	return o.attach(c.Context(), pick.Addresses, "")
}

// attachable returns the addresses of the engines that can be watched.
func attachable(engines []discover.Found) (at []string) {
	for i := range engines {
		if blocked(&engines[i]) == "" {
			at = append(at, engines[i].Address)
		}
	}
	return at
}

// builtinReason returns why the built-in model runs.
func builtinReason(found []discover.Found) string {
	if len(found) > 0 {
		return "built-in model: no engine found; the server at " + found[0].Address + " needs a key"
	}
	return "built-in model: no engine found on this machine"
}

// attach shows engines as the attach command does.
func (o *runOptions) attach(ctx context.Context, addresses []string, note string) error {
	a := attachOptions{view: o.view, addresses: addresses, note: note, every: scrape.DefaultInterval}
	return a.run(ctx)
}

// rediscoverInterval is the interval between searches for engines while the user chooses.
const rediscoverInterval = time.Second

// choosing shows the list of engines to choose from.
func (o *runOptions) choosing(ctx context.Context, watch *discover.Watch, found discover.Result) (ui.Pick, error) {
	ctx, stop := interruptible(ctx, errClosed)
	defer stop()
	var now atomic.Pointer[discover.Result]
	now.Store(&found)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for tick := time.NewTicker(rediscoverInterval); ; {
			select {
			case <-ctx.Done():
				tick.Stop()
				return
			case <-tick.C:
			}
			r := watch.Look(ctx)
			now.Store(&r)
		}
	}()
	pick, err := ui.Choose(ctx, func() ([]ui.Candidate, []string) { return candidates(now.Load()) }, o.view.screen())
	stop()
	<-ended
	return pick, ignoreClosed(err)
}

// candidates returns the engines found as rows of that list.
func candidates(r *discover.Result) (out []ui.Candidate, notes []string) {
	for _, f := range r.Engines {
		c := ui.Candidate{
			Name: engineName(&f), Model: f.Model, Address: f.Address, State: f.State.String(), Blocked: blocked(&f),
			Silent:  f.Known() && f.State == discover.Silent && f.Address != "",
			Running: f.Load.Running, Waiting: f.Load.Waiting, Decode: f.Load.Decode, Details: []string{details(&f)},
		}
		for _, w := range f.Runners {
			c.Details = append(c.Details, fmt.Sprintf("llama-server: process %d, %s, %s", w.PID, w.Model, w.Address))
		}
		if f.Other != "" {
			c.Details = append(c.Details, "also answers at "+f.Other)
		}
		out = append(out, c)
	}
	return out, r.Notes
}

// details returns how an engine was found, its process and version.
func details(f *discover.Found) string {
	words := "found by its " + f.How.String()
	if f.PID != 0 {
		words += fmt.Sprint(": process ", f.PID)
	}
	if f.How == discover.ByProcess {
		words = fmt.Sprint("process ", f.PID)
	}
	if f.Program != "" {
		words += " (" + f.Program + ")"
	}
	if f.Version != "" {
		words += ", version " + f.Version
	}
	return words
}

// blocked returns why an engine cannot be watched, "" if it can.
func blocked(f *discover.Found) string {
	switch {
	case f.State == discover.NeedsKey && !f.Known():
		return "needs a key and may not be an engine: to try it, set LLMTOP_API_KEY and run llmtop attach " + f.Address
	case f.State == discover.NeedsKey && f.How == discover.BySocket:
		return "needs a token: llmtop attach --token-file FILE " + f.Address
	case f.State == discover.NeedsKey && os.Getenv("LLMTOP_API_KEY") == "":
		return "needs a key: set LLMTOP_API_KEY and start llmtop again"
	case !f.Attachable():
		return cmp.Or(f.Why, f.State.String())
	}
	return ""
}
