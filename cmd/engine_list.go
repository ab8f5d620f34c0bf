package cmd

import (
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/llmtop/llmtop/runtime/llama/library"
)

func newEngineListCommand() *cobra.Command {
	asJSON := false
	c := &cobra.Command{
		Use:   "list",
		Short: "List every llama.cpp that was found, and whether it can be used",
		Long: `list shows where there are libraries of llama.cpp: in the folder that ` + string(library.Named) + ` names, among those that llmtop engine
install has put into a folder of yours, and where the system looks for libraries; which of them llmtop takes, and why not the others.`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 0 {
				return usagef("engine list takes no arguments")
			}
			return nil
		},
		RunE: func(c *cobra.Command, _ []string) error {
			found := llamaLibraries()
			if asJSON {
				return writeEngines(c.OutOrStdout(), found)
			}
			return listEngines(c.OutOrStdout(), found)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "write JSON")
	return c
}

// engines is what engine list writes as JSON.
type engines struct {
	Engine string              `json:"engine"`
	Used   string              `json:"used,omitempty"` // the folder that is loaded from; "" if there is none
	Error  string              `json:"error,omitempty"`
	Found  []library.Candidate `json:"found"`
}

// writeEngines writes what was found as JSON.
func writeEngines(w io.Writer, found []library.Candidate) error {
	list := engines{Engine: "llamacpp", Found: append([]library.Candidate{}, found...)}
	if best, err := library.Best(found); err != nil {
		list.Error = err.Error()
	} else {
		list.Used = best.Dir
	}
	out := json.NewEncoder(w)
	out.SetIndent("", "  ")
	return out.Encode(list)
}

// listEngines writes what was found as a table, with a star at what is used.
func listEngines(w io.Writer, found []library.Candidate) error {
	best, none := library.Best(found)
	if len(found) > 0 {
		table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
		fmt.Fprintln(table, "  RELEASE\tGPU\tFOUND\tFOLDER\tSTATE")
		for _, c := range found {
			mark, state := " ", "can be used"
			switch {
			case none == nil && c.Dir == best.Dir && c.Origin == best.Origin:
				mark, state = "*", "is used"
			case !c.Usable():
				state = c.Why
			}
			fmt.Fprintf(table, "%s %s\t%s\t%s\t%s\t%s\n", mark, orDash(c.Release), orDash(c.Device), c.Origin, homely(c.Dir), state)
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
