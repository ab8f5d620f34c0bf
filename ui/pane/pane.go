// Package pane holds what all panes are drawn with: the frame of a pane and its states without data, styles, number
// texts, tables, charts with marks, and bars of parts. It computes no metrics.
package pane

import (
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/theme"
	"github.com/llmtop/llmtop/ui/grid"
)

// Minimum size of a box with content.
const (
	LeastWidth  = 12
	LeastHeight = 4
)

// Frame holds what the panes of one frame are drawn with, beside the snapshot.
type Frame struct {
	Skin     *theme.Skin
	Title    string // of the pane being drawn
	Focused  bool   // the pane being drawn has the focus
	Window   metric.Window
	Phase    metric.Phase
	Spin     int      // frame counter of spinners
	Suggest  string   // advice on an empty screen, for example "press p to type a prompt"
	LogAxis  bool     // of charts
	Inspect  bool     // costly readings can be measured on demand
	NoText   string   // why text that the engine reports may be absent, and how to get it; "": it may not
	Marks    []Mark   // oldest first
	Problems []string // problems of the recording that is played or written

	age     string            // of the values that the pane being drawn shows; "": they are current
	rates   []store.RatePoint // of ratesOf
	ratesOf *store.Snapshot
}

// Rates returns the points of the throughput trend, oldest first. They are valid until it is called with another snapshot.
func (f *Frame) Rates(s *store.Snapshot) []store.RatePoint {
	if f.ratesOf != s {
		f.rates, f.ratesOf = s.Throughput.Series.Points(f.rates[:0]), s
	}
	return f.rates
}

// Styles that all panes share.
var (
	Plain   = grid.Fg(theme.Text)
	Dim     = grid.Fg(theme.Dim)
	Data    = grid.Fg(theme.Data)
	Loud    = grid.Fg(theme.Data).With(grid.Bold)
	Good    = grid.Fg(theme.Good)
	Watch   = grid.Fg(theme.Watch)
	Bad     = grid.Fg(theme.Bad)
	Heading = grid.Fg(theme.Dim).With(grid.Underline)
)

// Badge returns the style of what stands out in every terminal: the name of the program, the tab of the view.
func Badge(skin *theme.Skin) grid.Style {
	st := grid.Style{FG: theme.OnBadge, BG: theme.Accent, Attr: grid.Bold}
	if !skin.Colour() {
		st.Attr |= grid.Reverse
	}
	return st
}

// Box draws the box of the pane with its title and the first of the covers texts that fits, and returns the area
// inside.
func (f *Frame) Box(a grid.Area, covers ...string) grid.Area {
	return f.border(a, f.Title, f.Focused, covers)
}

// BoxAs is like Box for a view, which has its own title and always has the focus.
func (f *Frame) BoxAs(a grid.Area, title string, covers ...string) grid.Area {
	return f.border(a, title, true, covers)
}

func (f *Frame) border(a grid.Area, name string, focused bool, covers []string) grid.Area {
	gl := f.Skin.Glyphs
	line, title := grid.Fg(theme.Border), grid.Fg(theme.Title).With(grid.Bold)
	if focused {
		line, title = grid.Fg(theme.BorderFocus), grid.Fg(theme.Accent).With(grid.Bold)
		if !f.Skin.Colour() {
			title = title.With(grid.Reverse)
		}
	}
	a.Frame(line, gl)
	if a.W < 8 || a.H < 2 {
		return a.Inset(1, 1)
	}
	top := a.Sub(2, 0, a.W-4, 1)
	l := top.Line(0, 0)
	l.Put(title, " "+name).Put(Dim, " ")
	for _, words := range WithAge(covers, f.age) {
		if n := grid.Width(words); n > 0 && n+4 <= l.Room() {
			l.Rune(line, gl.Horizontal).Put(Dim, " "+words+" ")
			break
		}
	}
	return a.Sub(2, 1, a.W-4, a.H-2)
}

// Windowed draws a pane whose values cover windows. While the engine is idle, they are the last ones: dimmed, with their
// age in the border.
func (f *Frame) Windowed(a grid.Area, s *store.Snapshot, draw func(*store.Snapshot)) {
	last := s.LastActive
	if last == nil {
		draw(s)
		return
	}
	f.age = AgeOf(s)
	draw(last)
	f.age = ""
	a.Inset(1, 1).Fade()
}

