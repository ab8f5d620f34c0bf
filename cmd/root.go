// Package cmd is the command line. A command connects sources, store, outputs and screen; it does not measure or draw.
package cmd

import (
	"context"
	"fmt"
	"io"
	"log"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/llmtop/llmtop/runtime/host"
)

// Main runs the command line and exits.
func Main() {
	if host.ChildMain() {
		return
	}
	log.SetOutput(io.Discard) // messages of libraries about broken connections would disturb the screen
	root := newRootCommand()
	err := root.ExecuteContext(context.Background())
	if err != nil && err.Error() != "" {
		printError(err)
	}
	os.Exit(exitCode(err))
}

func newRootCommand() *cobra.Command {
	var opts runOptions
	var start discoverFlags
	root := &cobra.Command{
		Use:   "llmtop",
		Short: "Live profiler for LLM inference",
		Long: `llmtop shows where the time of each LLM request goes, live: the parts of the time to first token
(TTFT), the gaps between tokens, throughput, the load of the machine, and the experts that a
mixture-of-experts (MoE) model picks.

Without arguments it looks for engines on this machine (see llmtop discover). It attaches to the
only one, or lets you choose. If it finds none, with --discover off, or with a flag for running a
model, it runs the built-in model on prompts of five kinds at reading speed. Press p to enter your
own prompt.`,
		Args:          refuseCommandArgs,
		SilenceErrors: true,
		SilenceUsage:  true,
		RunE: func(c *cobra.Command, _ []string) error {
			opts.demo = true
			return opts.begin(c, &start)
		},
	}
	opts.bind(root)
	start.bind(root.Flags())
	root.Flags().Lookup("pace").DefValue = fmt.Sprint(demoPace)
	opts.pace = demoPace
	root.SetOut(consoleOut)
	root.SetErr(consoleErr)
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return flagError(err) })
	useHelp(root)
	root.AddCommand(
		newRunCommand(), newServeCommand(), newAttachCommand(), newDiscoverCommand(), newProxyCommand(),
		newReplayCommand(), newRecordCommand(), newReportCommand(), newBenchCommand(), newCompareCommand(),
		newEngineCommand(), newVersionCommand(), newManCommand(), newChildCommand(),
	)
	return root
}

// demoPace is the pace of the built-in model in tokens/s: reading speed, since unlimited it would finish at once.
const demoPace = 40

// refuseCommandArgs refuses arguments of the root command: they are unknown commands.
func refuseCommandArgs(_ *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return usagef("unknown command %q: see llmtop --help; to run a model file use llmtop run %s", args[0], args[0])
}

// refuseArgs refuses any arguments.
func refuseArgs(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return usagef("%s takes no arguments", strings.TrimPrefix(c.CommandPath(), c.Root().Name()+" "))
}

// bind adds the flags of the settings to a command, and reads the config file for those that are not set.
func (o *runOptions) bind(c *cobra.Command) {
	c.Flags().AddFlagSet(o.settings.flags())
	o.recording.bind(c.Flags())
	o.listening.bind(c.Flags())
	o.exports.bind(c.Flags())
	useConfig(c, &o.config, &o.tables, func() error {
		for _, check := range []func() error{o.recording.check, o.listening.check, o.exports.check} {
			if err := check(); err != nil {
				return err
			}
		}
		return o.settings.check()
	})
}

// useConfig makes a command read the config file for the flags that are not set and for tables, and then run check.
func useConfig(c *cobra.Command, config *string, tables *tables, check func() error) {
	c.Flags().StringVar(config, "config", "", "config `FILE` (default "+shortenHome(configPath())+")")
	c.PreRunE = func(c *cobra.Command, _ []string) error {
		path, named := *config, *config != ""
		if !named {
			path = configPath()
		}
		if err := applyConfig(path, named, tables, settingsFlags(), c.Flags()); err != nil {
			return err
		}
		return check()
	}
}

// settingsFlags returns the flags that a config file may set.
func settingsFlags() *pflag.FlagSet {
	var s settings
	return s.flags()
}

// shortenHome replaces the user's home folder in a path by ~.
func shortenHome(path string) string {
	home, err := os.UserHomeDir()
	if err != nil || home == "" {
		return path
	}
	if rest, below := strings.CutPrefix(path, home+string(os.PathSeparator)); below {
		return "~" + string(os.PathSeparator) + rest
	}
	return path
}
