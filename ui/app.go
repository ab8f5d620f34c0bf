// Package ui is the terminal screen: one Bubble Tea model that takes one snapshot per frame, panes that draw it, and
// the keys.
package ui

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/llmtop/llmtop/profiler/alert"
	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/profiler/recording"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/theme"
	"github.com/llmtop/llmtop/ui/chrome"
	"github.com/llmtop/llmtop/ui/grid"
	"github.com/llmtop/llmtop/ui/input"
	"github.com/llmtop/llmtop/ui/pane"
	"github.com/llmtop/llmtop/ui/sanitize"
	"github.com/llmtop/llmtop/ui/table"
	"github.com/llmtop/llmtop/ui/view"
	"github.com/llmtop/llmtop/ui/view/engines"
	"github.com/llmtop/llmtop/ui/view/experts"
	"github.com/llmtop/llmtop/ui/view/latency"
	"github.com/llmtop/llmtop/ui/view/overview"
	"github.com/llmtop/llmtop/ui/view/request"
	"github.com/llmtop/llmtop/ui/view/requests"
)

// The default and the maximum of Config.FPS, in frames per second.
const (
	DefaultFPS = 10
	MaxFPS     = 30
)

// Config holds the inputs of the screen.
type Config struct {
	// Sessions returns the current engines in a stable order. It is called once per frame and must not block. The list
	// may be empty and may grow later.
	Sessions func() []Session
	// StartWithList reports whether to start with the list of engines even if there is only one session yet; nil: no. It
	// is called after the first Sessions: sessions that come between the two replace those on the screen later.
	StartWithList func() bool

	Prompts []input.Suggestion // built-in prompts, offered by tab in the prompt editor

	// Recording returns the status of the running recording, and false without one; nil: this program never records. It
	// is called once per frame.
	Recording func() (recording.RecordStatus, bool)

	// Alerts returns the states of the user's alert rules; nil: no rules. It is called once per frame and must not
	// block.
	Alerts func() []alert.Status

	// Replay controls the recording on the screen; nil: the screen is live.
	Replay Travel

	// NoText is why text that an engine reports is not shown, and how to show it; "": it is shown.
	NoText string

	// Note is shown in the footer for the first seconds; "": no note.
	Note string

	Theme       string           // name of a theme; "": the first theme
	Themes      []*theme.Palette // of the user, besides the built-in ones
	BadThemes   map[string]error // files of the user that are no themes, by the names that they would have
	DetectTheme bool             // ask the terminal for its background and use the dark or the light theme, until the user chooses one
	Profile     theme.Profile    // colours that the terminal supports, see theme.Detect
	ASCII       bool             // draw with ASCII only, see theme.PlainFont
	FPS         int              // frames per second, 1 to MaxFPS; 0: DefaultFPS
	NoMouse     bool
	Layout      overview.Layout // layout of the overview

	// LowBandwidth reduces frames, colours and bytes for slow connections.
	LowBandwidth bool

	// Choices are restored from the last session. Remember, unless nil, is called at the end with the choices of this
	// session.
	Choices  Choices
	Remember func(Choices)

	Input   *os.File // nil: standard input
	Output  *os.File // nil: standard output
	Environ []string // nil: the environment of the process
}

// noteSeconds is how long Config.Note stays on the screen, in seconds.
const noteSeconds = 6

// frameRate returns the frames per second for a value of Config.FPS.
func frameRate(fps int) int {
	if fps <= 0 {
		return DefaultFPS
	}
	return min(fps, MaxFPS)
}

