package cmd

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/llmtop/llmtop/cmd/watch"
	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime/source/discover"
	"github.com/llmtop/llmtop/ui/sanitize"
)

func newDiscoverCommand() *cobra.Command {
	asJSON := false
	c := &cobra.Command{
		Use:   "discover",
		Short: "List the inference engines on this machine",
		Long: `discover finds engines by their processes, by well-known ports on loopback, and by their event
sockets. It asks each listener what it is with read-only requests: it generates nothing and sends no
key.`,
		Args: takes(0, 0, "discover takes no arguments: to watch an engine use llmtop attach %s"),
		RunE: func(c *cobra.Command, _ []string) error {
			r := discover.Find(c.Context(), discover.Options{})
			if asJSON {
				return writeDiscovered(c.OutOrStdout(), r)
			}
			return listDiscovered(c.OutOrStdout(), r)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "write JSON to stdout")
	return c
}

// discoveredEngine is one engine in the JSON output of discover. Fields that are not reported are omitted.
type discoveredEngine struct {
	Engine  string             `json:"engine,omitempty"`
	Version string             `json:"version,omitempty"`
	Model   string             `json:"model,omitempty"`
	Address string             `json:"address,omitempty"`
	Other   string             `json:"other_address,omitempty"`
	PID     int                `json:"pid,omitempty"`
	Program string             `json:"program,omitempty"`
	Watch   []discover.Way     `json:"watch_by,omitempty"`
	Found   string             `json:"found_by"`
	State   string             `json:"state"`
	Why     string             `json:"why,omitempty"`
	Running *float64           `json:"requests_running,omitempty"`
	Waiting *float64           `json:"requests_waiting,omitempty"`
	Decode  *float64           `json:"decode_tokens_per_s,omitempty"`
	Runners []discoveredRunner `json:"runners,omitempty"`
}

// discoveredRunner is a worker process of an engine.
type discoveredRunner struct {
	PID     int            `json:"pid"`
	Address string         `json:"address,omitempty"`
	Model   string         `json:"model,omitempty"`
	Watch   []discover.Way `json:"watch_by,omitempty"`
}

// writeDiscovered writes the engines found as JSON.
func writeDiscovered(w io.Writer, r discover.Result) error {
	list := struct {
		Engines []discoveredEngine `json:"engines"`
		Notes   []string           `json:"notes"`
		TookMS  float64            `json:"took_ms"`
	}{Engines: []discoveredEngine{}, Notes: append([]string{}, r.Notes...), TookMS: float64(r.Took) / float64(time.Millisecond)}
	for _, f := range r.Engines {
		e := discoveredEngine{
			Engine: string(f.Kind), Version: f.Version, Model: f.Model, Address: f.Address, Other: f.Other, PID: f.PID, Program: f.Program,
			Watch: f.Ways(), Found: f.How.String(), State: f.State.String(), Why: f.Why,
			Running: optionalNumber(f.Load.Running), Waiting: optionalNumber(f.Load.Waiting), Decode: optionalNumber(f.Load.Decode),
		}
		for _, r := range f.Runners {
			e.Runners = append(e.Runners, discoveredRunner{PID: r.PID, Address: r.Address, Model: r.Model, Watch: r.Ways()})
		}
		list.Engines = append(list.Engines, e)
	}
	return writeJSON(w, list)
}

// optionalNumber returns the value of a reading, nil if it is not reported.
func optionalNumber(r event.Reading) *float64 {
	if !r.OK() {
		return nil
	}
	return &r.V
}

// listDiscovered writes the engines found as a table, and notes about what could not be examined.
func listDiscovered(w io.Writer, r discover.Result) error {
	if len(r.Engines) == 0 {
		fmt.Fprintln(w, "no engine found; llmtop without arguments runs the built-in model")
	} else {
		table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
		fmt.Fprintln(table, "ENGINE\tMODEL\tADDRESS\tPID\tVERSION\tSTATE\tWATCH BY\tFOUND BY")
		for _, f := range r.Engines {
			discoverRow(table, &f)
		}
		if err := table.Flush(); err != nil {
			return fmt.Errorf("write list: %w", err)
		}
	}
	if hint := probesHint(r.Engines); hint != "" {
		fmt.Fprintln(w, hint)
	}
	for _, n := range r.Notes {
		fmt.Fprintln(w, "note:", n)
	}
	return nil
}

// discoverRow writes an engine, and below it its worker processes.
func discoverRow(w io.Writer, f *discover.Found) {
	by := f.How.String()
	if f.Program != "" {
		by += " (" + f.Program + ")"
	}
	state := f.State.String()
	switch {
	case strings.HasPrefix(f.Why, state):
		state = f.Why
	case f.Why != "":
		state += ": " + f.Why
	}
	line := func(words ...string) {
		for i, word := range words {
			if i > 0 {
				fmt.Fprint(w, "\t")
			}
			fmt.Fprint(w, cmp.Or(sanitize.Line(word), "-"))
		}
		fmt.Fprintln(w)
	}
	line(engineName(f), f.Model, f.Address, pidName(f.PID), f.Version, state, wayNames(f.Ways(), f.Probes), by)
	for _, r := range f.Runners {
		line("  its llama-server", shortDigest(r.Model), r.Address, pidName(r.PID), "", "", wayNames(r.Ways(), r.Probes), "process")
	}
	if f.Other != "" {
		line("  also", "", f.Other, "", "", "", "", "")
	}
}

// wayNames names the ways to watch an engine, and says why probes cannot.
func wayNames(ways []discover.Way, p discover.Probes) string {
	var names []string
	for _, w := range ways {
		if w.Root && !discover.Privileged() {
			w.By += " (root)"
		}
		names = append(names, w.By)
	}
	if p.Why != "" {
		names = append(names, "not probes: "+p.Why)
	}
	return strings.Join(names, ", ")
}

// probesHint explains how to watch by probes, "" if nothing found can be.
func probesHint(engines []discover.Found) string {
	for _, f := range engines {
		ways := f.Ways()
		for _, r := range f.Runners {
			ways = append(ways, r.Ways()...)
		}
		for _, w := range ways {
			if w.Root {
				return "probes: every forward pass and token, without a restart: " + watch.Sudo("attach", w.Address)
			}
		}
	}
	return ""
}

// shortDigestLen is the length of shortened digests, as in the names of commits and images.
const shortDigestLen = 12

// shortDigest shortens the digest that Ollama uses as the name of a model file.
func shortDigest(name string) string {
	const kind = "sha256-"
	if hex, ok := strings.CutPrefix(name, kind); ok && len(hex) > shortDigestLen {
		return kind + hex[:shortDigestLen]
	}
	return name
}

// engineName returns the kind of an engine, "unknown" if it was not identified.
func engineName(f *discover.Found) string {
	if !f.Known() {
		return "unknown"
	}
	return string(f.Kind)
}

func pidName(pid int) string {
	if pid == 0 {
		return ""
	}
	return fmt.Sprint(pid)
}
