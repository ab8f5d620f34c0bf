package ui

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/llmtop/llmtop/profiler/recording"
	"github.com/llmtop/llmtop/ui/sanitize"
	"github.com/llmtop/llmtop/ui/view"
	"github.com/llmtop/llmtop/ui/view/overview"
)

// setting is a value that the user may change while the screen runs, by its name in the palette: ":theme light".
type setting struct {
	name, usage, help string
	values            func() []value // suggested ones
	now               func() string  // as in values; "": none of them

	// parse checks a value and returns what sets it. Its error says what to write instead.
	parse func(text string) (apply func() error, err error)

	// Moving over the values applies them, unless save is nil. save returns what restores the value at hand; kept is
	// called when the user keeps one.
	save func() (restore func())
	kept func()
	why  func() string // as Key.Why of package view
}

// value is a suggested value of a setting.
type value struct{ text, help string }

// allSettings returns what can be set on some screen.
func allSettings(a *app) []setting {
	return slices.Concat(lookSettings(a), rateSettings(a), toggles(a))
}

// settings returns what can be set now.
func settings(a *app) []setting {
	return slices.DeleteFunc(allSettings(a), func(s setting) bool { return s.why != nil && s.why() != "" })
}

// lookSettings choose among names.
func lookSettings(a *app) []setting {
	return []setting{
		{
			name: "theme", usage: "NAME", help: "colour theme", values: func() []value { return themeValues(&a.cfg) },
			now: func() string { return a.skin.Palette.Name },
			parse: func(text string) (func() error, error) {
				i, err := a.cfg.findTheme(text)
				return func() error { a.theme = i; a.applyTheme(); return nil }, err
			},
			save: func() func() {
				was := a.theme
				return func() { a.theme = was; a.applyTheme() }
			},
			kept: func() { a.themeChosen = true },
		},
		{
			name: "layout", usage: "LAYOUT", help: "arrangement of the overview",
			values: func() (out []value) {
				for _, name := range overview.Layouts() {
					l, _ := overview.LayoutNamed(name)
					out = append(out, value{name, l.Text()})
				}
				return out
			},
			now: func() string { return a.overview.Layout.Name() },
			parse: func(text string) (func() error, error) {
				l, err := overview.LayoutNamed(text)
				return func() error { a.overview.Layout = l; return nil }, err
			},
			save: func() func() {
				was := a.overview.Layout
				return func() { a.overview.Layout = was }
			},
		},
		enumerated("window", "window of percentiles and router picks", &a.panes.Window, "1s", "10s", "1m", "session"),
		enumerated("phase", "router picks of decode, prompt, or both", &a.panes.Phase, "decode", "prompt", "both"),
	}
}

// enumerated returns a setting with a fixed set of words, one per value.
func enumerated[T ~uint8](name, help string, at *T, words ...string) setting {
	return oneOf(name, help, strings.Join(words, ", "), words, func() int { return int(*at) }, func(i int) { *at = T(i) })
}

// oneOf returns a setting that is one of some words, which choices lists; now and set have its index.
func oneOf(name, help, choices string, words []string, now func() int, set func(i int)) setting {
	return setting{
		name: name, usage: strings.Join(words, "|"), help: help, values: suggested(words),
		now: func() string { return words[now()] },
		parse: func(text string) (func() error, error) {
			i := slices.Index(words, strings.ReplaceAll(text, " ", ""))
			if i < 0 {
				return nil, errors.New("use " + choices)
			}
			return func() error { set(i); return nil }, nil
		},
	}
}

// suggested returns values that explain themselves.
func suggested(words []string) func() []value {
	return func() (out []value) {
		for _, w := range words {
			out = append(out, value{text: w})
		}
		return out
	}
}

