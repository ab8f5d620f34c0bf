package cmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/runtime/engine/llama/library"
)

func newEngineCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "engine",
		Short: "Install llama.cpp, or list the installed ones",
		Args:  refuseEngineArgs,
		RunE:  func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(newEngineInstallCommand(), newEngineListCommand())
	return c
}

func refuseEngineArgs(_ *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return usagef("unknown command %q: use llmtop engine install llamacpp or llmtop engine list", args[0])
}

// installation holds the flags of the engine install command.
type installation struct {
	library.Options
	out io.Writer
}

func newEngineInstallCommand() *cobra.Command {
	var opts installation
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
				return usagef("engine install needs one engine: llmtop engine install llamacpp")
			case args[0] != "llamacpp":
				return usagef("unknown engine %q: use llamacpp", args[0])
			}
			return nil
		},
		RunE: func(c *cobra.Command, _ []string) error {
			opts.out = c.OutOrStdout()
			return opts.run(c.Context())
		},
	}
	c.Flags().StringVar(&opts.From, "from", "", "package archive, or folder with it or with libraries, at `PATH`")
	c.Flags().StringVar(&opts.Device, "gpu", "", "also install the libraries for `GPU` cuda or vulkan (not needed on Apple chips)")
	return c
}

// errStopped ends an installation that a signal stopped.
var errStopped = outcomeError{exitInterrupted, errors.New("interrupted")}

func (o *installation) run(ctx context.Context) error {
	ctx, stop := interruptible(ctx, errStopped)
	defer stop()
	progress := progress{out: o.out, bar: terminalOf(o.out), began: time.Now()}
	o.Report = progress.report
	done, err := library.Install(ctx, o.Options)
	progress.clear()
	switch {
	case err == nil:
		o.printResult(done)
		return nil
	case ctx.Err() != nil:
		return err
	case o.From != "", errors.Is(err, library.ErrNoNPM), errors.Is(err, library.ErrNoPackage):
		return usageError{err}
	}
	return err
}

// printResult prints the result of an installation.
func (o *installation) printResult(r library.Result) {
	did, dir := "installed", r.Candidate.Dir
	if terminalOf(o.out) != nil {
		dir = shortenHome(dir)
	}
	if r.Already {
		did = "already installed"
	}
	fmt.Fprintf(o.out, "llama.cpp%s %s: %s\n", prefixed(" ", r.Candidate.Release), did, dir)
	if !r.Checked && !r.Already {
		fmt.Fprintln(o.out, "These libraries are your own: they were not checked against a hash.")
	}
}

// prefixed returns s after before, or "" if s is empty.
func prefixed(before, s string) string {
	if s == "" {
		return ""
	}
	return before + s
}

// progress prints the progress of an installation: one line that it overwrites on a terminal, otherwise one line per
// stage.
type progress struct {
	out   io.Writer
	bar   *console // out, if it is a terminal; nil otherwise
	began time.Time
	stage library.Stage
	wrote time.Time // last output to the terminal
}

// lineInterval is the shortest interval between two updates of the line on a terminal.
const lineInterval = 100 * time.Millisecond

func (p *progress) report(s library.Stage, what string, done, total int64) {
	now, fresh := time.Now(), s != p.stage
	p.stage = s
	line := fmt.Sprintf("%s %s", s, what)
	switch {
	case done > 0:
		line += ", " + metric.Bytes(float64(done))
	case total > 0:
		line += ", " + metric.Bytes(float64(total))
	}
	switch {
	case p.bar != nil && (fresh || now.Sub(p.wrote) >= lineInterval):
		p.wrote = now
		p.bar.overwrite("%s", line)
	case p.bar == nil && fresh:
		fmt.Fprintln(p.out, line)
	}
}

// clear removes the line from the terminal.
func (p *progress) clear() {
	if p.bar != nil && p.stage != "" {
		p.bar.overwrite("")
	}
}
