package cmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/llmtop/llmtop/cmd/console"
	"github.com/llmtop/llmtop/cmd/exit"
	"github.com/llmtop/llmtop/cmd/files"
	"github.com/llmtop/llmtop/cmd/local"
	"github.com/llmtop/llmtop/profiler/clean"
	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/runtime/engine/llama/library"
)

func newEngineCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "engine",
		Short: "Install llama.cpp, or list the installed ones",
		Long: `engine installs and lists the libraries of llama.cpp, with which llmtop run and serve run models
that llmtop's own engine does not support, or that llama.cpp runs faster: on a GPU, for example.`,
		Example: `  llmtop engine install llamacpp
  llmtop engine list`,
		Args: refuseEngineArgs,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(newEngineInstallCommand(), newEngineListCommand())
	return c
}

func refuseEngineArgs(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return unknownCommand(c, args[0], "use llmtop engine install llamacpp or llmtop engine list")
}

func newEngineInstallCommand() *cobra.Command {
	var opts library.Options
	c := &cobra.Command{
		Use:   "install llamacpp",
		Short: "Install the libraries of llama.cpp",
		Long: `install downloads the libraries of llama.cpp for this platform from the npm package @node-llama-cpp,
with your npm and its settings. It checks the archive against the SHA-512 built into llmtop before
it unpacks it into a folder of your user.

--from takes the archive as npm pack wrote it, or a folder with it, and downloads nothing. It copies
a folder of libraries that you built without a check.`,
		Example: `  llmtop engine install llamacpp
  llmtop engine install llamacpp --gpu vulkan
  llmtop engine install llamacpp --from Downloads`,
		Args: func(_ *cobra.Command, args []string) error {
			switch {
			case len(args) != 1:
				return exit.Usagef("engine install needs one engine: llmtop engine install llamacpp")
			case args[0] != "llamacpp":
				return exit.Usagef("unknown engine %q: use llamacpp", args[0])
			}
			return nil
		},
		RunE: func(c *cobra.Command, _ []string) error {
			return install(c.Context(), opts, c.OutOrStdout())
		},
	}
	c.Flags().StringVar(&opts.From, "from", "", "package archive, or folder with it or with libraries, at `PATH`")
	c.Flags().StringVar(&opts.Device, "gpu", "", "also install the libraries for `GPU` cuda or vulkan (not needed on Apple chips)")
	return c
}

// errStopped ends an installation that a signal stopped.
var errStopped = exit.Outcome(exit.CodeInterrupted, errors.New("interrupted"))

// install installs the libraries and prints where they are.
func install(ctx context.Context, opt library.Options, out io.Writer) error {
	ctx, stop := exit.WithSignals(ctx, errStopped)
	defer stop()
	progress := console.Progress{Out: out}
	opt.Report = func(s library.Stage, what string, done, total int64) {
		line := fmt.Sprintf("%s %s", s, what)
		if size := cmp.Or(max(done, 0), max(total, 0)); size > 0 {
			line += ", " + metric.Bytes(float64(size))
		}
		progress.Show(string(s), line, func() string { return line })
	}
	done, err := library.Install(ctx, opt)
	progress.End()
	switch {
	case err == nil:
		printInstalled(out, done)
		return nil
	case ctx.Err() != nil:
		return err
	case opt.From != "", errors.Is(err, library.ErrNoNPM), errors.Is(err, library.ErrNoPackage):
		return exit.Usage(err)
	}
	return err
}

// printInstalled prints the result of an installation.
func printInstalled(out io.Writer, r library.Result) {
	did, name, dir := "installed", strings.TrimSpace("llama.cpp "+r.Candidate.Release), r.Candidate.Dir
	if console.TerminalOf(out) != nil {
		dir = files.ShortenHome(dir)
	}
	if r.Already {
		did = "already installed"
	}
	fmt.Fprintf(out, "%s %s: %s\n", name, did, dir)
	if !r.Checked && !r.Already {
		fmt.Fprintln(out, "These libraries are your own: they were not checked against a hash.")
	}
}

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
			found := local.LlamaLibraries()
			if asJSON {
				return writeEngines(c.OutOrStdout(), found)
			}
			return listEngines(c.OutOrStdout(), found)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "write JSON to stdout")
	return c
}

// engineList is the JSON output of engine list.
type engineList struct {
	Engine string              `json:"engine"`
	Used   string              `json:"used,omitempty"` // folder that llmtop loads from; "": none
	Error  string              `json:"error,omitempty"`
	Found  []library.Candidate `json:"found"`
}

// writeEngines writes the libraries found as JSON.
func writeEngines(w io.Writer, found []library.Candidate) error {
	list := engineList{Engine: "llamacpp", Found: append([]library.Candidate{}, found...)}
	if best, err := library.Best(found); err != nil {
		list.Error = err.Error()
	} else {
		list.Used = best.Dir
	}
	return writeJSON(w, list)
}

// writeJSON writes a list as JSON.
func writeJSON(w io.Writer, list any) error {
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
			fmt.Fprintf(table, "%s %s\t%s\t%s\t%s\t%s\n", mark, cmp.Or(c.Release, "-"), cmp.Or(c.Device, "-"), c.Origin, files.ShortenHome(c.Dir), state)
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
