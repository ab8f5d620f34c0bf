package cmd

import (
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/llmtop/llmtop/profiler/clean"
	"github.com/llmtop/llmtop/runtime/engine/llama/library"
)

func newEngineListCommand() *cobra.Command {
	asJSON := false
	c := &cobra.Command{
		Use:   "list",
		Short: "List the copies of llama.cpp and whether they work",
		Long: `list shows the libraries of llama.cpp in the folder that $` + string(library.Named) + ` names, in the folder of
llmtop engine install, and where the system looks for libraries. It marks those that llmtop uses and
says why it cannot use others.`,
		Args: refuseArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			found := llamaLibraries()
			if asJSON {
				return writeEngines(c.OutOrStdout(), found)
			}
			return listEngines(c.OutOrStdout(), found)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "write JSON to stdout")
	return c
}

// engines is the JSON output of engine list.
type engines struct {
	Engine string              `json:"engine"`
	Used   string              `json:"used,omitempty"` // folder that llmtop loads from; "": none
	Error  string              `json:"error,omitempty"`
	Found  []library.Candidate `json:"found"`
}

// writeEngines writes the libraries found as JSON.
func writeEngines(w io.Writer, found []library.Candidate) error {
	list := engines{Engine: "llamacpp", Found: append([]library.Candidate{}, found...)}
	if best, err := library.Best(found); err != nil {
		list.Error = err.Error()
	} else {
		list.Used = best.Dir
	}
	out := clean.NewEncoder(w)
	out.SetIndent("", "  ")
	return out.Encode(list)
}

// listEngines writes the libraries found as a table, with * at those that llmtop uses.
func listEngines(w io.Writer, found []library.Candidate) error {
	best, none := library.Best(found)
	if len(found) > 0 {
		table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
		fmt.Fprintln(table, "  RELEASE\tGPU\tFOUND\tFOLDER\tSTATE")
		for _, c := range found {
			mark, state := " ", "usable"
			switch {
			case none == nil && c.Dir == best.Dir && c.Origin == best.Origin:
				mark, state = "*", "in use"
			case !c.Usable():
				state = c.Why
			}
			fmt.Fprintf(table, "%s %s\t%s\t%s\t%s\t%s\n", mark, orDash(c.Release), orDash(c.Device), c.Origin, shortenHome(c.Dir), state)
		}
		if err := table.Flush(); err != nil {
			return fmt.Errorf("write list: %w", err)
		}
	}
	if none != nil {
		_, err := fmt.Fprintln(w, none)
		return err
	}
	return nil
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
