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
)

// settings are the choices that a user has, on the command line or in the config file.
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

// view are those of the choices that concern what is shown, whatever is looked at.
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

	tables tables // of the config file

	camera *camera // records the screen, where the command can; nil: it cannot
}

// defaultTokens ends a generation that no end-of-text token ends.
const defaultTokens = 256

// defaultTTFTTarget is for a prompt of 512 tokens.
const defaultTTFTTarget = 200 * time.Millisecond

// flags binds the settings to the flags that set them. The config file knows the same names.
func (s *settings) flags() *pflag.FlagSet {
	set := pflag.NewFlagSet("settings", pflag.ContinueOnError)
	set.IntVarP(&s.tokens, "tokens", "n", defaultTokens, "tokens to generate for a prompt; 0: until the end of text or a full context")
	set.Float64Var(&s.temperature, "temp", 1, "sampling temperature; 0: greedy")
	set.IntVar(&s.topK, "top-k", 40, "sample from the K likeliest tokens; 0: all")
	set.Float64Var(&s.topP, "top-p", 0.95, "sample from the likeliest tokens that hold this much probability; 1: all")
	set.Float64Var(&s.minP, "min-p", 0.05, "drop tokens less likely than this share of the likeliest; 0: none")
	set.Float64Var(&s.repeatPenalty, "repeat-penalty", 1.1, "divide the logits of recent tokens by this; 1: off")
	set.Uint64Var(&s.seed, "seed", 0, "seed of the sampler: same seed, same text; 0: another one for each request")

	set.BoolVar(&s.raw, "raw", false, "continue prompts as they are, without the chat template of a model that has one")
	set.StringVar(&s.group, "group", "", "group (LoRA adapter or tenant) that the requests are counted under")
	s.bindEngine(set)
	s.view.bind(set)
	return set
}

// bindEngine adds the flags about the engine.
func (s *settings) bindEngine(set *pflag.FlagSet) {
	set.IntVar(&s.parallel, "parallel", 1, "requests decoded together")
	set.IntVar(&s.threads, "threads", 0, "worker threads; 0: one a core")
	set.IntVar(&s.context, "ctx", 0, "tokens that a request may hold; 0: what the model was trained with, up to 4096")
	s.choice.bind(set)
	set.Float64Var(&s.pace, "pace", 0, "hold generation to so many tokens/s; 0: flat out")
}

// bind adds the flags.
func (v *view) bind(set *pflag.FlagSet) {
	set.StringVar(&v.theme, "theme", "", "one of "+strings.Join(theme.Names(), ", ")+" (default: that of the last time, at first "+theme.Names()[0]+")")
	set.BoolVar(&v.ascii, "ascii", false, "draw with ASCII characters only")
	set.BoolVar(&v.noMouse, "no-mouse", false, "leave the mouse to the terminal")
	set.IntVar(&v.fps, "fps", 10, "frames a second, 1 to 30")
	set.DurationVar(&v.targets.TTFT, "ttft-target", defaultTTFTTarget, "TTFT that a request is held against")
	set.DurationVar(&v.targets.TPOT, "tpot-target", 0, "the same for its TPOT; 0: none")
	set.DurationVar(&v.targets.ITL, "itl-target", 0, "the same for the 99th percentile of its gaps between tokens; 0: none. Benchmarks do not judge by it")
	set.DurationVar(&v.targets.E2EL, "e2el-target", 0, "the same for its end-to-end latency; 0: none")
	set.BoolVar(&v.plain, "plain", false, "lines of text instead of a screen, for screen readers; works without a terminal too")
	set.DurationVar(&v.summary, "summary-interval", plain.DefaultInterval, "time between summaries with --plain")
	set.StringVar(&v.layout, "layout", ui.LayoutDefault, "panes of the overview: "+strings.Join(ui.Layouts(), ", ")+", one of the config file, or rows like '"+ui.LayoutSyntax+"'")
	set.BoolVar(&v.lowBandwidth, "low-bandwidth", false, "for slow lines: 2 frames a second, 256 colours, 6 KB/s to the terminal at most")
	set.BoolVar(&v.noRemember, "no-remember", false, "neither recall nor remember theme, window and order of the table")
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
	case v.plain && v.camera.on():
		return usagef("--plain has no screen that --cast or --svg could record")
	case v.summary < leastSummary:
		return usagef("--summary-interval %v: must be at least %v", v.summary, leastSummary)
	case v.targets.TTFT <= 0:
		return usagef("--ttft-target %v: must be more than 0", v.targets.TTFT)
	}
	for _, t := range v.others() {
		if t.is < 0 {
			return usagef("--%s %v: must be 0 or more", t.flag, t.is)
		}
	}
	if _, err := v.arrangement(); err != nil {
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

// arrangement is the layout that was chosen.
func (v *view) arrangement() (ui.Layout, error) {
	text, where := v.layout, "--layout"
	if own, ok := v.tables.layouts[text]; ok {
		text, where = own, "layouts."+text
	}
	l, err := ui.ParseLayout(text)
	if err != nil {
		return l, usagef("%s: %w", where, err)
	}
	return l, nil
}

// target is a target with the name of its flag.
type target struct {
	flag string
	is   time.Duration
}

// others are the targets besides that of TTFT.
func (v *view) others() []target {
	return []target{{"tpot-target", v.targets.TPOT}, {"itl-target", v.targets.ITL}, {"e2el-target", v.targets.E2EL}}
}

// tell adds the targets to the configuration that a report tells.
func (v *view) tell(configuration map[string]string) map[string]string {
	configuration["ttft-target"] = v.targets.TTFT.String()
	for _, t := range v.others() {
		if t.is > 0 {
			configuration[t.flag] = t.is.String()
		}
	}
	return configuration
}

// screen configures the ui with these choices.
func (v *view) screen() ui.Config {
	cfg := ui.Config{
		Theme:        v.theme,
		Profile:      theme.Detect(os.Stdout, os.Environ()),
		ASCII:        v.ascii || theme.PlainFont(os.Environ()),
		FPS:          v.fps,
		NoMouse:      v.noMouse,
		LowBandwidth: v.lowBandwidth,
	}
	cfg.Layout, _ = v.arrangement()    // check has refused what is wrong
	if v.noRemember || v.camera.on() { // what is recorded depends on what is asked for alone
		return cfg
	}
	folder := stateFolder()
	cfg.Choices = recalled(folder)
	cfg.Remember = func(c ui.Choices) { remember(folder, c) }
	if cfg.Theme == "" {
		cfg.Theme = cfg.Choices.Theme
	}
	return cfg
}

// leastSummary is how often summaries may come.
const leastSummary = time.Second

// Limits of settings, far above what a machine can use and low enough that a slip of the finger allocates nothing absurd.
const (
	maxParallel = 256
	maxThreads  = 512
	maxPace     = 1e6
)
