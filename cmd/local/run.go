// Package local runs models: it chooses the engine, loads it here or in a child process, and sends it prompts.
package local

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/llmtop/llmtop/cmd/config"
	"github.com/llmtop/llmtop/cmd/exit"
	"github.com/llmtop/llmtop/cmd/files"
	"github.com/llmtop/llmtop/cmd/screen"
	"github.com/llmtop/llmtop/cmd/session"
	"github.com/llmtop/llmtop/cmd/version"
	"github.com/llmtop/llmtop/profiler/report"
	"github.com/llmtop/llmtop/runtime/engine"
	"github.com/llmtop/llmtop/runtime/engine/native"
)

// Run is a model to run, with the flags and arguments that say how.
type Run struct {
	Settings
	screen.View
	session.Outputs
	Listen   session.ListenFlags
	Model    string // GGUF file; "": built-in
	Prompts  files.Prompts
	Logprobs int // alternatives per token in the report

	Demo   bool                // llmtop without a command: built-in prompts in turn, paced
	Reason string              // why the built-in model runs, "" if there is nothing to say
	Note   string              // the same in more words, shown at the start
	Quiet  bool                // nothing else may compute next to the engine
	Remote func(*Engine) error // adds a remote engine and its samplers; nil: llmtop runs the engine
	At     string              // address of the remote engine
	Adjust func(*report.Meta)  // corrects the metadata of a remote engine; nil: llmtop runs the engine
	Shown  bool                // there is a screen: set when the run starts

	Command *cobra.Command // with the flags; Bind sets it

	picks bool        // request the router picks of every token
	chat  chatPrompts // set when the run starts
}

// Bind adds the flags of the settings, the screen and the outputs, and reads the config file.
func (r *Run) Bind(c *cobra.Command) {
	r.Command = c
	r.Settings.Bind(c.Flags())
	r.View.Bind(c.Flags())
	r.Outputs.Bind(c.Flags())
	r.Listen.Bind(c.Flags())
	config.Use(c, &r.Alerts, ConfigFlags(), func() error {
		return cmp.Or(r.Outputs.Check(), r.Listen.Check(), r.Settings.Check(), r.View.Check())
	})
}

// Start runs the prompts: on the screen if there is a terminal, with plain output otherwise.
func (r *Run) Start(c *cobra.Command) error {
	if err := r.CheckParams(); err != nil {
		return err
	}
	r.chat.begin(r.Model, r.raw)
	prompts, err := r.readPrompts(c.InOrStdin())
	if err != nil {
		return err
	}
	stdout, notes := c.OutOrStdout(), c.ErrOrStderr()
	if !r.Out.Headless { // standard output is for generated text
		stdout = notes
	}
	if !r.Out.Silent() && r.View.Visible() {
		if !r.Out.Reports() {
			_, err := r.live(c.Context(), prompts)
			return err
		}
		return r.Out.Write(stdout, notes, r.Out.Headless, func() (*report.Report, error) { return r.live(c.Context(), prompts) })
	}
	if len(prompts) == 0 {
		if r.Model != "" {
			if _, err := os.Stat(r.Model); err != nil {
				return exit.Usagef("open model %s: %w", r.Model, files.Cause(err))
			}
			return exit.Usagef("no prompt: use -p TEXT, -f FILE, or - for standard input")
		}
		prompts = r.builtinRequests()[:onePerKind]
	}
	if r.Demo {
		r.Pace = 0 // there is no reader
	}
	if r.chat.unused != nil {
		fmt.Fprintf(c.ErrOrStderr(), "prompts are continued as they are: %v\n", r.chat.unused)
	}
	if err := r.chat.applyTemplate(prompts); err != nil {
		return err
	}
	ctx, stop := exit.WithSignals(c.Context(), exit.ErrInterrupted)
	defer stop()
	texts := io.Discard
	if !r.Out.Silent() {
		texts = c.OutOrStdout()
	}
	return r.Out.Write(stdout, notes, r.Out.Headless, func() (*report.Report, error) { return r.headless(ctx, prompts, texts, c.ErrOrStderr()) })
}

// CheckParams refuses unusable sampler parameters.
func (r *Run) CheckParams() error {
	if err := native.CheckParams(r.Params()); err != nil {
		return exit.Usage(err)
	}
	return nil
}

// onePerKind is the number of built-in prompts with one of each kind.
const onePerKind = 5

// readPrompts converts the prompts of the command line to requests.
func (r *Run) readPrompts(stdin io.Reader) ([]engine.Request, error) {
	texts, err := r.Prompts.Read(stdin)
	if err != nil {
		return nil, err
	}
	requests := make([]engine.Request, len(texts))
	for i, text := range texts {
		requests[i] = r.Request(text, "prompt")
	}
	return requests, nil
}

// Request returns a request with the settings of the run. Its text is included in the events, which stay in this
// process.
func (r *Run) Request(text, label string) engine.Request {
	return engine.Request{
		Text: text, Label: label, Group: r.Group, MaxTokens: r.Tokens, Params: r.Params(),
		SendText: true, TopLogprobs: r.Logprobs, Picks: r.picks,
	}
}

// requestPicks requests the router picks of every token from the native engine, unless --expert-sample is off. Other engines
// would have to inspect every forward pass.
func (r *Run) requestPicks(e *Engine, prompts []engine.Request) {
	r.picks = e.native && r.Sample != sampleOff
	for i := range prompts {
		prompts[i].Picks = r.picks
	}
}

// builtinRequests returns the built-in prompts as requests, alternating between kinds.
func (r *Run) builtinRequests() []engine.Request {
	var requests []engine.Request
	for _, p := range native.DemoPrompts() {
		requests = append(requests, r.Request(p.Text, p.Kind))
	}
	return requests
}

// Meta returns the metadata of the report of the run, which ended with err.
func (r *Run) Meta(err error) report.Meta {
	name := r.Command.Name()
	if name != "bench" {
		name = "run --headless"
	}
	flags := r.Command.Flags()
	m := report.Meta{
		Version: version.String(), Command: CommandLine(name, flags, len(r.Prompts.Texts)), Configuration: Configuration(flags), Partial: endedEarly(err),
	}
	if r.Adjust != nil {
		r.Adjust(&m)
	}
	return m
}

// endedEarly reports whether a signal or a crash of the engine ended the run.
func endedEarly(err error) bool { return errors.Is(err, exit.ErrInterrupted) || crashed(err) }

// Configuration returns every setting that a command with some flags has by the name of its flag.
func Configuration(flags *pflag.FlagSet) map[string]string {
	values := map[string]string{}
	for _, name := range config.FlagNames(ConfigFlags()) {
		if flag := flags.Lookup(name); flag != nil {
			values[name] = flag.Value.String()
		}
	}
	return values
}

// PromptError makes a usage error of an error that the prompt causes.
func PromptError(err error) error {
	for _, mistake := range []error{engine.ErrEmptyPrompt, engine.ErrPromptTooLong} {
		if errors.Is(err, mistake) {
			return exit.Usage(fmt.Errorf("run prompt: %w", err))
		}
	}
	return err
}
