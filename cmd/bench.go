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
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/runtime/engine/native"
	"github.com/llmtop/llmtop/runtime/engine/workload"
)

// benchOptions are the flags of the bench command.
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
	remote      *benchTarget
	benchExtras
}

// benchTokens is the default output length of a benchmark request, in tokens.
const benchTokens = 64

func newBenchCommand() *cobra.Command {
	opts := benchOptions{remote: &benchTarget{}}
	c := &cobra.Command{
		Use:   "bench [MODEL.gguf | URL | unix:PATH | tcp:HOST:PORT]",
		Short: "Measure an engine under a workload",
		Long: `bench sends requests to a model that llmtop runs, to a server with the OpenAI or Ollama API, or to
an engine behind an event socket, at fixed concurrency (--concurrency) or at a fixed rate (--rate),
and reports the measurements. It repeats every point of the workload, in turns; the spread of the
repeats shows how reliable a number is.

Prompts have exactly --prompt-tokens tokens, unless you give your own with -p, -f, --prompts or
--suite. Outputs have exactly --tokens tokens, unless --honour-eos is set. Ctrl-C stops early and
reports what was measured.`,
		Example: `  llmtop bench
  llmtop bench model.gguf --concurrency 1,2,4 --prompt-tokens 512 --json report.json
  llmtop bench --rate 5,10 --suite --repeats 3
  llmtop bench http://127.0.0.1:8080 --concurrency 1,8 --compat vllm`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usagef("bench takes one model, server or engine: llmtop bench %s", args[0])
			}
			return nil
		},
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
	flags.StringArrayVarP(&o.prompts.texts, "prompt", "p", nil, "prompt `TEXT` (repeatable)")
	flags.StringArrayVarP(&o.prompts.files, "file", "f", nil, "`FILE` with one prompt (repeatable)")
	flags.StringVar(&o.promptsFile, "prompts", "", "`FILE` of prompts in JSON Lines: {\"prompt\": \"…\", \"max_tokens\": 64, \"group\": \"…\", \"label\": \"…\"}")
	flags.BoolVar(&o.suite, "suite", false, "use the prompts of the built-in model")
	flags.IntSliceVar(&o.lengths, "prompt-tokens", []int{32, 128, 512}, "prompt lengths in tokens, one point each")
	flags.IntSliceVar(&o.concurrency, "concurrency", []int{1}, "concurrent requests, one point each")
	flags.Float64SliceVar(&o.rates, "rate", nil, "request rates in requests/s, one point each (open loop)")
	o.burstiness = 1
	flags.Var(&o.burstiness, "burstiness", "`SHAPE` of --rate arrivals: 1 Poisson, below 1 bursty, above 1 steadier, inf constant")
	flags.IntVar(&o.requests, "requests", 0, "requests per run (default: 8, or one per prompt)")
	flags.IntVar(&o.repeats, "repeats", 5, "runs per point")
	flags.IntVar(&o.warmup, "warmup", 1, "unmeasured requests before the first run of each point")
	flags.IntVar(&o.cold, "cold", 0, "reload the model `N` times for one request each, to measure cold TTFT")
	flags.BoolVar(&o.honourEOS, "honour-eos", false, "let the model end its text before --tokens")
	flags.StringToStringVar(&o.groups, "groups", nil, "requests per group (LoRA adapter or tenant) as `SHARES` like a=3,b=1")
	flags.BoolVar(&o.screen, "ui", false, "show the benchmark on the screen")
	flags.StringVar(&o.compat, "compat", "", "add metrics as `TOOL` defines them: "+compat.Names())
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

// Limits of the workload.
const (
	maxRequests = 1 << 20
	maxRepeats  = 1000
	maxLength   = 1 << 20
	maxStreams  = store.MaxOpen // concurrent requests to a remote engine; maxParallel bounds a local one
)

func (o *benchOptions) check() error {
	switch {
	case len(o.concurrency) == 0 && len(o.rates) == 0:
		return usagef("--concurrency, --rate: name at least one point")
	case o.requests < 0 || o.requests > maxRequests:
		return usagef("--requests %d: must be 0 to %d", o.requests, maxRequests)
	case o.repeats < 1 || o.repeats > maxRepeats:
		return usagef("--repeats %d: must be 1 to %d", o.repeats, maxRepeats)
	case o.warmup < 0 || o.warmup > maxRequests:
		return usagef("--warmup %d: must be 0 to %d", o.warmup, maxRequests)
	case o.cold < 0 || o.cold > maxRepeats:
		return usagef("--cold %d: must be 0 to %d", o.cold, maxRepeats)
	case o.tokens < 1 && !o.honourEOS:
		return usagef("--tokens %d: must be 1 or more without --honour-eos", o.tokens)
	case o.pace > 0:
		return usagef("--pace: bench runs at full speed; remove the flag")
	}
	limit := maxParallel
	if o.remote.isSet() {
		limit = maxStreams
	}
	for _, n := range o.concurrency {
		if n < 1 || n > limit {
			return usagef("--concurrency %d: must be 1 to %d", n, limit)
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

// run measures and writes the report.
func (o *benchOptions) run(c *cobra.Command) error {
	if err := native.CheckParams(o.params()); err != nil {
		return usageError{err}
	}
	o.exports.screen, o.exports.engineAddress = o.screen, o.remote.at
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

// burstiness is the value of --burstiness: the shape of the gamma distribution of arrival intervals, +Inf for constant
// intervals.
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

// weights returns the shares of the groups, sorted by name.
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

// weight is the share of requests of a group.
type weight struct {
	group string
	share float64
}

// readPromptLines reads a file of prompts in JSON Lines, "-" for standard input.
func readPromptLines(name string) ([]workload.Prompt, error) {
	var r io.Reader = os.Stdin
	if name != "-" {
		file, err := os.Open(name)
		if err != nil {
			return nil, usagef("--prompts %s: %w", name, withoutPath(err))
		}
		defer file.Close()
		r = file
	}
	out, err := workload.ReadPrompts(r)
	if err != nil {
		return nil, usageError{fmt.Errorf("--prompts %s: %w", name, err)}
	}
	return out, nil
}
