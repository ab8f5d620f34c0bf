package bench

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

	"github.com/llmtop/llmtop/cmd/address"
	"github.com/llmtop/llmtop/cmd/console"
	"github.com/llmtop/llmtop/cmd/exit"
	"github.com/llmtop/llmtop/cmd/files"
	"github.com/llmtop/llmtop/cmd/local"
	"github.com/llmtop/llmtop/profiler/report"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/runtime/engine/workload"
)

// Benchmark is an engine to measure under a workload, with the flags that say how.
type Benchmark struct {
	local.Run
	suite       bool
	promptsFile string
	lengths     []int
	concurrency []int
	rates       []float64
	burstiness  float64 // shape of the gamma distribution of arrival intervals; +Inf: constant intervals
	requests    int
	repeats     int
	warmup      int
	cold        int
	honourEOS   bool

	findCapacity bool
	target       *target

	// What it derives from its measurements.
	budget Budget // experts to keep on a faster device
	price  price  // of tokens
	limits bool   // of the machine, to compare with
}

// defaultTokens is the default output length of a benchmark request, in tokens.
const defaultTokens = 64

// Bind adds the flags, and reads the config file.
func (o *Benchmark) Bind(c *cobra.Command) {
	o.Run.Bind(c)
	o.target = &target{}
	flags := c.Flags()
	flags.Lookup("tokens").DefValue = strconv.Itoa(defaultTokens)
	flags.Lookup("seed").DefValue = "1"
	_ = flags.MarkHidden("pace") // always refused: bench runs at full speed
	o.Tokens, o.Seed, o.Quiet = defaultTokens, 1, true
	o.Prompts.Bind(flags)
	flags.StringVar(&o.promptsFile, "prompts", "", "`FILE` of prompts in JSON Lines: {\"prompt\": \"…\", \"max_tokens\": 64, \"group\": \"…\", \"label\": \"…\"}")
	flags.BoolVar(&o.suite, "suite", false, "use the prompts of the built-in model")
	flags.IntSliceVar(&o.lengths, "prompt-tokens", []int{32, 128, 512}, "prompt lengths in tokens, one point each")
	flags.IntSliceVar(&o.concurrency, "concurrency", []int{1}, "concurrent requests, one point each")
	flags.Float64SliceVar(&o.rates, "rate", nil, "request rates in requests/s, one point each (open loop)")
	flags.Float64Var(&o.burstiness, "burstiness", 1, "`SHAPE` of --rate arrivals: 1 Poisson, below 1 bursty, above 1 steadier, inf constant")
	flags.IntVar(&o.requests, "requests", 0, "requests per run (default: 8, or one per prompt)")
	flags.IntVar(&o.repeats, "repeats", 5, "runs per point")
	flags.IntVar(&o.warmup, "warmup", 1, "unmeasured requests before the first run of each point")
	flags.BoolVar(&o.findCapacity, "find-capacity", false, "search the highest request rate that meets --slo (open loop)")
	flags.IntVar(&o.cold, "cold", 0, "reload the model `N` times for one request each, to measure cold TTFT")
	flags.BoolVar(&o.honourEOS, "honour-eos", false, "let the model end its text before --tokens")
	flags.Lookup("slo").Usage += "; the first defines goodput"
	flags.Lookup("group").Usage += ", or several by `SHARES` like a=3,b=1"
	flags.BoolVar(&o.Shown, "ui", false, "show the benchmark on the screen")
	o.target.bind(flags)
	flags.Var(&o.budget, "budget", "propose experts for a faster device with `CAPACITY` 25% (of all) or 4GB")
	flags.Var(&o.price, "price", "report the cost per million tokens at a `PRICE` of the machine, 2.5/h, or of its energy, 0.3/kWh")
	flags.BoolVar(&o.limits, "limits", true, "measure the limits of this machine at the end, to compare with")
	files.BindReports(flags)
	check := c.PreRunE
	c.PreRunE = func(c *cobra.Command, args []string) error {
		if len(args) == 1 && address.IsRemote(args[0]) {
			o.At, o.target.at = args[0], args[0]
		} else if len(args) == 1 {
			o.Model = args[0]
		}
		if !c.Flags().Changed("parallel") {
			o.Parallel = min(slices.Max(append([]int{1}, o.concurrency...)), local.MaxParallel)
		}
		if c.Flags().Changed("rate") && !c.Flags().Changed("concurrency") {
			o.concurrency = nil
		}
		return errors.Join(o.checkCapacity(c), check(c, args), o.target.check(c, o.TokenFile), o.check())
	}
}

