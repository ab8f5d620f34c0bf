package cmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/llmtop/llmtop/cmd/console"
	"github.com/llmtop/llmtop/cmd/exit"
	"github.com/llmtop/llmtop/cmd/local"
	"github.com/llmtop/llmtop/cmd/session"
	"github.com/llmtop/llmtop/cmd/watch"
	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime/engine"
	"github.com/llmtop/llmtop/runtime/host"
	"github.com/llmtop/llmtop/runtime/source/probe"
	"github.com/llmtop/llmtop/runtime/source/socket"
)

func newProbeCommand() *cobra.Command {
	var dryRun bool
	var sample, listen string
	c := &cobra.Command{
		Use:   "probe PID",
		Short: "Let attach watch an unmodified llama.cpp process",
		Long: `probe watches a running process that links llama.cpp, such as llama-server or the runner of Ollama,
by eBPF programs at a few of its functions. The process is neither restarted nor changed. It needs
root on Linux; once the probes are attached it runs as the user who called sudo, and lets llmtop
attach of that user show what they see. It ends with the process, and leaves nothing behind.

Of any process that computes with CUDA it counts launches, copies and waits.

sudo llmtop attach pid:PID does the same with the screen in one command.`,
		Example: `  sudo llmtop probe 4711
  llmtop probe --dry-run 4711`,
		Args: takes(1, 1, "probe takes the number of one process: list engines with llmtop discover"),
		RunE: func(c *cobra.Command, args []string) error {
			pid, err := strconv.Atoi(strings.TrimPrefix(args[0], "pid:"))
			if err != nil || pid <= 0 {
				return exit.Usagef("probe %s: write the number of a process: list engines with llmtop discover", args[0])
			}
			target, err := probe.InspectCUDA(pid)
			switch {
			case errors.Is(err, os.ErrPermission):
				return needsRoot(err)
			case err != nil:
				return exit.Usage(err)
			}
			if dryRun {
				return describeTarget(c.OutOrStdout(), target)
			}
			hooks, err := local.Hooks(sample, false)
			if err != nil {
				return err
			}
			return probeProcess(c.Context(), target, hooks, listen, c.ErrOrStderr())
		},
	}
	flags := c.Flags()
	flags.BoolVar(&dryRun, "dry-run", false, "print what would be probed, and exit")
	flags.StringVar(&sample, "expert-sample", "auto", "count router picks in 1 of `N` forward passes, auto (overhead about 0.5 %) or off")
	flags.StringVar(&listen, "listen", "", "`ADDRESS` to listen at, unix:PATH or tcp:HOST:PORT (default: a socket that attach finds)")
	return c
}

// newToggleCommand returns the hidden command that attaches and detaches the probe of picks.
func newToggleCommand() *cobra.Command {
	return &cobra.Command{
		Use: probe.ToggleCommand, Hidden: true, Args: cobra.ArbitraryArgs,
		RunE: func(_ *cobra.Command, args []string) error { return probe.Toggle(os.Stdin, console.Raw, args) },
	}
}

// needsRoot returns an error with the command that would not have it: this one, as root.
func needsRoot(err error) error { return exit.Usagef("%w: run %s", err, watch.Sudo(os.Args[1:]...)) }

// describeTarget prints which functions of a process would be probed.
func describeTarget(w io.Writer, t *probe.Target) error {
	fmt.Fprintf(w, "process %d: %s\n", t.PID, t.Program)
	for _, fact := range [][2]string{{"llama.cpp", t.Version}, {"build id", t.BuildID}, {"model", t.Model}} {
		if fact[1] != "" {
			fmt.Fprintf(w, "%s: %s\n", fact[0], fact[1])
		}
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, s := range slices.Concat(t.Symbols, t.CUDA) {
		in := "in " + s.File
		switch {
		case s.File == "":
			in = "not found"
		case s.Refused != "":
			in += ", not watched: " + s.Refused
		}
		fmt.Fprintf(table, "%s\t%s\t%s\n", s.Purpose, s.Name, in)
	}
	if err := table.Flush(); err != nil {
		return fmt.Errorf("write list: %w", err)
	}
	return nil
}

// probeProcess probes a process until a signal or the end of the process, and serves the events at an address, "": one
// that attach finds.
func probeProcess(ctx context.Context, target *probe.Target, hooks engine.Hooks, listen string, notes io.Writer) (err error) {
	ctx, stop := exit.WithSignals(ctx, exit.ErrClosed)
	defer stop()
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	clock := engine.NewClock()
	p, err := probe.Open(target, clock, hooks)
	switch {
	case errors.Is(err, os.ErrPermission):
		return needsRoot(fmt.Errorf("probe process %d: %w", target.PID, err))
	case err != nil:
		return exit.Usage(err)
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	if err := watch.DropRoot(); err != nil {
		return err
	}
	if listen == "" { // names the user's folder, so after DropRoot
		listen = socket.Address("probe")
	}
	server, err := socket.Listen(listen, socket.Options{Context: ctx, Clock: clock, Engine: event.EngineInfo{Name: "llama.cpp"}})
	if err != nil {
		return exit.Usage(err)
	}
	defer func() { err = errors.Join(err, server.Close()) }()
	var machine session.Machine
	hosted := machine.Add(clock, session.Known(p.PID), p.In(server))
	defer machine.Close()
	usage := host.NewUsageSampler(host.UsageOptions{Clock: clock, Processes: hosted.Processes})
	tasks, ctx := errgroup.WithContext(ctx)
	ended := watch.AtEnd(func(e *event.EngineInfo) {
		if e.State == event.EngineFailed {
			end(exit.Usagef("probe process %d: %s", target.PID, e.Reason))
			return
		}
		fmt.Fprintf(notes, "process %d: %s\n", target.PID, e.Reason)
		end(exit.ErrClosed)
	})
	tasks.Go(session.Guarded("watch process", func() error { return p.Run(ctx, event.Tee{server, usage, ended}) }))
	tasks.Go(session.Guarded("sample threads", func() error { return usage.Run(ctx, server) }))
	tasks.Go(session.Guarded("sample host", func() error { return host.New(host.Options{Clock: clock}).Run(ctx, &machine) }))
	fmt.Fprintf(notes, "watching process %d; to show it: llmtop attach %s\n", target.PID, server.Address())
	return exit.IgnoreClosed(cmp.Or(tasks.Wait(), context.Cause(ctx)))
}
