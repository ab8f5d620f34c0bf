package cmd

import (
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/llmtop/llmtop/runtime/source/scrape"
)

// castOptions are the flags of the record command, for a run or for attached engines.
type castOptions struct{ run runOptions }

func newRecordCommand() *cobra.Command {
	var opts castOptions
	c := &cobra.Command{
		Use:   "record --cast FILE [MODEL.gguf | ADDRESS...]",
		Short: "Record the screen as an asciicast or an animated SVG",
		Long: `record runs a model (without an argument the built-in one), or attaches to engines, and records the
screen as an asciicast (--cast, for asciinema and similar players), as an animated SVG (--svg), or
both. It needs no terminal. It takes the addresses of llmtop attach; a file of that name has
precedence over HOST:PORT, PORT and pid:PID. It stops at the end of the script, after --for, or on
Ctrl-C.

A script lists keys, text, sizes and waits: see docs/recordings.md.

To record events, for replay and measurements, use llmtop run --record FILE. llmtop replay --cast
turns such a recording into an asciicast, faster than real time and the same each time.`,
		Example: `  llmtop record --cast demo.cast --for 30s
  llmtop record --cast demo.cast --script demo.toml --size 160x45 model.gguf -p 'Once upon a time'
  llmtop record --svg engine.svg --for 20s unix:/run/user/1000/llmtop/llmtop-4711.sock`,
		RunE: func(c *cobra.Command, args []string) error { return opts.record(c, args) },
	}
	r := &opts.run
	r.camera = &camera{}
	r.bind(c)
	r.camera.bind(c.Flags())
	c.Flags().StringArrayVarP(&r.prompts.texts, "prompt", "p", nil, "prompt `TEXT` (repeatable)")
	c.Flags().StringArrayVarP(&r.prompts.files, "file", "f", nil, "`FILE` with one prompt (repeatable)")
	return c
}

func (o *castOptions) record(c *cobra.Command, args []string) error {
	if !o.run.camera.enabled() {
		return usagef("record needs --cast FILE or --svg FILE; to record events: llmtop run --record FILE")
	}
	if slices.ContainsFunc(args, isEngineAddress) {
		return o.attach(c, args)
	}
	if err := o.run.arguments(args); err != nil {
		return err
	}
	if o.run.model == "" && !c.Flags().Changed("pace") {
		o.run.pace = demoPace // unlimited speed would be over at once
	}
	return o.run.run(c)
}

// isEngineAddress reports whether an argument is the address of an engine. For PORT, HOST:PORT and pid:PROCESS, an
// existing file of that name has precedence.
func isEngineAddress(arg string) bool {
	if serverAddress(arg) != "" || strings.HasPrefix(arg, "pid:") {
		_, err := os.Stat(arg)
		return err != nil
	}
	return slices.ContainsFunc([]string{"unix:", "tcp:", "http:", "https:", fleetScheme + "http"}, func(p string) bool { return strings.HasPrefix(arg, p) })
}

// attach records attached engines. It refuses flags for running a model.
func (o *castOptions) attach(c *cobra.Command, args []string) error {
	a := attachOptions{
		view: o.run.view, recording: o.run.recording, exports: o.run.exports, tokenFile: o.run.listening.tokenFile, addresses: args,
		every: scrape.DefaultInterval, notes: c.ErrOrStderr(),
	}
	if i := slices.IndexFunc(args, func(arg string) bool { return !isEngineAddress(arg) }); i >= 0 {
		return usagef("%q: record takes one model file, or addresses (unix:PATH, tcp:HOST:PORT, http://HOST:PORT, HOST:PORT, PORT, pid:PROCESS)", args[i])
	}
	var misplaced string
	set := pflag.NewFlagSet("run", pflag.ContinueOnError)
	new(settings).bindEngine(set)
	c.Flags().Visit(func(f *pflag.Flag) {
		if set.Lookup(f.Name) != nil || f.Name == "prompt" || f.Name == "file" {
			misplaced = f.Name
		}
	})
	if misplaced != "" {
		return usagef("--%s applies only to a model that llmtop runs, not to %s", misplaced, args[0])
	}
	return a.run(c.Context())
}
