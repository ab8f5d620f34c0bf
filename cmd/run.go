package cmd

import (
	"github.com/spf13/cobra"
)

// runOptions are the flags and arguments of the run command and of llmtop without a command.
type runOptions struct {
	settings
	recording       recordFlags
	listening       listenFlags
	exports         exportFlags
	config          string
	addRemoteEngine func(*local) error // adds a remote engine and its samplers; nil: llmtop runs the engine

	quiet    bool   // nothing else may compute next to the engine
	demo     bool   // llmtop without a command: built-in prompts in turn, paced
	reason   string // why the built-in model runs, "" if there is nothing to say
	note     string // the same in more words, shown at the start
	model    string // GGUF file; "": built-in
	prompts  promptSources
	headless bool
	files    reportFiles
	logprobs int // alternatives per token in the report

	chosen    chosen                   // set when the run starts
	picks     bool                     // request the router picks of every token, for the screen
	chat      chatPrompts              // set when the run starts
	flagValue func(name string) string // returns the text of the value of a flag
}

func newRunCommand() *cobra.Command {
	var opts runOptions
	c := &cobra.Command{
		Use:   "run [MODEL.gguf] [-]",
		Short: "Run a model and watch it",
		Long: `run loads a GGUF file, or the built-in model, generates text for the given prompts and shows what
happens. Without a prompt it waits until you enter one with p; the built-in model runs its own
prompts meanwhile.

If standard output is not a terminal, it prints plain progress and a summary.`,
		Example: `  llmtop run model.gguf -p 'Once upon a time'
  llmtop run -f prompt.txt -n 64 --headless --json report.json
  echo 'Call me Ishmael.' | llmtop run - --headless --csv stages.csv`,
		Args: cobra.ArbitraryArgs, // checked by arguments
		RunE: func(c *cobra.Command, args []string) error {
			if err := opts.arguments(args); err != nil {
				return err
			}
			return opts.run(c)
		},
	}
	opts.bind(c)
	flags := c.Flags()
	flags.StringArrayVarP(&opts.prompts.texts, "prompt", "p", nil, "prompt `TEXT` (repeatable)")
	flags.StringArrayVarP(&opts.prompts.files, "file", "f", nil, "`FILE` with one prompt (repeatable)")
	flags.BoolVar(&opts.headless, "headless", false, "run the prompts without a screen, report and exit")
	opts.files.bind(flags, headlessOnly)
	flags.BoolVar(&opts.choice.ops, "ops", false, "time every kind of operation in every layer (llamacpp only; slows it down)")
	flags.IntVar(&opts.logprobs, "logprobs", 0, "report `N` alternatives per token with their log-probabilities")
	return c
}

// arguments reads the model file, and - for a prompt on standard input, from the arguments.
func (o *runOptions) arguments(args []string) error {
	for _, arg := range args {
		switch {
		case arg == "-" && !o.prompts.stdin:
			o.prompts.stdin = true
		case arg != "-" && o.model == "":
			o.model = arg
		default:
			return usagef("unexpected argument %q: run takes one model file, and - for a prompt on standard input", arg)
		}
	}
	if err := o.files.checkHeadless(o.headless); err != nil {
		return err
	}
	if o.logprobs < 0 || o.logprobs > maxLogprobs {
		return usagef("--logprobs %d: must be 0 to %d", o.logprobs, maxLogprobs)
	}
	return nil
}

// maxLogprobs is the maximum number of alternatives per token.
const maxLogprobs = 100
