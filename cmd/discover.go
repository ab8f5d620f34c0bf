package cmd

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime/discover"
	"github.com/llmtop/llmtop/runtime/socket"
	"github.com/llmtop/llmtop/ui/sanitize"
)

func newDiscoverCommand() *cobra.Command {
	asJSON := false
	c := &cobra.Command{
		Use:   "discover",
		Short: "List the inference engines that run on this machine",
		Long: `discover finds engines by their processes, by the usual ports on loopback, and by the event sockets in ` + homely(socket.Folder()) + `.
What listens is asked what it is, with requests that only read: nothing is generated, and no key is sent.`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 0 {
				return usagef("discover takes no arguments: to watch an engine: llmtop attach %s", args[0])
			}
			return nil
		},
		RunE: func(c *cobra.Command, _ []string) error {
			r := discover.Find(c.Context(), discover.Options{})
			if asJSON {
				return writeDiscovered(c.OutOrStdout(), r)
			}
			return listDiscovered(c.OutOrStdout(), r)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "write JSON")
	return c
}

// discovered is what discover writes as JSON.
type discovered struct {
	Engines []discoveredEngine `json:"engines"`
	Notes   []string           `json:"notes"`
	TookMS  float64            `json:"took_ms"`
}

// discoveredEngine is one engine of it. What it does not tell is left out.
type discoveredEngine struct {
	Engine  string             `json:"engine,omitempty"`
	Version string             `json:"version,omitempty"`
	Model   string             `json:"model,omitempty"`
	Address string             `json:"address,omitempty"`
	Other   string             `json:"other_address,omitempty"`
	PID     int                `json:"pid,omitempty"`
	Program string             `json:"program,omitempty"`
	Found   string             `json:"found_by"`
	State   string             `json:"state"`
	Why     string             `json:"why,omitempty"`
	Running *float64           `json:"requests_running,omitempty"`
	Waiting *float64           `json:"requests_waiting,omitempty"`
	Decode  *float64           `json:"decode_tokens_per_s,omitempty"`
	Runners []discoveredRunner `json:"runners,omitempty"`
}

// discoveredRunner is a process that works for an engine.
type discoveredRunner struct {
	PID     int    `json:"pid"`
	Address string `json:"address,omitempty"`
	Model   string `json:"model,omitempty"`
}

// writeDiscovered writes what was found as JSON.
func writeDiscovered(w io.Writer, r discover.Result) error {
	list := discovered{Engines: []discoveredEngine{}, Notes: append([]string{}, r.Notes...), TookMS: float64(r.Took) / float64(time.Millisecond)}
	for _, f := range r.Engines {
		e := discoveredEngine{
			Engine: string(f.Kind), Version: f.Version, Model: f.Model, Address: f.Address, Other: f.Other, PID: f.PID, Program: f.Program,
			Found: f.How.String(), State: f.State.String(), Why: f.Why,
			Running: told(f.Load.Running), Waiting: told(f.Load.Waiting), Decode: told(f.Load.Decode),
		}
		for _, r := range f.Runners {
			e.Runners = append(e.Runners, discoveredRunner(r))
		}
		list.Engines = append(list.Engines, e)
	}
	out := json.NewEncoder(w)
	out.SetIndent("", "  ")
	return out.Encode(list)
}

// told is a number that was reported, nil for one that was not.
func told(r event.Reading) *float64 {
	if !r.OK() {
		return nil
	}
	return &r.V
}

// listDiscovered writes what was found as a table, and what could not be looked at.
func listDiscovered(w io.Writer, r discover.Result) error {
	if len(r.Engines) == 0 {
		fmt.Fprintln(w, "no engine found; `llmtop` runs the built-in one")
	} else {
		table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
		fmt.Fprintln(table, "ENGINE\tMODEL\tADDRESS\tPID\tVERSION\tSTATE\tFOUND BY")
		for _, f := range r.Engines {
			discoverRow(table, &f)
		}
		if err := table.Flush(); err != nil {
			return fmt.Errorf("write list: %w", err)
		}
	}
	for _, n := range r.Notes {
		fmt.Fprintln(w, "note:", n)
	}
	return nil
}

// discoverRow writes an engine, and below it the processes that work for it.
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
			fmt.Fprint(w, orDash(sanitize.Line(word)))
		}
		fmt.Fprintln(w)
	}
	line(engineName(f), f.Model, f.Address, pidName(f.PID), f.Version, state, by)
	for _, r := range f.Runners {
		line("  its llama-server", shortDigest(r.Model), r.Address, pidName(r.PID), "", "", "process")
	}
	if f.Other != "" {
		line("  also", "", f.Other, "", "", "", "")
	}
}

// digits is how many of a digest tell it from others, as in the names of commits and images.
const digits = 12

// shortDigest cuts off the rest of the digest that Ollama gives the file of a model as its name.
func shortDigest(name string) string {
	const kind = "sha256-"
	if hex, ok := strings.CutPrefix(name, kind); ok && len(hex) > digits {
		return kind + hex[:digits]
	}
	return name
}

// engineName is what an engine is called.
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
