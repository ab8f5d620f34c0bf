package cmd

import (
	"os"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/theme"
	"github.com/llmtop/llmtop/ui"
	"github.com/llmtop/llmtop/ui/plain"
	"github.com/llmtop/llmtop/ui/view/overview"
)

// settings are the flags that the config file may set, too.
type settings struct {
	tokens   int
	parallel int
	threads  int
	context  int
	pace     float64
	choice   choice

	temperature   float64
	topK          int
	topP          float64
	minP          float64
	repeatPenalty float64
	seed          uint64

	raw   bool
	group string
	view
}

// view are the settings of the screen, for all commands with one.
type view struct {
	theme   string
	ascii   bool
	noMouse bool
	fps     int
	targets store.Targets

	plain   bool
	summary time.Duration

	layout       string
	lowBandwidth bool
	noRemember   bool

	tables tables // from the config file

	camera *camera // records the screen; nil: the command cannot
}

// defaultTokens is the maximum output length without --tokens.
const defaultTokens = 256

// defaultTTFTTarget is the default TTFT target, for a prompt of 512 tokens.
const defaultTTFTTarget = 200 * time.Millisecond

// flags returns the flags that set the settings. The config file has the same names.
func (s *settings) flags() *pflag.FlagSet {
	set := pflag.NewFlagSet("settings", pflag.ContinueOnError)
	set.IntVarP(&s.tokens, "tokens", "n", defaultTokens, "generate at most `N` tokens per prompt; 0: until the end of text or a full context")
	set.Float64Var(&s.temperature, "temp", 1, "sampling temperature; 0: greedy")
	set.IntVar(&s.topK, "top-k", 40, "sample from the `K` most likely tokens; 0: all")
	set.Float64Var(&s.topP, "top-p", 0.95, "sample from the most likely tokens that hold probability `P`; 1: all")
	set.Float64Var(&s.minP, "min-p", 0.05, "drop tokens below `P` times the highest probability; 0: none")
	set.Float64Var(&s.repeatPenalty, "repeat-penalty", 1.1, "divide the logits of recent tokens by `X`; 1: off")
	set.Uint64Var(&s.seed, "seed", 0, "sampler seed: same seed, same text; 0: a new one for each request")

	set.BoolVar(&s.raw, "raw", false, "send prompts without the model's chat template")
	set.StringVar(&s.group, "group", "", "count the requests under group `NAME` (LoRA adapter or tenant)")
	s.bindEngine(set)
	s.view.bind(set)
	return set
}

// bindEngine adds the flags of the engine.
func (s *settings) bindEngine(set *pflag.FlagSet) {
	set.IntVar(&s.parallel, "parallel", 1, "decode up to `N` requests concurrently")
	set.IntVar(&s.threads, "threads", 0, "worker threads; 0: one per core")
	set.IntVar(&s.context, "ctx", 0, "context size in tokens; 0: the training context, at most 4096")
	s.choice.bind(set)
	set.Float64Var(&s.pace, "pace", 0, "limit generation to `N` tokens/s; 0: unlimited")
}

// bind adds the flags of the screen.
func (v *view) bind(set *pflag.FlagSet) {
	set.StringVar(&v.theme, "theme", "", "colour theme `NAME`: "+strings.Join(theme.Names(), ", ")+" (default: last used, initially "+theme.Names()[0]+")")
	set.BoolVar(&v.ascii, "ascii", false, "draw with ASCII characters only")
	set.BoolVar(&v.noMouse, "no-mouse", false, "do not capture the mouse")
	set.IntVar(&v.fps, "fps", 10, "frames per second, 1 to 30")
	set.DurationVar(&v.targets.TTFT, "ttft-target", defaultTTFTTarget, "target for a request's time to first token (TTFT)")
	set.DurationVar(&v.targets.TPOT, "tpot-target", 0, "target for a request's time per output token (TPOT); 0: none")
	set.DurationVar(&v.targets.ITL, "itl-target", 0, "target for a request's p99 inter-token latency (ITL); 0: none (not used by bench)")
	set.DurationVar(&v.targets.E2EL, "e2el-target", 0, "target for a request's end-to-end latency (E2EL); 0: none")
	set.BoolVar(&v.plain, "plain", false, "print lines of text instead of a screen; needs no terminal (for screen readers)")
	set.DurationVar(&v.summary, "summary-interval", plain.DefaultInterval, "time between summaries with --plain")
	set.StringVar(&v.layout, "layout", overview.LayoutDefault, "overview `LAYOUT`: "+strings.Join(overview.Layouts(), ", ")+", one of the config file, or rows like '"+overview.LayoutSyntax+"'")
	set.BoolVar(&v.lowBandwidth, "low-bandwidth", false, "limit the screen to 2 frames/s, 256 colours and 6 KB/s (for slow connections)")
	set.BoolVar(&v.noRemember, "no-remember", false, "neither load nor save the state of the screen (theme, window, sort order)")
}

