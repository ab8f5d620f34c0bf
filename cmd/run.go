package cmd

import (
	"github.com/spf13/cobra"
)

// runOptions are what the run command and the bare llmtop are told on the command line.
type runOptions struct {
	settings
	recording recording
	listening listening
	exports   exports
	config    string
	elsewhere func(*local) error // adds an engine that this program does not run, and what samples; nil: it runs one

	quiet    bool   // nothing else may compute beside the engine
	demo     bool   // bare llmtop: built-in prompts in turn, paced
	reason   string // why the built-in model runs, "" if that goes without saying
	note     string // the same at more length, for the beginning
	model    string // path of a GGUF file; "": the built-in model
	prompts  promptSources
	headless bool
	files    reportFiles
	logprobs int // alternatives per token in the report

	chosen    chosen                   // once the run begins
	picks     bool                     // ask for the picks of every token, which the screen can show
	chat      chatting                 // likewise
	flagValue func(name string) string // the text of a flag's value
}

func newRunCommand() *cobra.Command {
	var opts runOptions
	c := &cobra.Command{
		Use:   "run [MODEL.gguf] [-]",
		Short: "Run a model and watch it",
		Long: `run loads a GGUF file (or, without one, the model that is built in), generates text for the given prompts and shows what
happens. Without a prompt it waits for you to type one with p; the built-in model goes through its own prompts meanwhile.

When standard output is not a terminal, it prints plain progress and a summary instead.`,
		Example: `  llmtop run model.gguf -p 'Once upon a time'
  llmtop run -f prompt.txt -n 64 --headless --json report.json
  echo 'Call me Ishmael.' | llmtop run - --headless --csv stages.csv`,
		Args: cobra.MaximumNArgs(2),
		RunE: func(c *cobra.Command, args []string) error {
			if err := opts.arguments(args); err != nil {
				return err
			}
			return opts.run(c)
		},
	}
	opts.bind(c)
	flags := c.Flags()
	flags.StringArrayVarP(&opts.prompts.texts, "prompt", "p", nil, "prompt; may be given several times")
	flags.StringArrayVarP(&opts.prompts.files, "file", "f", nil, "file that holds one prompt; may be given several times")
	flags.BoolVar(&opts.headless, "headless", false, "no screen: run the prompts, report, exit")
	opts.files.bind(flags, headlessOnly)
	flags.BoolVar(&opts.choice.ops, "ops", false, "time every kind of operation in every layer, which slows the engine down (llamacpp only)")
	flags.IntVar(&opts.logprobs, "logprobs", 0, "report so many alternatives for each token, with their log-probabilities")
	return c
}

// arguments sorts the command's arguments into a model file and "-", the prompt on standard input.
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

// maxLogprobs bounds the alternatives kept for each token.
const maxLogprobs = 100
