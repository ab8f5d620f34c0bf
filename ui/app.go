// Package ui is the screen: one model that takes a snapshot a frame, panes that draw it, and the keys.
package ui

import (
	"io"
	"os"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/llmtop/llmtop/profiler/alert"
	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/profiler/trace"
	"github.com/llmtop/llmtop/theme"
	"github.com/llmtop/llmtop/ui/grid"
	"github.com/llmtop/llmtop/ui/panes"
	"github.com/llmtop/llmtop/ui/sanitize"
)

// The bounds of Config.FPS.
const (
	DefaultFPS = 10
	MaxFPS     = 30
)

// Config is what the screen needs from outside: one engine, by Snapshots, Changed and Actions, or Sessions.
type Config struct {
	Snapshots func() *store.Snapshot // called once a frame; never nil
	Changed   <-chan struct{}        // receives when Snapshots may have something new; nil: look at every tick
	Past      func() Past            // begins to look at the past; nil, or nothing but nil: none is known
	Actions   Actions
	Prompts   []SuggestedPrompt // offered by tab in the prompt editor

	// Sessions are the engines that are known at the moment, in an order that stays; it is called once a frame and must not wait.
	// Engines may come later, and the list may be empty. It stands in for Snapshots, Changed, Past and Actions.
	Sessions func() []Session
	Several  bool // there will be several sessions, even if there is one at the beginning: the screen begins with their list

	// Recording is how what is seen is being recorded, false if it is not; nil: nothing is ever recorded. Called once a frame.
	Recording func() (trace.RecordStatus, bool)

	// Alerts are how the rules of the user stand; nil: there are none. Called once a frame; it must not wait.
	Alerts func() []alert.Status

	// Replay steers the recording that is shown; nil: what is shown is live.
	Replay Replay

	// Note is what is said at the beginning, for some seconds in the footer's place; "": nothing.
	Note string

	Theme   string        // name of a theme; "" is the first
	Profile theme.Profile // what colours the terminal shows, see theme.Detect
	ASCII   bool          // draw with ASCII only, see theme.PlainFont
	FPS     int           // frames a second, 1 to MaxFPS; 0 is DefaultFPS
	NoMouse bool
	Layout  Layout // of the overview

	// LowBandwidth is for slow lines: fewer frames, colours and bytes.
	LowBandwidth bool

	// Choices are what the user chose the last time; Remember, unless it is nil, is told at the end what was chosen this time.
	Choices  Choices
	Remember func(Choices)

	Input   io.Reader // nil is standard input
	Output  *os.File  // nil is standard output
	Environ []string  // nil is the process's
}

// noteFor is how long Config.Note is seen, in seconds.
const noteFor = 6

// frameRate is what Config.FPS stands for.
func frameRate(fps int) int {
	if fps <= 0 {
		return DefaultFPS
	}
	return min(fps, MaxFPS)
}

// Actions are what the user can have done. A nil one takes its key away, and so does an engine in another process that does not have
// the capability. They are called on the screen's goroutine and must not wait for the engine; an error is shown in the footer.
type Actions struct {
	Prompt  func(text, label string) (note string, err error) // note: what else is worth a word
	Cancel  func(id event.RequestID) error
	SetPace func(tokensPerSecond float64) error     // 0 is flat out
	Report  func(s *store.Snapshot) ([]byte, error) // the report of what a snapshot shows, as JSON; it may take a while

	// Watch has the machine sampled more closely while the user looks at it, together with the model's file, until it is called with false.
	Watch   func(model string, on bool)
	Inspect func(model string) // measures what costs more than a sample may, once
}

// SuggestedPrompt is a built-in prompt with the kind of text it asks for.
type SuggestedPrompt struct{ Label, Text string }

