package cmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/llmtop/llmtop/runtime/llama/library"
)

func newEngineCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "engine",
		Short: "Install llama.cpp, or list what is installed",
		Args:  noSuchEngineCommand,
		RunE:  func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(newEngineInstallCommand(), newEngineListCommand())
	return c
}

func noSuchEngineCommand(_ *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return usagef("unknown command %q: there are llmtop engine install llamacpp and llmtop engine list", args[0])
}

// installation is what the engine install command is told.
type installation struct {
	library.Options
	out      io.Writer
	terminal bool // out is one
}

func newEngineInstallCommand() *cobra.Command {
	var opts installation
	c := &cobra.Command{
		Use:   "install llamacpp",
		Short: "Get the libraries of llama.cpp",
		Long: `install gets the libraries of llama.cpp for this platform from the npm package @node-llama-cpp, with your own npm and its settings.
The archive is compared with the SHA-512 that llmtop was built with before anything is unpacked, and unpacked in a folder of yours.

--from takes the archive instead, as npm pack has written it, or a folder that holds it; nothing is fetched then. A folder of libraries
that you built yourself is copied, and not compared with anything.`,
		Example: `  llmtop engine install llamacpp
  llmtop engine install llamacpp --gpu vulkan
  llmtop engine install llamacpp --from Downloads`,
		Args: func(_ *cobra.Command, args []string) error {
			switch {
			case len(args) != 1:
				return usagef("engine install takes one engine: llmtop engine install llamacpp")
			case args[0] != "llamacpp":
				return usagef("unknown engine %q: the one to install is llamacpp", args[0])
			}
			return nil
		},
		RunE: func(c *cobra.Command, _ []string) error {
			opts.out, opts.terminal = c.OutOrStdout(), c.OutOrStdout() == os.Stdout && isTerminal(os.Stdout)
			return opts.run(c.Context())
		},
	}
	c.Flags().StringVar(&opts.From, "from", "", "archive of the package, or folder with it or with libraries")
	c.Flags().StringVar(&opts.Device, "gpu", "", "kind of GPU to get the libraries for as well: cuda or vulkan; macOS on Apple chips needs none")
	return c
}

// errStopped ends an install that was stopped by a signal.
var errStopped = outcomeError{exitInterrupted, errors.New("interrupted")}

func (o *installation) run(ctx context.Context) error {
	ctx, stop := interruptible(ctx, errStopped)
	defer stop()
	progress := progress{out: o.out, terminal: o.terminal, began: time.Now()}
	o.Report = progress.report
	done, err := library.Install(ctx, o.Options)
	progress.clear()
	switch {
	case err == nil:
		o.tell(done)
		return nil
	case ctx.Err() != nil:
		return err
	case o.From != "", errors.Is(err, library.ErrNoNPM), errors.Is(err, library.ErrNoPackage):
		return usageError{err}
	}
	return err
}

// tell says what was done.
func (o *installation) tell(r library.Result) {
	did, dir := "installed", r.Candidate.Dir
	if o.terminal {
		dir = homely(dir)
	}
	if r.Already {
		did = "is there already"
	}
	fmt.Fprintf(o.out, "llama.cpp%s %s: %s\n", leading(" ", r.Candidate.Release), did, dir)
	if !r.Checked && !r.Already {
		fmt.Fprintln(o.out, "These are libraries of your own, which were not compared with a hash.")
	}
}

// leading puts something before a text that is not empty.
func leading(before, s string) string {
	if s == "" {
		return ""
	}
	return before + s
}

// progress tells how an install goes: on a terminal in one line that is written over, elsewhere a line for each stage.
type progress struct {
	out      io.Writer
	terminal bool
	began    time.Time
	stage    library.Stage
	wrote    time.Time // on the terminal
}

// overwrite is how often the line on a terminal is written at most.
const overwrite = 100 * time.Millisecond

func (p *progress) report(s library.Stage, what string, done, total int64) {
	now, fresh := time.Now(), s != p.stage
	p.stage = s
	line := fmt.Sprintf("%s %s", s, what)
	switch {
	case done > 0:
		line += ", " + megabytes(done)
	case total > 0:
		line += ", " + megabytes(total)
	}
	switch {
	case p.terminal && (fresh || now.Sub(p.wrote) >= overwrite):
		p.wrote = now
		fmt.Fprintf(p.out, "\r\x1b[K%s", line)
	case !p.terminal && fresh:
		fmt.Fprintln(p.out, line)
	}
}

// clear takes the line off the terminal.
func (p *progress) clear() {
	if p.terminal && p.stage != "" {
		fmt.Fprint(p.out, "\r\x1b[K")
	}
}

// megabytes writes a size in bytes.
func megabytes(n int64) string { return fmt.Sprintf("%.1f MB", float64(n)/1e6) }
