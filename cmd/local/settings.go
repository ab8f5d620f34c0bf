package local

import (
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/llmtop/llmtop/cmd/exit"
	"github.com/llmtop/llmtop/cmd/screen"
	"github.com/llmtop/llmtop/runtime/engine"
)

// Settings are the flags of the engine and the sampler. The config file may set them.
type Settings struct {
	Tokens int
	Seed   uint64
	EngineSettings

	engine   string // an engine name
	isolated bool

	temperature   float64
	topK          int
	topP          float64
	minP          float64
	repeatPenalty float64

	raw   bool
	Group string // of the requests; a benchmark may have several by shares
}

// EngineSettings are what an engine is loaded with, in this process or in a child process.
type EngineSettings struct {
	Parallel  int     `json:"parallel"`
	Threads   int     `json:"threads"`
	Context   int     `json:"ctx"`
	Pace      float64 `json:"pace"`
	GPULayers int     `json:"gpu_layers"`    // -1: all
	Sample    string  `json:"expert_sample"` // "auto", "off", or N: experts and layers are measured in 1 of N passes
	Ops       bool    `json:"ops"`           // time every operation
}

// defaultTokens is the maximum output length without --tokens.
const defaultTokens = 256

// Bind adds the flags.
func (s *Settings) Bind(set *pflag.FlagSet) {
	set.IntVarP(&s.Tokens, "tokens", "n", defaultTokens, "generate at most `N` tokens per prompt; 0: until the end of text or a full context")
	set.Float64Var(&s.temperature, "temp", 0.8, "sampling temperature; 0: greedy")
	set.IntVar(&s.topK, "top-k", 40, "sample from the `K` most likely tokens; 0: all")
	set.Float64Var(&s.topP, "top-p", 0.95, "sample from the most likely tokens that hold probability `P`; 1: all")
	set.Float64Var(&s.minP, "min-p", 0.05, "drop tokens below `P` times the highest probability; 0: none")
	set.Float64Var(&s.repeatPenalty, "repeat-penalty", 1, "divide the logits of recent tokens by `X`; 1: off")
	set.Uint64Var(&s.Seed, "seed", 0, "sampler seed: same seed, same text; 0: a new one for each request")

	set.BoolVar(&s.raw, "raw", false, "send prompts without the model's chat template")
	set.StringVar(&s.Group, "group", "", "count the requests under group `NAME` (LoRA adapter or tenant)")
	s.BindEngine(set)
}

// BindEngine adds the flags of the engine.
func (s *Settings) BindEngine(set *pflag.FlagSet) {
	set.IntVar(&s.Parallel, "parallel", 1, "decode up to `N` requests concurrently")
	set.IntVar(&s.Threads, "threads", 0, "worker threads; 0: one per core")
	set.IntVar(&s.Context, "ctx", 0, "context size in tokens; 0: the training context, at most 4096")
	set.StringVar(&s.engine, "engine", engineAuto, "`ENGINE` for the model: native, llamacpp, or auto (the faster one that supports the model)")
	set.BoolVar(&s.isolated, "isolated", false, "run the engine in a separate process (llamacpp always does)")
	set.IntVar(&s.GPULayers, "gpu-layers", -1, "offload `N` layers to a GPU if there is one (llamacpp); -1: all")
	set.StringVar(&s.Sample, "expert-sample", "auto", "count experts and time layers in 1 of `N` passes (native: all), auto or off")
	set.Float64Var(&s.Pace, "pace", 0, "limit generation to `N` tokens/s; 0: unlimited")
}

// ConfigFlags returns the flags that a config file may set: the settings and those of the screen.
func ConfigFlags() *pflag.FlagSet {
	set := pflag.NewFlagSet("config", pflag.ContinueOnError)
	new(Settings).Bind(set)
	new(screen.View).Bind(set)
	return set
}

// Check refuses values that no command can use.
func (s *Settings) Check() error {
	if s.Tokens < 0 {
		return exit.Usagef("--tokens %d: must be 0 or more", s.Tokens)
	}
	return s.CheckEngine()
}

// CheckEngine refuses such values of the flags of the engine.
func (s *Settings) CheckEngine() error {
	if err := CheckThreads(s.Threads); err != nil {
		return err
	}
	switch {
	case s.Parallel < 1 || s.Parallel > MaxParallel:
		return exit.Usagef("--parallel %d: must be 1 to %d", s.Parallel, MaxParallel)
	case s.Context < 0:
		return exit.Usagef("--ctx %d: must be 0 or more", s.Context)
	case !(s.Pace >= 0 && s.Pace <= maxPace):
		return exit.Usagef("--pace %v: must be 0 to %d tokens/s", s.Pace, int(maxPace))
	case s.GPULayers < -1:
		return exit.Usagef("--gpu-layers %d: must be -1 or more", s.GPULayers)
	}
	if names := []string{engineAuto, engineNative, engineLlama}; !slices.Contains(names, s.engine) {
		return exit.Usagef("--engine %q: must be one of %s", s.engine, strings.Join(names, ", "))
	}
	_, err := Hooks(s.Sample, false)
	return err
}

// CheckThreads refuses an unusable number of worker threads.
func CheckThreads(n int) error {
	if n < 0 || n > maxThreads {
		return exit.Usagef("--threads %d: must be 0 to %d", n, maxThreads)
	}
	return nil
}

// Limits of settings: far above what a machine can use, low enough that a typo allocates nothing absurd.
const (
	MaxParallel = 256
	maxThreads  = 512
	maxPace     = 1e6
)

// Params returns the parameters of the sampler, with a new seed for each request unless --seed is set.
func (s *Settings) Params() engine.Params {
	seed := s.Seed
	if seed == 0 {
		seed = rand.Uint64()
	}
	return engine.Params{
		Temperature: s.temperature, TopK: s.topK, TopP: s.topP, MinP: s.minP, RepeatPenalty: s.repeatPenalty, Seed: seed,
	}
}