// check refuses values that no command can use.
func (s *settings) check() error {
	if s.tokens < 0 {
		return usagef("--tokens %d: must be 0 or more", s.tokens)
	}
	if err := s.checkEngine(); err != nil {
		return err
	}
	return s.view.check()
}

func (s *settings) checkEngine() error {
	switch {
	case s.parallel < 1 || s.parallel > maxParallel:
		return usagef("--parallel %d: must be 1 to %d", s.parallel, maxParallel)
	case s.threads < 0 || s.threads > maxThreads:
		return usagef("--threads %d: must be 0 to %d", s.threads, maxThreads)
	case s.context < 0:
		return usagef("--ctx %d: must be 0 or more", s.context)
	case !(s.pace >= 0 && s.pace <= maxPace):
		return usagef("--pace %v: must be 0 to %d tokens/s", s.pace, int(maxPace))
	}
	return s.choice.check()
}

func (v *view) check() error {
	switch {
	case v.fps < 1 || v.fps > ui.MaxFPS:
		return usagef("--fps %d: must be 1 to %d", v.fps, ui.MaxFPS)
	case v.plain && v.camera.enabled():
		return usagef("--plain has no screen that --cast or --svg could record")
	case v.summary < minSummaryInterval:
		return usagef("--summary-interval %v: must be at least %v", v.summary, minSummaryInterval)
	case v.targets.TTFT <= 0:
		return usagef("--ttft-target %v: must be more than 0", v.targets.TTFT)
	}
	for _, t := range v.optionalTargets() {
		if t.value < 0 {
			return usagef("--%s %v: must be 0 or more", t.flag, t.value)
		}
	}
	if _, err := v.parseLayout(); err != nil {
		return err
	}
	if _, ok := theme.ByName(v.theme); !ok && v.theme != "" {
		return usagef("--theme %q: must be one of %s", v.theme, strings.Join(theme.Names(), ", "))
	}
	if v.camera != nil {
		return v.camera.check()
	}
	return nil
}

// parseLayout returns the chosen layout.
func (v *view) parseLayout() (ui.Layout, error) {
	text, where := v.layout, "--layout"
	if own, ok := v.tables.layouts[text]; ok {
		text, where = own, "layouts."+text
	}
	l, err := overview.ParseLayout(text)
	if err != nil {
		return l, usagef("%s: %w", where, err)
	}
	return l, nil
}

// target is a latency target with the name of its flag.
type target struct {
	flag  string
	value time.Duration
}

// optionalTargets returns the targets besides TTFT.
func (v *view) optionalTargets() []target {
	return []target{{"tpot-target", v.targets.TPOT}, {"itl-target", v.targets.ITL}, {"e2el-target", v.targets.E2EL}}
}

// addTargets adds the targets to the configuration in a report.
func (v *view) addTargets(configuration map[string]string) map[string]string {
	configuration["ttft-target"] = v.targets.TTFT.String()
	for _, t := range v.optionalTargets() {
		if t.value > 0 {
			configuration[t.flag] = t.value.String()
		}
	}
	return configuration
}

// screen returns the configuration of the screen.
func (v *view) screen() ui.Config {
	cfg := ui.Config{
		Theme:        v.theme,
		Profile:      theme.Detect(rawOut, os.Environ()),
		ASCII:        v.ascii || theme.PlainFont(os.Environ()),
		FPS:          v.fps,
		NoMouse:      v.noMouse,
		LowBandwidth: v.lowBandwidth,
	}
	cfg.Layout, _ = v.parseLayout()         // check validated it
	if v.noRemember || v.camera.enabled() { // a recorded screen depends on its flags only
		return cfg
	}
	folder := stateFolder()
	cfg.Choices = loadChoices(folder)
	cfg.Remember = func(c ui.Choices) { saveChoices(folder, c) }
	if cfg.Theme == "" {
		cfg.Theme = cfg.Choices.Theme
	}
	return cfg
}

// minSummaryInterval is the shortest interval between summaries.
const minSummaryInterval = time.Second

// Limits of settings: far above what a machine can use, low enough that a typo allocates nothing absurd.
const (
	maxParallel = 256
	maxThreads  = 512
	maxPace     = 1e6
)
