// Package screen shows sessions: on a screen, as plain lines, or as a recording of a screen.
package screen

import (
	"cmp"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/llmtop/llmtop/cmd/config"
	"github.com/llmtop/llmtop/cmd/console"
	"github.com/llmtop/llmtop/cmd/exit"
	"github.com/llmtop/llmtop/profiler/alert"
	"github.com/llmtop/llmtop/profiler/report"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/theme"
	"github.com/llmtop/llmtop/ui"
	"github.com/llmtop/llmtop/ui/plain"
	"github.com/llmtop/llmtop/ui/view/overview"
)

// View holds the flags of the screen.
type View struct {
	Theme   string
	ascii   bool
	noMouse bool
	fps     int
	Targets store.Targets    // of all of SLO
	SLO     []report.Targets // of --slo, in its order
	Watches bool             // shows an engine that somebody else runs, or ran: before Bind, there are no targets unless they are set

	NoText string // why the program shows no text of requests; "": it shows what the engine reports

	Plain   bool
	summary time.Duration // between summaries of Plain

	layout       string
	lowBandwidth bool
	noRemember   bool

	Alerts []alert.Rule // from the config file
	themes config.Themes

	Camera *Camera // records the screen; nil: the command cannot
}

// Bind adds the flags of the screen.
func (v *View) Bind(set *pflag.FlagSet) {
	set.StringVar(&v.Theme, "theme", "", "colour theme `NAME`: "+strings.Join(theme.Names(theme.Palettes()), ", ")+", or yours (default: last used, else by the background)")
	set.BoolVar(&v.ascii, "ascii", false, "draw with ASCII characters only")
	set.BoolVar(&v.noMouse, "no-mouse", false, "do not capture the mouse")
	set.IntVar(&v.fps, "fps", 10, "frames per second, 1 to 30")
	v.Targets = store.Targets{TTFT: store.DefaultTTFTTarget, DefaultTTFT: true}
	if v.Watches {
		v.Targets = store.NoTargets
	}
	set.Var(sloFlag{v}, "slo", "latency `TARGETS` like ttft=200ms,answer=2s,tpot=50ms,itl=1s,e2el=9s, interactive, real-time or batch")
	v.summary = plain.DefaultInterval
	set.Var(plainFlag{v}, "plain", "print lines, with a summary every `DURATION`, instead of a screen")
	set.Lookup("plain").NoOptDefVal = "true"
	set.StringVar(&v.layout, "layout", overview.LayoutDefault, "`LAYOUT` of the overview: "+strings.Join(overview.Layouts(), ", "))
	set.BoolVar(&v.lowBandwidth, "low-bandwidth", false, "limit the screen to 2 frames/s, 256 colours and 6 KB/s (for slow connections)")
	set.BoolVar(&v.noRemember, "no-remember", false, "neither load nor save the state of the screen (theme, window, sort order)")
}

// plainFlag is the flag of plain lines: true, false, or on with the time between summaries.
type plainFlag struct{ *View }

// Type implements pflag.Value.
func (plainFlag) Type() string { return "duration" }

// String implements pflag.Value.
func (f plainFlag) String() string {
	if f.View == nil || !f.Plain {
		return "false"
	}
	return f.summary.String()
}

// Set implements pflag.Value.
func (f plainFlag) Set(text string) (err error) {
	if on, err := strconv.ParseBool(text); err == nil {
		f.Plain = on
		return nil
	}
	f.Plain = true
	f.summary, err = time.ParseDuration(text)
	return err
}

// sloFlag is the flag of the targets. It may be repeated: the first says what the next ones leave open.
type sloFlag struct{ *View }

// Type implements pflag.Value.
func (sloFlag) Type() string { return "targets" }

// String implements pflag.Value.
func (f sloFlag) String() string {
	if f.View == nil {
		return ""
	}
	return f.Targets.String()
}

// GetSlice returns the values, of which each sets the flag once.
func (f sloFlag) GetSlice() []string {
	names := make([]string, len(f.SLO))
	for i := range f.SLO {
		names[i] = f.SLO[i].Name
	}
	return names
}

// Set implements pflag.Value.
func (f sloFlag) Set(text string) error {
	t, err := report.ParseTargets(text)
	if err != nil {
		return err
	}
	set := store.NoTargets
	for _, t := range append(f.SLO, t) {
		set = set.Or(t.Targets)
	}
	if set.DefaultTTFT && !f.Watches {
		set.TTFT = store.DefaultTTFTTarget
	}
	f.SLO, f.Targets = append(f.SLO, t), set
	return nil
}

// Check refuses values that cannot be used.
func (v *View) Check() error {
	switch {
	case v.fps < 1 || v.fps > ui.MaxFPS:
		return exit.Usagef("--fps %d: must be 1 to %d", v.fps, ui.MaxFPS)
	case v.Plain && v.Camera.Enabled():
		return exit.Usagef("--plain has no screen to record")
	case v.summary < minSummaryInterval:
		return exit.Usagef("--plain=%v: must be at least %v", v.summary, minSummaryInterval)
	}
	if _, err := overview.LayoutNamed(v.layout); err != nil {
		return exit.Usagef("--layout %q: %w", v.layout, err)
	}
	v.themes = config.ReadThemes()
	if err := v.themes.Check(v.Theme); err != nil {
		return err
	}
	if v.Camera != nil {
		return v.Camera.Check()
	}
	return nil
}

// AddTargets adds the targets to the configuration in a report.
func (v *View) AddTargets(configuration map[string]string) map[string]string {
	if v.Targets.Any() {
		configuration["slo"] = v.Targets.String()
	}
	return configuration
}

// Config returns the configuration of the screen.
func (v *View) Config() ui.Config {
	cfg := ui.Config{
		Theme:        v.Theme,
		Themes:       v.themes.Own,
		BadThemes:    v.themes.Bad,
		Profile:      theme.Detect(console.Raw, os.Environ()),
		ASCII:        v.ascii || theme.PlainFont(os.Environ()),
		FPS:          v.fps,
		NoMouse:      v.noMouse,
		LowBandwidth: v.lowBandwidth,
	}
	cfg.NoText = v.NoText
	if cfg.NoText == "" && v.Camera.Enabled() && !v.Camera.out.Text {
		cfg.NoText = "left out of this screen recording: --text keeps it"
	}
	cfg.Layout, _ = overview.LayoutNamed(v.layout) // check validated it
	if v.Camera.Enabled() {                        // a recorded screen depends on its flags only
		return cfg
	}
	if !v.noRemember {
		folder := stateFolder()
		cfg.Choices = loadChoices(folder)
		cfg.Remember = func(c ui.Choices) { saveChoices(folder, c) }
		cfg.Theme = cmp.Or(cfg.Theme, cfg.Choices.Theme)
	}
	cfg.DetectTheme = cfg.Theme == ""
	return cfg
}

// minSummaryInterval is the shortest interval between summaries.
const minSummaryInterval = time.Second