// app is the model: the user's choices, the snapshot on the screen, and the frame drawn from both.
type app struct {
	cfg    Config
	given  Config // cfg before LowBandwidth limited it
	skin   *theme.Skin
	theme  int
	grid   grid.Grid
	panes  pane.Frame
	status chrome.Status

	themeChosen bool // by the user, in this session or before

	w, h     int
	blurred  bool
	toast    string   // note in the footer, removed when toastIn reaches 0
	toastBad bool     // the toast is an error
	toastIn  int      // remaining ticks of the toast
	idle     bool     // the last snapshot was unchanged, or no request is running
	dirty    bool     // the frame is out of date
	throttle throttle // bounds the bytes sent to the terminal

	views      [numViews]view.View
	tabs       []view.View // those with a number key, in order
	view       viewID
	offered    viewSet // those with something to show of the engine on the screen
	viewBefore viewID  // the view from which engines was opened
	helpFrom   viewID  // the view from which the help was opened
	overview   *overview.View
	requests   *requests.View
	request    *request.View
	latency    *latency.View
	experts    *experts.View
	engines    *engines.View
	help       *help

	bindings   []binding
	live       []binding // all keys of a live screen
	pressed    string    // the last key
	after      tea.Cmd   // runs after the message at hand; nil: nothing
	editor     input.Editor
	palette    palette
	marks      marks
	alertsOpen bool                 // the list of alerts is open
	popup      grid.Rect            // cells of the pop-up of the last frame; empty without one, and of the palette
	drawnTabs  map[viewID]grid.Rect // tabs that can be clicked, of the last frame
	track      grid.Rect            // cells of the timeline; empty without one

	snap     *store.Snapshot
	sessions []Session
	session  Session // the session on the screen; the zero value without one
	watched  watched
	travel   traveller
	history  history

	saveScreen func(svg, text []byte) (path string, err error) // writes a screenshot
	saveReport func(json, timeline []byte) (path string, err error)
}

// Snapshot implements view.Program.
func (a *app) Snapshot() *store.Snapshot { return a.snap }

// Frame implements view.Program.
func (a *app) Frame() *pane.Frame { return &a.panes }

// Actions implements view.Program.
func (a *app) Actions() view.Actions { return a.session.Actions }

func newApp(cfg Config) *app {
	cfg.FPS = frameRate(cfg.FPS)
	a := &app{cfg: cfg.forLowBandwidth(), given: cfg, dirty: true, drawnTabs: map[viewID]grid.Rect{}}
	cfg = a.cfg
	a.throttle = newThrottle(cfg.LowBandwidth)
	a.saveScreen = func(svg, text []byte) (string, error) { return saveScreen(time.Now(), svg, text) }
	a.saveReport = func(json, timeline []byte) (string, error) { return saveReport(time.Now(), json, timeline) }
	a.theme = cfg.themeIndex()
	_, err := cfg.findTheme(cfg.Theme)
	a.themeChosen = err == nil
	a.applyTheme()
	a.status.FPS, a.panes.Window = cfg.FPS, metric.Minute
	a.editor.Suggest, a.editor.Max = cfg.Prompts, input.MaxPrompt
	a.snap = store.Empty()
	a.history.app, a.travel.app, a.marks.app = a, a, a
	a.makeViews()
	a.offered = everywhere
	a.live = a.keyTable()
	a.updateBindings()
	a.updateSessions()
	a.restoreChoices(cfg.Choices)
	a.updateStatus()
	if len(a.sessions) != 1 || a.startsWithList() {
		a.show(viewEngines)
	}
	if bad := cfg.BadThemes[cfg.Theme]; bad != nil {
		a.notifyFor(noteSeconds, sanitize.Line(bad.Error()))
	}
	if cfg.Note != "" {
		a.notifyFor(noteSeconds, sanitize.Line(cfg.Note))
	}
	return a
}

// applyTheme builds the skin of the chosen theme.
func (a *app) applyTheme() {
	a.skin = a.cfg.skin(a.theme)
	a.panes.Skin = a.skin
}

// themeIndex returns the index of the configured theme among the palettes; 0 if its name is unknown.
func (cfg Config) themeIndex() int {
	i, err := cfg.findTheme(cfg.Theme)
	if err != nil {
		return 0
	}
	return i
}

// themes returns all themes, in the order in which the theme key cycles through them.
func (cfg Config) themes() []*theme.Palette { return slices.Concat(theme.Palettes(), cfg.Themes) }

