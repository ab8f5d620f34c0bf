package cmd

import (
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/llmtop/llmtop/runtime/scrape"
)

// castOptions are what the record command is told: of a run, or of engines elsewhere.
type castOptions struct{ run runOptions }

func newRecordCommand() *cobra.Command {
	var opts castOptions
	c := &cobra.Command{
		Use:   "record --cast FILE [MODEL.gguf | ADDRESS...]",
		Short: "Record the screen for people: as an asciicast, or as an SVG that moves",
		Long: `record runs a model (the built-in one without a file) or watches engines elsewhere, as run and attach do, and records what the screen
shows: as an asciicast (--cast), which asciinema and its like play, as an SVG that moves by itself (--svg), or both. It needs no terminal.
Addresses are as of attach: HOST:PORT, PORT and pid:PROCESS are some, too, unless there is a file of that name.
It ends with the script, after --for, or with ctrl+c.

A script says what is done on the screen: keys, text, sizes, waits. docs/recordings.md has all of it.

To record events instead, which can be replayed and measured: llmtop run --record FILE. llmtop replay --cast makes an asciicast of such a
recording, faster than real time and the same each time.`,
		Example: `  llmtop record --cast demo.cast --for 30s
  llmtop record --cast demo.cast --script demo.toml --size 160x45 model.gguf -p 'Once upon a time'
  llmtop record --svg engine.svg --for 20s unix:/run/user/1000/llmtop/llmtop-4711.sock`,
		RunE: func(c *cobra.Command, args []string) error { return opts.record(c, args) },
	}
	r := &opts.run
	r.camera = &camera{}
	r.bind(c)
	r.camera.bind(c.Flags())
	c.Flags().StringArrayVarP(&r.prompts.texts, "prompt", "p", nil, "prompt; may be given several times")
	c.Flags().StringArrayVarP(&r.prompts.files, "file", "f", nil, "file that holds one prompt; may be given several times")
	return c
}

func (o *castOptions) record(c *cobra.Command, args []string) error {
	if !o.run.camera.on() {
		return usagef("record needs --cast FILE or --svg FILE; to record events: llmtop run --record FILE")
	}
	if slices.ContainsFunc(args, elsewhere) {
		return o.attach(c, args)
	}
	if err := o.run.arguments(args); err != nil {
		return err
	}
	if o.run.model == "" && !c.Flags().Changed("pace") {
		o.run.pace = demoPace // flat out there would be nothing to see
	}
	return o.run.run(c)
}

// elsewhere reports whether an argument is the address of an engine or a server. A file of that name is meant where there is one and nothing says that
// it is an address.
func elsewhere(arg string) bool {
	if serverAt(arg) != "" || strings.HasPrefix(arg, "pid:") {
		_, err := os.Stat(arg)
		return err != nil
	}
	return slices.ContainsFunc([]string{"unix:", "tcp:", "http:", "https:", fleetScheme + "http"}, func(p string) bool { return strings.HasPrefix(arg, p) })
}

// attach records engines elsewhere. How they run is not this program's to say.
func (o *castOptions) attach(c *cobra.Command, args []string) error {
	a := attachOptions{
		view: o.run.view, recording: o.run.recording, exports: o.run.exports, tokenFile: o.run.listening.tokenFile, addresses: args,
		every: scrape.DefaultInterval, notes: c.ErrOrStderr(),
	}
	if i := slices.IndexFunc(args, func(arg string) bool { return !elsewhere(arg) }); i >= 0 {
		return usagef("%q: record takes one model file, or addresses (unix:PATH, tcp:HOST:PORT, http://HOST:PORT, HOST:PORT, PORT, pid:PROCESS)", args[i])
	}
	var wrong string
	set := pflag.NewFlagSet("run", pflag.ContinueOnError)
	new(settings).bindEngine(set)
	c.Flags().Visit(func(f *pflag.Flag) {
		if set.Lookup(f.Name) != nil || f.Name == "prompt" || f.Name == "file" {
			wrong = f.Name
		}
	})
	if wrong != "" {
		return usagef("--%s says how a model runs here, and %s runs elsewhere", wrong, args[0])
	}
	return a.run(c.Context())
}
