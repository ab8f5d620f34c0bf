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

	"github.com/llmtop/llmtop/cmd/address"
	"github.com/llmtop/llmtop/cmd/console"
	"github.com/llmtop/llmtop/cmd/exit"
	"github.com/llmtop/llmtop/cmd/local"
	"github.com/llmtop/llmtop/cmd/screen"
	"github.com/llmtop/llmtop/cmd/watch"
	"github.com/llmtop/llmtop/runtime/source/discover"
	"github.com/llmtop/llmtop/ui"
	"github.com/llmtop/llmtop/ui/view/engines"
)

// discoverFlags are the flags of llmtop without a command that concern running engines.
type discoverFlags struct {
	discover string
	traces   string // of --otlp
}

func (s *discoverFlags) bind(set *pflag.FlagSet) {
	watch.BindTraces(set, &s.traces)
	set.StringVar(&s.discover, "discover", cmp.Or(os.Getenv(address.DiscoverVariable), address.DiscoverAll), "look for engines on this machine: `MODE` all, sockets or off (or $"+address.DiscoverVariable+")")
}

func (s *discoverFlags) check(set *pflag.FlagSet) error {
	name := "--discover"
	if !set.Changed("discover") {
		name = "$" + address.DiscoverVariable
	}
	if err := address.CheckDiscover(name, s.discover); err != nil {
		return err
	}
	return watch.CheckTraces(s.traces)
}

// wanted reports whether to look for engines: there is a screen, and no flag is set for running the built-in model.
func (s *discoverFlags) wanted(set *pflag.FlagSet, v *screen.View) bool {
	return s.discover != address.DiscoverOff && !hasRunFlag(set) && v.Visible()
}

// hasRunFlag reports whether a flag is set that is about running the built-in model, not about the screen.
func hasRunFlag(set *pflag.FlagSet) (about bool) {
	looks := pflag.NewFlagSet("looks", pflag.ContinueOnError)
	new(screen.View).Bind(looks)
	set.Visit(func(f *pflag.Flag) {
		about = about || looks.Lookup(f.Name) == nil && f.Name != "discover" && f.Name != "config"
	})
	return about
}

// begin runs llmtop without a command: on the only engine found, on those that the user chooses, or on the built-in
// model.
func begin(c *cobra.Command, r *local.Run, s *discoverFlags) error {
	if err := s.check(c.Flags()); err != nil {
		return err
	}
	if s.traces != "" {
		a := watch.Options{View: r.View, Outputs: r.Outputs, Traces: s.traces, Notes: c.ErrOrStderr()}
		return a.Run(c.Context())
	}
	if !s.wanted(c.Flags(), &r.View) {
		return showBuiltIn(c, r)
	}
	look := &discover.Watch{Options: discover.Options{NoServers: s.discover == address.DiscoverSockets}}
	found := look.Look(c.Context())
	engines := slices.DeleteFunc(slices.Clone(found.Engines), func(f discover.Found) bool { return !f.Known() })
	attach := func(addresses []string, note string) error {
		a := watch.Options{View: r.View, Outputs: r.Outputs, Addresses: addresses, Note: note}
		return a.Run(c.Context())
	}
	switch {
	case len(engines) == 0:
		r.Reason, r.Note = "no engine found", builtinReason(found.Engines)
		return showBuiltIn(c, r)
	case len(engines) == 1 && blocked(&engines[0]) == "" && probed(&engines[0]) == "":
		return attach([]string{engines[0].Best()}, "the only engine found; built-in model: llmtop --discover off")
	}
	if r.Plain { // no list to choose from: report all
		return attach(attachable(engines), "")
	}
	pick, err := choose(c.Context(), &r.View, look, found)
	switch {
	case err != nil:
		return err
	case pick.BuiltIn:
		return showBuiltIn(c, r)
	case len(pick.Addresses) == 0:
		return nil
	}
	return attach(pick.Addresses, "")
}

