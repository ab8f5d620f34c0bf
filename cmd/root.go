// Package cmd is the command line. A command connects sources, store, outputs and screen; it does not measure or draw.
package cmd

import (
	"context"
	"fmt"
	"io"
	"log"
	"os"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/llmtop/llmtop/cmd/console"
	"github.com/llmtop/llmtop/cmd/exit"
	"github.com/llmtop/llmtop/cmd/files"
	"github.com/llmtop/llmtop/cmd/local"
	"github.com/llmtop/llmtop/profiler/verdict"
	"github.com/llmtop/llmtop/runtime/host"
	"github.com/llmtop/llmtop/runtime/source/scrape/engine"
)

// gcPercent is how much the heap grows before garbage is collected: less than Go's 100, since the engine beside llmtop
// needs the memory. GOGC overrides it.
const gcPercent = 20

// Main runs the command line and exits.
func Main() {
	if host.ChildMain() {
		return
	}
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	log.SetOutput(io.Discard) // messages of libraries about broken connections would disturb the screen
	for _, e := range engine.Engines {
		verdict.NameSettings(string(e.Kind), e.Settings)
	}
	root := NewRoot()
	root.SetArgs(withVerb(root, spellOut(root, os.Args[1:])))
	err := root.ExecuteContext(context.Background())
	if lost := console.Out.Err(); err == nil && lost != nil {
		err = fmt.Errorf("write output: %w", files.Cause(lost))
	}
	if err != nil && err.Error() != "" {
		console.PrintError(err)
	}
	os.Exit(exit.Code(err))
}

// NewRoot makes the command llmtop with all its commands.
func NewRoot() *cobra.Command {
	cobra.EnableCommandSorting = false // in the order in which they are added: that of use
	var run local.Run
	var start discoverFlags
	root := &cobra.Command{
		Use:   "llmtop [ADDRESS... | MODEL.gguf | RECORDING]",
		Short: "Live profiler for LLM inference",
		Long: `llmtop shows where the time of each LLM request goes, live: the parts of the time to first token
(TTFT), the gaps between tokens, throughput, the load of the machine, and the experts that a
mixture-of-experts (MoE) model picks.

Without arguments it looks for engines on this machine. It attaches to the only one, or lets you
choose. If it finds none, it runs the built-in model at 40 tokens/s; press p for your own prompts.`,
		Example: `  llmtop 8080           # attach to a server here; also http://gpu1:8000, pid:42
  llmtop model.gguf     # run a model
  llmtop FILE.llmtop    # replay what llmtop record wrote; FILE.json: print that report`,
		Args:              refuseCommandArgs,
		SilenceErrors:     true,
		SilenceUsage:      true,
		PersistentPreRunE: func(c *cobra.Command, args []string) error { return files.CheckOutputs(c.Flags(), args) },
		RunE: func(c *cobra.Command, _ []string) error {
			run.Demo = true
			return begin(c, &run, &start)
		},
	}
	run.Bind(root)
	start.bind(root.Flags())
	useDemoDefaults(root.Flags())
	root.SetOut(console.Out)
	root.SetErr(console.Err)
	root.SetFlagErrorFunc(flagError)
	useHelp(root)
	root.Version = versionLine()
	root.SetVersionTemplate("{{.Version}}\n")
	root.Flags().BoolP("version", "V", false, "print the version")
	root.AddCommand(
		newAttachCommand(), newRunCommand(), newRecordCommand(), newReplayCommand(), newReportCommand(), newCompareCommand(),
		newBenchCommand(), newTapCommand(), newProxyCommand(), newDiscoverCommand(), newServeCommand(), newExpertsCommand(), newEngineCommand(),
		newProbeCommand(), newCastCommand(), newVersionCommand(), newManCommand(), newChildCommand(), newTemplateCommand(), newToggleCommand(),
	)
	useCompletion(root)
	return root
}

// demoDefaults are the defaults of flags where the built-in model shows itself: a pace to follow, since unlimited it would
// finish at once, and a sampler that keeps so small a model from repeating itself.
var demoDefaults = map[string]string{"pace": "40", "temp": "1", "repeat-penalty": "1.1"}

// useDemoDefaults changes the flags that the user has not set.
func useDemoDefaults(set *pflag.FlagSet) {
	for name, value := range demoDefaults {
		if f := set.Lookup(name); !f.Changed {
			f.DefValue = value
			_ = f.Value.Set(value) // they parse
		}
	}
}

// refuseCommandArgs refuses arguments of the root command: they are unknown commands.
func refuseCommandArgs(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return unknownCommand(c, args[0], "it is no address, model or recording either: see llmtop --help")
}

// takes returns the check for a command of least to most arguments. A %s in the words is the first argument.
func takes(least, most int, words string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		switch {
		case len(args) >= least && len(args) <= most:
			return nil
		case strings.Contains(words, "%s"):
			words = fmt.Sprintf(words, args[0])
		}
		return exit.Usagef("%s", words)
	}
}

// refuseArgs refuses any arguments.
func refuseArgs(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return exit.Usagef("%s takes no arguments", strings.TrimPrefix(c.CommandPath(), c.Root().Name()+" "))
}
