package cmd

import (
	"github.com/llmtop/llmtop/cmd/exit"
	"github.com/llmtop/llmtop/cmd/files"
	"github.com/llmtop/llmtop/cmd/local"
	"github.com/spf13/cobra"
)

func newRunCommand() *cobra.Command {
	var opts local.Run
	c := &cobra.Command{
		Use:   "run [MODEL.gguf] [-]",
		Short: "Run a model and watch it",
		Long: `run loads a GGUF file, or the built-in model, generates text for the given prompts and shows what
happens. Without a prompt it waits until you enter one with p; the built-in model runs its own
prompts meanwhile.

If standard output is not a terminal, it prints the generated text, and a summary to standard error.
--headless prints the whole report instead. Report files, such as --out FILE.json, are also written
when a screen closes; --out - writes JSON to stdout, without a screen.`,
		Example: `  llmtop run model.gguf -p 'Once upon a time'
  llmtop run -f prompt.txt -n 64 --out report.json
  echo 'Call me Ishmael.' | llmtop run - > answer.txt`,
		Args: cobra.ArbitraryArgs, // checked by arguments
		RunE: func(c *cobra.Command, args []string) error {
			if err := runArguments(&opts, args); err != nil {
				return err
			}
			return opts.Start(c)
		},
	}
	opts.Bind(c)
	flags := c.Flags()
	opts.Prompts.Bind(flags)
	files.BindReports(flags).BindHeadless(flags, "run the prompts without a screen, report and exit")
	flags.BoolVar(&opts.Ops, "ops", false, "time every kind of operation in every layer (llamacpp only; slows it down)")
	flags.IntVar(&opts.Logprobs, "logprobs", 0, "report `N` alternatives per token with their log-probabilities")
	return c
}

// runArguments reads the model file, and - for a prompt on standard input, from the arguments.
func runArguments(r *local.Run, args []string) error {
	for _, arg := range args {
		switch {
		case arg == "-" && !r.Prompts.Stdin:
			r.Prompts.Stdin = true
		case arg != "-" && r.Model == "":
			r.Model = arg
		default:
			return exit.Usagef("unexpected argument %q: run takes one model file, and - for a prompt on standard input", arg)
		}
	}
	if r.Logprobs < 0 || r.Logprobs > maxLogprobs {
		return exit.Usagef("--logprobs %d: must be 0 to %d", r.Logprobs, maxLogprobs)
	}
	return nil
}

// maxLogprobs is the maximum number of alternatives per token.
const maxLogprobs = 100