// nextSteps is what the screen of the built-in model leaves behind.
const nextSteps = `This was llmtop's built-in model. To go on:
  llmtop PORT, llmtop URL   watch a server (llama.cpp, Ollama, vLLM, SGLang, …)
  llmtop MODEL.gguf         run a model
  llmtop --out FILE.llmtop  record a session, for llmtop FILE
  llmtop --help             more`

// showBuiltIn runs the built-in model, and says after its screen what to try next.
func showBuiltIn(c *cobra.Command, r *local.Run) error {
	err := r.Start(c)
	if err == nil && !r.Out.Headless && !r.Camera.Enabled() && console.HasScreen() {
		fmt.Fprintln(c.OutOrStdout(), nextSteps)
	}
	return err
}

// probed returns the question that is asked before probes are attached to the process of an engine, "" if it is watched
// otherwise.
func probed(f *discover.Found) string {
	if f.Probes.Address == "" || f.Best() != f.Probes.Address {
		return ""
	}
	return fmt.Sprintf("attach probes to process %d (%s)", f.PID, cmp.Or(f.Program, engineName(f)))
}

// attachable returns the addresses of the engines that can be watched without a question.
func attachable(engines []discover.Found) (at []string) {
	for i := range engines {
		if f := &engines[i]; blocked(f) == "" && f.Address != f.Probes.Address {
			at = append(at, f.Address)
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

// rediscoverInterval is the interval between searches for engines while the user chooses.
const rediscoverInterval = time.Second

// choose shows the list of engines to choose from.
func choose(ctx context.Context, v *screen.View, look *discover.Watch, found discover.Result) (ui.Pick, error) {
	ctx, stop := exit.WithSignals(ctx, exit.ErrClosed)
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
			r := look.Look(ctx)
			now.Store(&r)
		}
	}()
	pick, err := ui.Choose(ctx, func() ([]engines.Candidate, []string) { return candidates(now.Load()) }, v.Config())
	stop()
	<-ended
	return pick, exit.IgnoreClosed(err)
}

// candidates returns the engines found as rows of that list.
func candidates(r *discover.Result) (out []engines.Candidate, notes []string) {
	for _, f := range r.Engines {
		c := engines.Candidate{
			Name: engineName(&f), Model: f.Model, Address: f.Best(), State: f.State.String(), Blocked: blocked(&f), Ask: probed(&f),
			Silent:  f.Known() && f.State == discover.Silent && f.Address != "",
			Running: f.Load.Running, Waiting: f.Load.Waiting, Decode: f.Load.Decode, Details: []string{details(&f)},
		}
		if c.Ask != "" && f.Address != f.Probes.Address {
			c.Instead = f.Address
		}
		for _, w := range f.Runners {
			c.Details = append(c.Details, fmt.Sprintf("llama-server: process %d, %s", w.PID, w.Model))
			c.Details = append(c.Details, ways(w.Ways(), w.Probes)...)
		}
		c.Details = append(c.Details, ways(f.Ways(), f.Probes)...)
		out = append(out, c)
	}
	return out, r.Notes
}

// seen describes what each way to watch an engine shows.
var seen = map[string]string{
	"socket": "what the engine reports of each request",
	"HTTP":   "what the server reports of itself",
	"probes": "every forward pass and token",
}

// ways returns how an engine can be watched, with the commands, and why not by probes.
func ways(all []discover.Way, p discover.Probes) (lines []string) {
	for _, w := range all {
		command := "llmtop attach " + w.Address
		if w.Root && !discover.Privileged() {
			command = watch.Sudo("attach", w.Address)
		}
		lines = append(lines, "by "+w.By+", "+seen[w.By]+": "+command)
	}
	if p.Why != "" {
		lines = append(lines, "not by probes: "+p.Why)
	}
	return lines
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
	case f.State == discover.NeedsRoot:
		return "only probes can watch it: run " + watch.Sudo("attach", f.Address)
	case !f.Attachable():
		return cmp.Or(f.Why, f.State.String())
	}
	return ""
}
