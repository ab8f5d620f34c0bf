package cmd

import (
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/llmtop/llmtop/profiler/compat"
	"github.com/llmtop/llmtop/runtime/bench"
	"github.com/llmtop/llmtop/runtime/native"
)

// benchOptions are what the bench command is told.
type benchOptions struct {
	runOptions
	suite       bool
	promptsFile string
	lengths     []int
	concurrency []int
	rates       []float64
	burstiness  burstiness
	requests    int
	repeats     int
	warmup      int
	cold        int
	honourEOS   bool
	groups      map[string]string
	screen      bool
	compat      string
	remote      *remote
	benchExtras
}

// benchTokens is how many tokens a request of a benchmark generates.
const benchTokens = 64

func newBenchCommand() *cobra.Command {
	opts := benchOptions{remote: &remote{}}
	c := &cobra.Command{
		Use:   "bench [MODEL.gguf | URL | unix:PATH | tcp:HOST:PORT]",
		Short: "Measure an engine with a workload",
		Long: `bench sends requests to a model that llmtop runs, to a server that speaks the interface of OpenAI or Ollama, or to an engine that others
may use over its event socket, so many side by side (--concurrency) or a second (--rate), and reports what they measured. Every point of the
workload is repeated, the points in turn; what the repeats differ by tells what a number is worth.

The prompts are texts of exactly so many tokens (--prompt-tokens), unless -p, -f, --prompts or --suite names others. Outputs have exactly
--tokens tokens, unless --honour-eos lets a model end its text. Ctrl-c ends a benchmark early: the report has what was measured until then.`,
		Example: `  llmtop bench
  llmtop bench model.gguf --concurrency 1,2,4 --prompt-tokens 512 --json report.json
  llmtop bench --rate 5,10 --suite --repeats 3
  llmtop bench http://127.0.0.1:8080 --concurrency 1,8 --compat vllm`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return opts.run(c)
		},
	}
	opts.bind(c)
	c.Flags().Lookup("tokens").DefValue = strconv.Itoa(benchTokens)
	c.Flags().Lookup("seed").DefValue = "1"
	opts.tokens, opts.seed, opts.quiet = benchTokens, 1, true
	c.AddCommand(newBenchMachineCommand())
	return c
}

func (o *benchOptions) bind(c *cobra.Command) {
	o.runOptions.bind(c)
	flags := c.Flags()
	flags.StringArrayVarP(&o.prompts.texts, "prompt", "p", nil, "prompt; may be given several times")
	flags.StringArrayVarP(&o.prompts.files, "file", "f", nil, "file that holds one prompt; may be given several times")
	flags.StringVar(&o.promptsFile, "prompts", "", `file of prompts, a line each: {"prompt": "…", "max_tokens": 64, "group": "…", "label": "…"}`)
	flags.BoolVar(&o.suite, "suite", false, "the built-in model's prompts")
	flags.IntSliceVar(&o.lengths, "prompt-tokens", []int{32, 128, 512}, "lengths of the prompts")
	flags.IntSliceVar(&o.concurrency, "concurrency", []int{1}, "requests side by side; one point each")
	flags.Float64SliceVar(&o.rates, "rate", nil, "requests/s, whatever becomes of those before; one point each")
	o.burstiness = 1
	flags.Var(&o.burstiness, "burstiness", "how requests of a --rate come: 1 Poisson, less in bursts, more steadily, inf at a constant interval")
	flags.IntVar(&o.requests, "requests", 0, "requests of each run (default: 8, or one of every prompt)")
	flags.IntVar(&o.repeats, "repeats", 5, "runs of each point")
	flags.IntVar(&o.warmup, "warmup", 1, "requests before the first run of each point that count for nothing")
	flags.IntVar(&o.cold, "cold", 0, "load the model anew so many times, for one request each: cold TTFT")
	flags.BoolVar(&o.honourEOS, "honour-eos", false, "let a model end its text before --tokens")
	flags.StringToStringVar(&o.groups, "groups", nil, "share of the requests that each group (LoRA adapter or tenant) makes, for example a=3,b=1")
	flags.BoolVar(&o.screen, "ui", false, "watch the benchmark on the screen")
	flags.StringVar(&o.compat, "compat", "", "add the numbers of another tool by its own definitions: "+compat.Names())
	o.remote.bind(flags)
	o.benchExtras.bind(flags)
	o.files.bind(flags, "")
	check := c.PreRunE
	c.PreRunE = func(c *cobra.Command, args []string) error {
		if len(args) == 1 && isRemote(args[0]) {
			o.remote.at = args[0]
		} else if len(args) == 1 {
			o.model = args[0]
		}
		if !c.Flags().Changed("parallel") {
			o.parallel = min(slices.Max(append([]int{1}, o.concurrency...)), maxParallel)
		}
		if c.Flags().Changed("rate") && !c.Flags().Changed("concurrency") {
			o.concurrency = nil
		}
		return errors.Join(check(c, args), o.remote.check(c), o.check())
	}
}