// rateSettings are numbers.
func rateSettings(a *app) []setting {
	number := func(low, high float64, unit string, set func(float64) error) func(string) (func() error, error) {
		return func(text string) (func() error, error) {
			v, err := strconv.ParseFloat(text, 64)
			if err != nil || !(v >= low && v <= high) {
				return nil, fmt.Errorf("use a number from %v to %v%s", low, high, unit)
			}
			return func() error { return set(v) }, nil
		}
	}
	maxFPS := func() int {
		if a.cfg.LowBandwidth {
			return lowFPS
		}
		return MaxFPS
	}
	return []setting{
		{
			name: "pace", usage: "N", help: "limit generation to N tokens/s; 0: unlimited", values: numbers(append(slices.Clip(paces), 0)),
			now:   func() string { return formatted(a.snap.Engine.Pace) },
			parse: number(0, maxPace, " tokens/s; 0: unlimited", func(v float64) error { return a.session.Actions.SetPace(v) }),
			why:   a.noPace,
		},
		{
			name: "speed", usage: "X", help: "speed of the replay", values: numbers(speeds),
			now: func() string { return formatted(a.travel.shown.Speed) },
			parse: func(text string) (func() error, error) {
				return number(recording.Slowest, recording.Fastest, " times", func(v float64) error { return a.cfg.Replay.SetSpeed(v) })(strings.TrimSuffix(text, "x"))
			},
			why: view.Unless(func() bool { return a.cfg.Replay != nil }, "only a recording has a speed"),
		},
		{
			name: "fps", usage: "N", help: fmt.Sprintf("frames per second, 1 to %d", MaxFPS), values: numbers([]float64{1, 2, 5, 10, MaxFPS}),
			now: func() string { return formatted(float64(a.cfg.FPS)) },
			parse: func(text string) (func() error, error) {
				n, err := strconv.Atoi(text)
				if most := maxFPS(); err != nil || n < 1 || n > most {
					return nil, fmt.Errorf("use a whole number from 1 to %d", most)
				}
				return func() error { a.cfg.FPS, a.status.FPS = n, n; return nil }, nil
			},
		},
	}
}

// maxPace is the highest pace that can be set, in tokens/s.
const maxPace = 1e6

func formatted(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }

// numbers returns suggested numbers.
func numbers(of []float64) func() []value {
	words := make([]string, len(of))
	for i, v := range of {
		words[i] = formatted(v)
	}
	return suggested(words)
}

// toggles are on or off.
func toggles(a *app) []setting {
	onOff := func(name, help string, now func() bool, set func(on bool)) setting {
		return oneOf(name, help, "on or off", []string{"on", "off"}, func() int {
			if now() {
				return 0
			}
			return 1
		}, func(i int) { set(i == 0) })
	}
	return []setting{
		onOff("ascii", "draw with ASCII characters only", func() bool { return a.cfg.ASCII }, func(on bool) {
			a.cfg.ASCII = on
			a.applyTheme()
		}),
		onOff("mouse", "capture the mouse", func() bool { return !a.cfg.NoMouse }, func(on bool) { a.cfg.NoMouse = !on }),
		onOff("low-bandwidth", "limit the screen to 2 frames/s, 256 colours and 6 KB/s", func() bool { return a.cfg.LowBandwidth }, func(on bool) {
			cfg := a.given
			cfg.LowBandwidth = on
			cfg = cfg.forLowBandwidth()
			a.cfg.LowBandwidth, a.cfg.FPS, a.cfg.Profile, a.status.FPS = on, cfg.FPS, cfg.Profile, cfg.FPS
			a.throttle.rate = newThrottle(on).rate
			a.applyTheme()
		}),
	}
}

// themeValues returns the themes, and the user's files that are none, with the reason.
func themeValues(cfg *Config) (out []value) {
	for _, p := range cfg.themes() {
		out = append(out, value{p.Name, p.Means})
	}
	for _, name := range slices.Sorted(maps.Keys(cfg.BadThemes)) {
		out = append(out, value{name, sanitize.Line(cfg.BadThemes[name].Error())})
	}
	return out
}

// rows returns the values of a setting that match what the user typed after its name, as commands: the same value
// first, then those that begin with it, then those that contain it. A value that is valid but not suggested comes first.
// now is the value to mark.
func (s *setting) rows(a *app, typed, now string) (rows []command) {
	typed = strings.TrimSpace(typed)
	rank := func(text string) int {
		switch want := strings.ToLower(typed); {
		case text == want:
			return 0
		case strings.HasPrefix(text, want):
			return 1
		case strings.Contains(text, want):
			return 2
		}
		return -1
	}
	exact := false
	for _, v := range s.values() {
		r := rank(strings.ToLower(v.text))
		if r < 0 {
			continue
		}
		c := s.row(a, v.text)
		c.help, c.rank = v.help, r
		if v.text == now {
			c.keys = "now"
		}
		exact = exact || r == 0
		rows = append(rows, c)
	}
	slices.SortStableFunc(rows, func(x, y command) int { return cmp.Compare(x.rank, y.rank) })
	if _, err := s.parse(typed); err == nil && typed != "" && !exact {
		c := s.row(a, typed)
		c.help = s.help
		rows = slices.Insert(rows, 0, c)
	}
	return rows
}

// row returns the command that sets a value.
func (s *setting) row(a *app, text string) command {
	set := func() error {
		apply, err := s.parse(text)
		if err != nil {
			return err
		}
		return apply()
	}
	c := command{name: s.name + " " + text}
	c.do = func() {
		err := set()
		if err == nil && s.kept != nil {
			s.kept()
		}
		a.report(err, s.name+": "+text)
	}
	if s.save != nil {
		c.preview = func() { _ = set() } // an error is shown when the user keeps the value
	}
	return c
}