// findTheme returns the index of a theme. The error says why there is none.
func (cfg Config) findTheme(name string) (int, error) {
	if err := cfg.BadThemes[name]; err != nil {
		return 0, err
	}
	all := cfg.themes()
	i := slices.IndexFunc(all, func(p *theme.Palette) bool { return p.Name == name })
	if i < 0 {
		return 0, fmt.Errorf("use %s", strings.Join(theme.Names(all), ", "))
	}
	return i, nil
}

// skin returns the skin of a palette for the configured terminal.
func (cfg Config) skin(palette int) *theme.Skin {
	glyphs := theme.Unicode
	if cfg.ASCII {
		glyphs = theme.Plain
	}
	return theme.NewSkin(cfg.themes()[palette], cfg.Profile, glyphs)
}

// Init starts the ticking.
func (a *app) Init() tea.Cmd { return a.tick() }

// themeOn returns the index of the theme for a background: the first dark or light one.
func themeOn(background tea.BackgroundColorMsg) int {
	dark := background.Color == nil || background.IsDark()
	return slices.IndexFunc(theme.Palettes(), func(p *theme.Palette) bool { return p.Dark == dark })
}

// Draw draws a new frame if something on the screen changed.
func (a *app) Draw() (*grid.Grid, *theme.Skin) {
	if !a.dirty || a.w == 0 || !a.throttle.open() {
		return nil, nil
	}
	a.draw()
	return &a.grid, a.skin
}

// Mouse returns the mode of the mouse.
func (a *app) Mouse() tea.MouseMode {
	if a.cfg.NoMouse {
		return tea.MouseModeNone
	}
	if _, ok := a.views[a.view].(view.Hoverer); ok { // moving the mouse over a token is enough to read it
		return tea.MouseModeAllMotion
	}
	return tea.MouseModeCellMotion
}

// Update handles one message. It never blocks.
func (a *app) Update(msg tea.Msg) tea.Cmd {
	switch msg := msg.(type) {
	case tickMsg:
		return a.onTick()
	case tea.WindowSizeMsg:
		a.w, a.h = msg.Width, msg.Height
		a.throttle.hurry()
	case tea.KeyPressMsg:
		a.dirty = true
		a.throttle.hurry()
		a.onKey(msg)
	case tea.PasteMsg:
		a.onPaste(msg.Content)
	case tea.MouseClickMsg:
		a.onClick(msg.X, msg.Y)
	case tea.MouseMotionMsg:
		if !a.hover(msg.X, msg.Y) {
			return nil
		}
	case tea.MouseWheelMsg:
		a.onWheel(msg.Button)
	case appMsg:
		msg(a)
	case tea.BackgroundColorMsg:
		if !a.themeChosen && a.palette.restore == nil {
			a.theme = themeOn(msg)
			a.applyTheme()
		}
	case tea.BlurMsg:
		a.blurred = true
		return nil
	case tea.FocusMsg, tea.ResumeMsg:
		a.blurred = false
	default:
		return nil
	}
	a.dirty = true
	cmd := a.after
	a.after = nil
	return cmd
}

// restoreChoices applies the choices of the last session, except the theme, which Config.Theme sets.
func (a *app) restoreChoices(c Choices) {
	for w := range metric.NumWindows {
		if w.String() == c.Window {
			a.panes.Window = w
		}
	}
	for p := range metric.NumPhases {
		if p.String() == c.Phase {
			a.panes.Phase = p
		}
	}
	for f := range table.NumFields {
		if f.String() == c.Sort {
			a.requests.List.By, a.requests.List.Down = f, c.Reverse
			a.requests.Follow = f == table.Age && !c.Reverse
		}
	}
}

// choices returns the current choices.
func (a *app) choices() Choices {
	a.palette.close() // what it previews was not chosen
	l := a.requests.List
	name := ""
	switch {
	case a.themeChosen:
		name = a.skin.Palette.Name
	case a.cfg.BadThemes[a.cfg.Theme] != nil: // until its file is repaired
		name = a.cfg.Theme
	}
	return Choices{
		Theme: name, Window: a.panes.Window.String(),
		Phase: a.panes.Phase.String(), Sort: l.By.String(), Reverse: l.Down,
	}
}