// app is the model: what the user has chosen, the snapshot on show, and the frame made of both.
type app struct {
	cfg     Config
	skin    *theme.Skin
	theme   int
	grid    grid.Grid
	panes   panes.Ctx
	view    view
	before  view // what help or engines were opened from
	places  []placed
	tabs    []tab
	track   grid.Rect // the line of the time that can be looked at, empty if there is none
	editor  editor
	w, h    int
	blurred bool
	toast   string // a word about the last key, until toastEnd
	toastIn int    // ticks that the toast still lives

	save       func(svg, text []byte) (path string, err error) // writes a snapshot of the screen
	saveReport func(json []byte) (path string, err error)

	bindings []binding
	sessions []Session
	session  Session // the one on show; its zero value while there is none
	engines  engines
	replicas replicas
	requests requests
	experts  experts
	watched  watched
	replay   replay
	palette  palette
	marks    marks
	travel   travel
	alerts   bool // their list is open

	snap  *store.Snapshot
	still bool // the last look found nothing new, or nothing under way
	frame string
	dirty bool // the frame no longer shows the state
	line  line // to the terminal
}

func newApp(cfg Config) *app {
	cfg.FPS = frameRate(cfg.FPS)
	a := &app{cfg: cfg.lowered(), dirty: true}
	cfg = a.cfg
	a.line = newLine(cfg.LowBandwidth)
	a.save = func(svg, text []byte) (string, error) { return saveScreen(time.Now(), svg, text) }
	a.saveReport = func(json []byte) (string, error) { return saveReport(time.Now(), json) }
	for i, p := range theme.Palettes() {
		if p.Name == cfg.Theme {
			a.theme = i
		}
	}
	a.dress()
	a.panes.Memory, a.panes.FPS, a.panes.Window = &panes.Memory{}, cfg.FPS, metric.Minute
	a.editor.suggest = cfg.Prompts
	a.rekey()
	a.snap = &store.Snapshot{}
	a.requests, a.experts = newRequests(), newExperts()
	a.meet()
	a.recall(cfg.Choices)
	a.status()
	if len(a.sessions) != 1 || cfg.Several {
		a.show(viewEngines)
	}
	if cfg.Note != "" {
		a.toast, a.toastIn = sanitize.Line(cfg.Note), noteFor*cfg.FPS
	}
	return a
}

// dress makes the skin of the chosen theme.
func (a *app) dress() {
	glyphs := theme.Unicode
	if a.cfg.ASCII {
		glyphs = theme.Plain
	}
	a.skin = theme.NewSkin(theme.Palettes()[a.theme], a.cfg.Profile, glyphs)
	a.panes.Skin = a.skin
}

// Init starts the ticking.
func (a *app) Init() tea.Cmd { return a.tick() }

// View is the last frame, drawn anew only if something it shows has changed.
func (a *app) View() tea.View {
	if a.dirty && a.w > 0 && a.line.open() {
		a.draw()
	}
	v := tea.NewView(a.frame)
	v.AltScreen, v.ReportFocus, v.WindowTitle = true, true, "llmtop"
	if !a.cfg.NoMouse {
		v.MouseMode = tea.MouseModeCellMotion
		if a.view == viewRequest || a.view == viewExperts { // the mouse need not be pressed to read a token
			v.MouseMode = tea.MouseModeAllMotion
		}
	}
	return v
}

// Update takes one message. Nothing here waits.
func (a *app) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tickMsg:
		return a, a.onTick()
	case tea.WindowSizeMsg:
		a.w, a.h = msg.Width, msg.Height
		a.line.urge()
	case tea.KeyPressMsg:
		a.dirty = true
		a.line.urge()
		return a, a.onKey(msg)
	case tea.PasteMsg:
		a.onPaste(msg.Content)
	case tea.MouseClickMsg:
		if a.palette.open {
			a.dirty = true
			return a, a.clickPalette(msg.X, msg.Y)
		}
		a.onClick(msg.X, msg.Y)
	case tea.MouseMotionMsg:
		if !a.hover(msg.X, msg.Y) {
			return a, nil
		}
	case tea.MouseWheelMsg:
		a.onWheel(msg.Button)
	case wroteMsg:
		a.report(msg.err, "wrote "+sanitize.Line(msg.path))
	case tea.BlurMsg:
		a.blurred = true
		return a, nil
	case tea.FocusMsg, tea.ResumeMsg:
		a.blurred = false
	default:
		return a, nil
	}
	a.dirty = true
	return a, nil
}