// The bounds of what can be asked for.
const (
	maxRequests = 1 << 20
	maxRepeats  = 1000
	maxLength   = 1 << 20
	maxStreams  = 1 << 14 // side by side, of an engine elsewhere; one here holds maxParallel
)

func (o *benchOptions) check() error {
	switch {
	case len(o.concurrency) == 0 && len(o.rates) == 0:
		return usagef("--concurrency or --rate must name at least one point")
	case o.requests < 0 || o.requests > maxRequests:
		return usagef("--requests %d: must be 0 to %d", o.requests, maxRequests)
	case o.repeats < 1 || o.repeats > maxRepeats:
		return usagef("--repeats %d: must be 1 to %d", o.repeats, maxRepeats)
	case o.warmup < 0 || o.warmup > maxRequests:
		return usagef("--warmup %d: must be 0 to %d", o.warmup, maxRequests)
	case o.cold < 0 || o.cold > maxRepeats:
		return usagef("--cold %d: must be 0 to %d", o.cold, maxRepeats)
	case o.tokens < 1 && !o.honourEOS:
		return usagef("--tokens %d: must be 1 or more, or --honour-eos given", o.tokens)
	case o.pace > 0:
		return usagef("--pace: a benchmark runs flat out")
	}
	most := maxParallel
	if o.remote.is() {
		most = maxStreams
	}
	for _, n := range o.concurrency {
		if n < 1 || n > most {
			return usagef("--concurrency %d: must be 1 to %d", n, most)
		}
	}
	for _, r := range o.rates {
		if !(r > 0 && r <= 1e6) {
			return usagef("--rate %v: must be above 0 and at most 1000000 requests/s", r)
		}
	}
	for _, n := range o.lengths {
		if n < 1 || n > maxLength {
			return usagef("--prompt-tokens %d: must be 1 to %d", n, maxLength)
		}
	}
	_, err := o.weights()
	return errors.Join(err, checkCompat(o.compat), o.benchExtras.check())
}

// run measures and reports.
func (o *benchOptions) run(c *cobra.Command) error {
	if err := native.CheckParams(o.params()); err != nil {
		return usageError{err}
	}
	o.exports.screen, o.exports.of = o.screen, o.remote.at
	o.flagValue = func(name string) string { return c.Flags().Lookup(name).Value.String() }
	sources, err := o.sources(c.InOrStdin())
	if err != nil {
		return err
	}
	ctx, stop := interruptible(c.Context(), errInterrupted)
	defer stop()
	out, err := o.files.open()
	if err != nil {
		return err
	}
	built, err := o.measure(ctx, sources, newMeter(c.ErrOrStderr(), o.screen))
	if built == nil {
		out.discard()
		return err
	}
	return errors.Join(err, out.write(built, c.OutOrStdout()))
}

// burstiness is the value of --burstiness: the shape of the distribution of intervals, +Inf for a constant one.
type burstiness float64

// Set implements pflag.Value.
func (b *burstiness) Set(words string) error {
	shape, err := strconv.ParseFloat(words, 64)
	if err != nil || !(shape > 0) {
		return errors.New("must be a number above 0, or inf")
	}
	*b = burstiness(shape)
	return nil
}

// String implements pflag.Value.
func (b *burstiness) String() string { return strconv.FormatFloat(float64(*b), 'g', -1, 64) }

// Type implements pflag.Value.
func (b *burstiness) Type() string { return "shape" }

// weights are the shares of the groups, in the order of their names.
func (o *benchOptions) weights() ([]weight, error) {
	var out []weight
	for name, words := range o.groups {
		share, err := strconv.ParseFloat(words, 64)
		if err != nil || !(share > 0) || math.IsInf(share, 1) {
			return nil, usagef("--groups %s=%s: must be a share above 0", name, words)
		}
		out = append(out, weight{name, share})
	}
	slices.SortFunc(out, func(a, b weight) int { return strings.Compare(a.group, b.group) })
	return out, nil
}

// weight is the share of the requests that a group makes.
type weight struct {
	group string
	share float64
}

// readPromptLines reads a file of prompts.
func readPromptLines(name string) ([]bench.Prompt, error) {
	var r io.Reader = os.Stdin
	if name != "-" {
		file, err := os.Open(name)
		if err != nil {
			return nil, usagef("--prompts: %w", err)
		}
		defer file.Close()
		r = file
	}
	out, err := bench.ReadPrompts(r)
	if err != nil {
		return nil, usageError{fmt.Errorf("--prompts %s: %w", name, err)}
	}
	return out, nil
}