// Limits of the workload.
const (
	maxRequests = 1 << 20
	maxRepeats  = 1000
	maxLength   = 1 << 20
	maxStreams  = store.MaxOpen // concurrent requests to a remote engine; local.MaxParallel bounds a local one
)

func (o *Benchmark) check() error {
	switch {
	case len(o.concurrency) == 0 && len(o.rates) == 0:
		return exit.Usagef("--concurrency, --rate: name at least one point")
	case o.requests < 0 || o.requests > maxRequests:
		return exit.Usagef("--requests %d: must be 0 to %d", o.requests, maxRequests)
	case o.repeats < 1 || o.repeats > maxRepeats:
		return exit.Usagef("--repeats %d: must be 1 to %d", o.repeats, maxRepeats)
	case o.warmup < 0 || o.warmup > maxRequests:
		return exit.Usagef("--warmup %d: must be 0 to %d", o.warmup, maxRequests)
	case !(o.burstiness > 0):
		return exit.Usagef("--burstiness %v: must be a number above 0, or inf", o.burstiness)
	case o.cold < 0 || o.cold > maxRepeats:
		return exit.Usagef("--cold %d: must be 0 to %d", o.cold, maxRepeats)
	case o.Tokens < 1 && !o.honourEOS:
		return exit.Usagef("--tokens %d: must be 1 or more without --honour-eos", o.Tokens)
	case slices.ContainsFunc(o.targets(), func(t report.Targets) bool { return t.ITL > 0 }):
		return exit.Usagef("--slo itl: bench judges ttft, tpot and e2el")
	case o.Pace > 0:
		return exit.Usagef("--pace: bench runs at full speed; remove the flag")
	}
	limit := local.MaxParallel
	if o.target.isSet() {
		limit = maxStreams
	}
	for _, n := range o.concurrency {
		if n < 1 || n > limit {
			return exit.Usagef("--concurrency %d: must be 1 to %d", n, limit)
		}
	}
	for _, r := range o.rates {
		if !(r > 0 && r <= 1e6) {
			return exit.Usagef("--rate %v: must be above 0 and at most 1000000 requests/s", r)
		}
	}
	for _, n := range o.lengths {
		if n < 1 || n > maxLength {
			return exit.Usagef("--prompt-tokens %d: must be 1 to %d", n, maxLength)
		}
	}
	_, err := o.weights()
	return err
}

// Start measures and writes the report.
func (o *Benchmark) Start(c *cobra.Command) error {
	if err := o.CheckParams(); err != nil {
		return err
	}
	sources, err := o.sources(c.InOrStdin())
	if err != nil {
		return err
	}
	ctx, stop := exit.WithSignals(c.Context(), exit.ErrInterrupted)
	defer stop()
	return o.Out.Write(c.OutOrStdout(), c.ErrOrStderr(), false, func() (*report.Report, error) {
		return o.measure(ctx, sources, &console.Progress{Out: c.ErrOrStderr()})
	})
}

// weights returns the shares of the groups, sorted by name; none of --group NAME.
func (o *Benchmark) weights() ([]weight, error) {
	if !strings.Contains(o.Group, "=") {
		return nil, nil
	}
	var out []weight
	for part := range strings.SplitSeq(o.Group, ",") {
		name, words, _ := strings.Cut(part, "=")
		share, err := strconv.ParseFloat(words, 64)
		if err != nil || !(share > 0) || math.IsInf(share, 1) {
			return nil, exit.Usagef("--group %s: must be a share above 0, like a=3,b=1", part)
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
			return nil, exit.Usagef("--prompts %s: %w", name, files.Cause(err))
		}
		defer file.Close()
		r = file
	}
	out, err := workload.ReadPrompts(r)
	if err != nil {
		return nil, exit.Usage(fmt.Errorf("--prompts %s: %w", name, err))
	}
	return out, nil
}
