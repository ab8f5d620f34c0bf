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

	"github.com/llmtop/llmtop/runtime/discover"
	"github.com/llmtop/llmtop/runtime/scrape"
	"github.com/llmtop/llmtop/ui"
)

// Where bare llmtop looks for engines.
const (
	discoverAll     = "all"
	discoverSockets = "sockets" // event sockets only: no process and no port is looked at
	discoverOff     = "off"
)

// discoverVariable is the environment variable that stands in for --discover.
const discoverVariable = "LLMTOP_DISCOVER"

// starting is what bare llmtop is told about engines that run already.
type starting struct {
	discover string
	traces   traces
}

func (s *starting) bind(set *pflag.FlagSet) {
	s.traces.bind(set)
	set.StringVar(&s.discover, "discover", cmp.Or(os.Getenv(discoverVariable), discoverAll), "look for engines that run here: all, sockets (event sockets only), or off; also $"+discoverVariable)
}

func (s *starting) check() error {
	if !slices.Contains([]string{discoverAll, discoverSockets, discoverOff}, s.discover) {
		return usagef("--discover %q: must be all, sockets or off", s.discover)
	}
	return s.traces.check()
}

// looks reports whether engines are looked for at all: there is a terminal to show them on, and nothing was said of how the built-in model
// should run.
func (s *starting) looks(set *pflag.FlagSet, v *view) bool {
	return s.discover != discoverOff && !aboutRun(set) && v.live()
}

// aboutRun reports whether a flag was given that says how the built-in model should run, and not only how the screen should look.
func aboutRun(set *pflag.FlagSet) (about bool) {
	looks := pflag.NewFlagSet("looks", pflag.ContinueOnError)
	new(view).bind(looks)
	set.Visit(func(f *pflag.Flag) {
		about = about || looks.Lookup(f.Name) == nil && f.Name != "discover" && f.Name != "config"
	})
	return about
}

// begin runs bare llmtop: over the engine that runs here, over those that the user chooses of several, or else over the built-in model.
func (o *runOptions) begin(c *cobra.Command, s *starting) error {
	if err := s.check(); err != nil {
		return err
	}
	if s.traces.at != "" {
		a := attachOptions{view: o.view, recording: o.recording, exports: o.exports, tokenFile: o.listening.tokenFile, traces: s.traces, notes: c.ErrOrStderr()}
		a.tables = o.tables
		return a.run(c.Context())
	}
	if !s.looks(c.Flags(), &o.view) {
		return o.run(c)
	}
	watch := &discover.Watch{Options: discover.Options{NoServers: s.discover == discoverSockets}}
	found := watch.Look(c.Context())
	engines := slices.DeleteFunc(slices.Clone(found.Engines), func(f discover.Found) bool { return !f.Known() })
	switch {
	case len(engines) == 0:
		o.reason, o.note = "no engine found", nothingFound(found.Engines)
		return o.run(c)
	case len(engines) == 1 && blocked(&engines[0]) == "":
		return o.attach(c.Context(), []string{engines[0].Address}, "the only engine found here; for the built-in model: llmtop --discover off")
	}
	if o.plain { // there is no list to choose from: all are told of
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

// attachable are the addresses of those engines that can be watched as things are.
func attachable(engines []discover.Found) (at []string) {
	for i := range engines {
		if blocked(&engines[i]) == "" {
			at = append(at, engines[i].Address)
		}
	}
	return at
}

// nothingFound says why the built-in model runs.
func nothingFound(found []discover.Found) string {
	if len(found) > 0 {
		return "the built-in model: no engine was found for sure, what listens at " + found[0].Address + " needs a key"
	}
	return "the built-in model: no engine was found on this machine"
}

// attach shows engines as the attach command does.
func (o *runOptions) attach(ctx context.Context, addresses []string, note string) error {
	a := attachOptions{view: o.view, addresses: addresses, note: note, every: scrape.DefaultInterval}
	return a.run(ctx)
}

// lookAgain is how often engines are looked at while the user chooses.
const lookAgain = time.Second

// choosing lets the user choose of several.
func (o *runOptions) choosing(ctx context.Context, watch *discover.Watch, found discover.Result) (ui.Pick, error) {
	ctx, stop := interruptible(ctx, errClosed)
	defer stop()
	var now atomic.Pointer[discover.Result]
	now.Store(&found)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for tick := time.NewTicker(lookAgain); ; {
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
	return pick, closedInOrder(err)
}

// candidates are what was found as the user sees it.
func candidates(r *discover.Result) (out []ui.Candidate, notes []string) {
	for _, f := range r.Engines {
		c := ui.Candidate{
			Name: engineName(&f), Model: f.Model, Address: f.Address, State: f.State.String(), Blocked: blocked(&f),
			Silent:  f.Known() && f.State == discover.Silent && f.Address != "",
			Running: f.Load.Running, Waiting: f.Load.Waiting, Decode: f.Load.Decode, Details: []string{details(&f)},
		}
		for _, w := range f.Runners {
			c.Details = append(c.Details, fmt.Sprintf("its llama-server: process %d, %s, %s", w.PID, w.Model, w.Address))
		}
		if f.Other != "" {
			c.Details = append(c.Details, "it also answers at "+f.Other)
		}
		out = append(out, c)
	}
	return out, r.Notes
}

// details are what is known of an engine besides what it does.
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

// blocked says why an engine cannot be watched as things are, "" if it can.
func blocked(f *discover.Found) string {
	switch {
	case f.State == discover.NeedsKey && !f.Known():
		return "it needs a key, and may be no engine at all: to try it, set LLMTOP_API_KEY and llmtop attach " + f.Address
	case f.State == discover.NeedsKey && f.How == discover.BySocket:
		return "it wants a token: llmtop attach --token-file FILE " + f.Address
	case f.State == discover.NeedsKey && os.Getenv("LLMTOP_API_KEY") == "":
		return "it needs a key: start llmtop with the key in LLMTOP_API_KEY"
	case !f.Attachable():
		return cmp.Or(f.Why, f.State.String())
	}
	return ""
}
