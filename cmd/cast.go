package cmd

import (
	"slices"

	"github.com/llmtop/llmtop/cmd/address"
	"github.com/llmtop/llmtop/cmd/exit"
	"github.com/llmtop/llmtop/cmd/files"
	"github.com/llmtop/llmtop/cmd/local"
	"github.com/llmtop/llmtop/cmd/screen"
	"github.com/llmtop/llmtop/cmd/watch"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

func newCastCommand() *cobra.Command {
	r := local.Run{View: screen.View{Camera: &screen.Camera{}}}
	c := &cobra.Command{
		Use:   "cast FILE [MODEL.gguf | ADDRESS...]",
		Short: "Record the screen as an asciicast or an animated SVG",
		Long: `cast runs a model (without an argument the built-in one), or attaches to engines, and records the
screen as an asciicast (FILE.cast, for asciinema and similar players) or as an animated SVG
(FILE.svg); for both, name the other one with --out. It needs no terminal. It takes the addresses of
llmtop attach; a file of that name has precedence over HOST:PORT, PORT and pid:PID. It stops at the
end of the script, after --for, or on Ctrl-C.

A script lists keys, text, sizes and waits: see docs/recordings.md.

To record events, for replay and measurements, use llmtop record. From such a recording, llmtop
replay --out FILE.cast makes the same asciicast each time, faster than real time.`,
		Example: `  llmtop cast demo.cast --for 30s
  llmtop cast demo.cast --script demo.toml --size 160x45 model.gguf -p 'Once upon a time'
  llmtop cast engine.svg --for 20s unix:/run/user/1000/llmtop/llmtop-4711.sock`,
		RunE: func(c *cobra.Command, args []string) error { return castScreen(c, &r, args) },
	}
	r.Bind(c)
	r.Camera.Bind(c.Flags())
	r.Prompts.Bind(c.Flags())
	return c
}

func castScreen(c *cobra.Command, r *local.Run, args []string) error {
	if !r.Camera.Enabled() {
		return exit.Usagef("cast needs the file to write: llmtop cast FILE.cast or FILE.svg; to record events: llmtop record FILE%s", files.Recording)
	}
	if err := r.Camera.CheckNew(); err != nil {
		return err
	}
	if slices.ContainsFunc(args, address.IsEngine) {
		return castEngines(c, r, args)
	}
	if err := runArguments(r, args); err != nil {
		return err
	}
	if r.Model == "" {
		useDemoDefaults(c.Flags())
	}
	return r.Start(c)
}

// castEngines records the screen of attached engines. It refuses the flags of run that attach does not have.
func castEngines(c *cobra.Command, r *local.Run, args []string) error {
	if i := slices.IndexFunc(args, func(arg string) bool { return !address.IsEngine(arg) }); i >= 0 {
		return exit.Usagef("%q: cast takes one model file, or addresses (unix:PATH, tcp:HOST:PORT, http://HOST:PORT, HOST:PORT, PORT, pid:PROCESS)", args[i])
	}
	var misplaced string
	c.Flags().Visit(func(f *pflag.Flag) {
		if onlyRuns(c.Root(), "--"+f.Name) {
			misplaced = f.Name
		}
	})
	if misplaced != "" {
		return exit.Usagef("--%s applies only to a model that llmtop runs, not to %s", misplaced, args[0])
	}
	a := watch.Options{View: r.View, Outputs: r.Outputs, Addresses: args, Notes: c.ErrOrStderr()}
	return a.Run(c.Context())
}
