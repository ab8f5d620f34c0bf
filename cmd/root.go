// Package cmd is the command line: one file a command, which puts sources, store and screen together and leaves measuring
// and drawing to them.
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

// Main runs the command line of the process and exits with its code.
func Main() {
	if host.ChildMain() {
		return
	}
	log.SetOutput(io.Discard) // what libraries have to say of broken connections does not belong on the screen
	root := newRootCommand()
	err := root.ExecuteContext(context.Background())
	if err != nil && err.Error() != "" {
		fmt.Fprintf(os.Stderr, "llmtop: %s\n", strings.TrimSpace(err.Error()))
	}
	os.Exit(exitCode(err))
}

func newRootCommand() *cobra.Command {
	var opts runOptions
	var start starting
	root := &cobra.Command{
		Use:   "llmtop",
		Short: "Live profiler for LLM inference",
		Long: `llmtop shows, live and per request, where the time to first token goes, every token's gap, throughput, what the machine does
meanwhile, and which experts a mixture-of-experts model picks.

Without arguments it looks for engines that run on this machine (see llmtop discover): it shows the only one, or lets you choose. Where there
is none, with --discover off, or with flags that say how to run it, it runs the model that is built in, on prompts of five kinds in turn,
at reading speed, until you type a prompt of your own with p.`,
		Args:          noSuchCommand,
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
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	root.AddCommand(newChildCommand(), newRunCommand(), newServeCommand(), newAttachCommand(), newDiscoverCommand(), newProxyCommand(), newReplayCommand(), newRecordCommand(), newReportCommand(), newEngineCommand(), newBenchCommand(), newCompareCommand(), newVersionCommand())
	return root
}

// demoPace is the speed in tokens/s of the first run: reading speed, since flat out the built-in model is over in a blink.
const demoPace = 40

// noSuchCommand refuses arguments of the root command, all of which would have been commands.
func noSuchCommand(_ *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return usagef("unknown command %q: see llmtop --help; to run a model file: llmtop run %s", args[0], args[0])
}

// bind gives a command the settings' flags and the config file that sets what they leave open.
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

// useConfig has a command read the config file for the flags that were left open and for what is no flag, and check them then.
func useConfig(c *cobra.Command, config *string, more *tables, check func() error) {
	c.Flags().StringVar(config, "config", "", "config file (default "+homely(configPath())+")")
	c.PreRunE = func(c *cobra.Command, _ []string) error {
		path, named := *config, *config != ""
		if !named {
			path = configPath()
		}
		if err := applyConfig(path, named, more, settingsFlags(), c.Flags()); err != nil {
			return err
		}
		return check()
	}
}

// settingsFlags is the set of flags that a config file may set.
func settingsFlags() *pflag.FlagSet {
	var s settings
	return s.flags()
}

// homely writes a path below the user's home with ~.
func homely(path string) string {
	home, err := os.UserHomeDir()
	if err != nil || home == "" {
		return path
	}
	if rest, below := strings.CutPrefix(path, home+string(os.PathSeparator)); below {
		return "~" + string(os.PathSeparator) + rest
	}
	return path
}