// AgeOf returns how old the last values of an idle engine are, "" if it is not idle.
func AgeOf(s *store.Snapshot) string {
	if s.LastActive == nil {
		return ""
	}
	return Ago(time.Duration(s.Now - s.LastActive.Now))
}

// WithAge returns the texts with an age, and the age alone; the texts as they are if the age is "".
func WithAge(covers []string, age string) (out []string) {
	if age == "" {
		return covers
	}
	for _, words := range covers {
		if words != "" {
			out = append(out, words+", "+age)
		}
	}
	return append(out, age)
}

// Foot writes words right-aligned into the bottom border and returns the cells used, 0 if they do not fit.
func (f *Frame) Foot(a grid.Area, st grid.Style, words string) int {
	if n := grid.Width(words) + 2; words != "" && n <= a.W-4 {
		x := a.Right(a.W-2, a.H-1, st, " "+words+" ")
		return a.W - x
	}
	return 0
}

// TextAbsence returns why there is no text, and how to get it.
func (f *Frame) TextAbsence(s *store.Snapshot) string {
	switch {
	case f.NoText != "":
		return f.NoText
	case s.Engine.Remote.Link == event.LinkNone || s.Engine.Caps.Has(event.CapText) || !s.Engine.Caps.Has(event.CapTokens):
	case s.Engine.SDK == "python":
		return "not sent by this engine: llmtop.serve(text=True) sends it"
	case s.Engine.SDK == "c", s.Engine.SDK == "rust":
		return "not sent by this engine: set options.text"
	case s.Remedied() == "" || s.Engine.Caps.Has(event.CapOps): // engines of llmtop: native, and llama.cpp in it
		return "not sent by this engine: llmtop sends it with --send-text"
	default:
		return "not sent by this engine: set text=True (Python) or options.text (C, Rust)"
	}
	return "not reported by this engine"
}

// Absent fills an empty pane: centred, what is missing and below it what to do.
func (f *Frame) Absent(a grid.Area, st grid.Style, what, do string) {
	lines := grid.Wrap(nil, what, a.W)
	n := len(lines)
	lines = grid.Wrap(lines, do, a.W)
	y := max((a.H-len(lines))/2, 0)
	for i, s := range lines {
		use := st
		if i >= n {
			use = Dim
		}
		a.Text((a.W-grid.Width(s))/2, y+i, use, s)
	}
}

// Waiting draws why an engine that is not ready has nothing to show; false if the engine is ready.
func (f *Frame) Waiting(a grid.Area, s *store.Snapshot) bool {
	switch s.Engine.State {
	case event.EngineStarting, event.EngineLoading:
		if s.NeverReached() {
			words := "no data yet: the server has not answered"
			if s.Engine.Remote.Link == event.LinkRefused {
				words = "no data: the connection was refused"
			}
			f.Absent(a, Dim, words, "")
			return true
		}
		spin := f.Skin.Glyphs.Spinner
		f.Absent(a, Dim, string(spin[f.Spin%len(spin)])+" waiting for the model to load", "")
		return true
	case event.EngineFailed:
		f.Absent(a, Bad, string(f.Skin.Glyphs.Failed)+" the engine failed", "see Insights")
		return true
	}
	return false
}

// StateStyle returns the colour of a request state.
func StateStyle(st event.State) grid.Style {
	switch st {
	case event.StateFailed:
		return Bad
	case event.StateCancelled, event.StateUnseen:
		return Watch
	case event.StateFinished:
		return Plain
	}
	return grid.Fg(theme.Accent)
}

// Dialog covers an area with a box that has a title, and a hint if it fits, in its border.
func Dialog(a grid.Area, title, hint string, gl *theme.Glyphs) {
	for y := range a.H {
		a.Fill(0, y, a.W, grid.Fg(theme.Text), ' ')
	}
	a.Frame(grid.Fg(theme.BorderFocus), gl)
	a.Text(2, 0, grid.Fg(theme.Accent).With(grid.Bold), " "+title+" ")
	if grid.Width(hint)+6 < a.W {
		a.Right(a.W-2, a.H-1, grid.Fg(theme.Dim), " "+hint+" ")
	}
}
