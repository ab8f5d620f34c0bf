// Package panes draws snapshots: one file a pane, each a function of an area, a snapshot and what the user has chosen to
// see. Panes hold no state but memory of costly pictures, and do no arithmetic on metrics beyond placing them.
package panes

import (
	"github.com/llmtop/llmtop/profiler/alert"
	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/profiler/trace"
	"github.com/llmtop/llmtop/theme"
	"github.com/llmtop/llmtop/ui/grid"
	"github.com/llmtop/llmtop/ui/table"
)

// ID names a pane.
type ID uint8

// The panes, in the order in which the focus moves.
const (
	TTFT ID = iota
	TPOT
	Experts
	Throughput
	Machine
	Text
	Know
	Queue
	NumPanes
)

var names = [NumPanes]string{"TTFT", "TPOT", "Experts", "Throughput", "Machine", "Text", "What to know", "Queue"}

// forms holds each pane's place on the overview and its full-screen form.
var forms = [NumPanes]struct {
	draw, zoom func(grid.Area, *store.Snapshot, *Ctx)
}{
	{drawTTFT, zoomTTFT},
	{drawTPOT, zoomTPOT},
	{drawExperts, drawExperts},
	{drawThroughput, zoomThroughput},
	{drawMachine, zoomMachine},
	{drawText, zoomText},
	{drawKnow, zoomKnow},
	{drawQueue, drawQueue},
}

// String is the pane's name as in its title.
func (id ID) String() string { return names[id] }

// The smallest box that has room for anything but its title.
const (
	leastWidth  = 12
	leastHeight = 4
)

// Draw draws one pane, or its full-screen form if c.Zoomed.
func Draw(id ID, a grid.Area, s *store.Snapshot, c *Ctx) {
	c.id, c.caps = id, s.Engine.Caps
	switch {
	case a.W < leastWidth || a.H < leastHeight:
		c.frame(a, "")
	case c.Zoomed:
		forms[id].zoom(a, s, c)
	default:
		forms[id].draw(a, s, c)
	}
}

// Ctx is what the user has chosen, the same for all panes of a frame.
type Ctx struct {
	Skin     *theme.Skin
	Focus    ID
	Zoomed   bool
	Title    string // of a zoomed pane that stands for a view; "" is its own
	Window   metric.Window
	Phase    metric.Phase
	Latency  LatencyPage // of the view of latencies
	Scroll   int         // first row shown in a zoomed list; panes clamp it
	Spin     int         // frame counter of spinners
	Paused   bool
	FPS      int
	Alerts   []alert.Status
	Sent     string // what is sent to the terminal, "" if that is not worth a word
	Memory   *Memory
	Inspect  bool   // what costs more can be measured on demand
	Suggest  string // what the empty screen says to do, for example "press p to type a prompt"
	Engine   string // which of several engines this is, for example "2/3 box:9000"; "" if there is only one
	Record   RecordNote
	Timeline *Timeline         // of a moment of the past; nil: what is shown is live, or a replay
	Marks    []Mark            // oldest first
	Replay   *trace.PlayStatus // nil: what is shown is live
	Behind   int               // engines of the list that are not yet shown as they were at the moment of the past on show

	id   ID
	caps event.Caps // what the engine tells
}

// Memory keeps costly pictures between frames.
type Memory struct {
	latency, rates, kv, queue, fill, tokens, cpu, memory, disk, network grid.Chart
	lines, verdict                                                      []string
	lineKey                                                             textKey
	segs                                                                []grid.Seg
	bins                                                                []int
	values, cold                                                        []float64
	fit                                                                 table.Fit
	gauges                                                              gaugeSums
	gaugeRows                                                           []gaugeRow
}

// Styles that all panes share.
var (
	text  = grid.Fg(theme.Text)
	dim   = grid.Fg(theme.Dim)
	data  = grid.Fg(theme.Data)
	loud  = grid.Fg(theme.Data).With(grid.Bold)
	good  = grid.Fg(theme.Good)
	watch = grid.Fg(theme.Watch)
	bad   = grid.Fg(theme.Bad)
	head  = grid.Fg(theme.Dim).With(grid.Underline)
)

// frame draws the pane's box with its title and what it covers, in the first words for which there is room, and returns the inside.
func (c *Ctx) frame(a grid.Area, covers ...string) grid.Area {
	if c.Title != "" {
		return c.frameAs(a, c.Title, covers...)
	}
	return c.box(a, c.id.String(), c.Focus == c.id || c.Zoomed, covers)
}

// frameAs is frame for a view, which has a title of its own and always the focus.
func (c *Ctx) frameAs(a grid.Area, title string, covers ...string) grid.Area {
	return c.box(a, title, true, covers)
}

func (c *Ctx) box(a grid.Area, name string, focused bool, covers []string) grid.Area {
	gl := c.Skin.Glyphs
	line, title := grid.Fg(theme.Border), grid.Fg(theme.Title).With(grid.Bold)
	if focused {
		line, title = grid.Fg(theme.BorderFocus), grid.Fg(theme.Accent).With(grid.Bold)
		if !c.Skin.Colour() {
			title = title.With(grid.Reverse)
		}
	}
	a.Frame(line, gl)
	if a.W < 8 || a.H < 2 {
		return a.Inset(1, 1)
	}
	top := a.Sub(2, 0, a.W-4, 1)
	l := top.Line(0, 0)
	l.Put(title, " "+name).Put(dim, " ")
	for _, words := range covers {
		if n := grid.Width(words); n > 0 && n+4 <= l.Room() {
			l.Rune(line, gl.Horizontal).Put(dim, " "+words+" ")
			break
		}
	}
	return a.Sub(2, 1, a.W-4, a.H-2)
}

// foot writes words into the bottom border, at its right end, and returns how many cells they took.
func (c *Ctx) foot(a grid.Area, st grid.Style, words string) int {
	if n := grid.Width(words) + 2; words != "" && n <= a.W-4 {
		x := a.Right(a.W-2, a.H-1, st, " "+words+" ")
		return a.W - x
	}
	return 0
}

// absent fills an empty pane: what is missing in the middle, and below it what to do.
func (c *Ctx) absent(a grid.Area, st grid.Style, what, do string) {
	lines := grid.Wrap(nil, what, a.W)
	n := len(lines)
	lines = grid.Wrap(lines, do, a.W)
	y := max((a.H-len(lines))/2, 0)
	for i, s := range lines {
		use := st
		if i >= n {
			use = dim
		}
		a.Text((a.W-grid.Width(s))/2, y+i, use, s)
	}
}

// waiting says why there is nothing to show yet, in the words that fit the engine's state; false if the engine is ready.
func (c *Ctx) waiting(a grid.Area, s *store.Snapshot) bool {
	switch s.Engine.State {
	case event.EngineStarting, event.EngineLoading:
		if s.Unreached() {
			words := "nothing is known yet: the server has not answered"
			if s.Engine.Remote.Link == event.LinkRefused {
				words = "nothing is known: the connection was refused"
			}
			c.absent(a, dim, words, "")
			return true
		}
		spin := c.Skin.Glyphs.Spinner
		c.absent(a, dim, string(spin[c.Spin%len(spin)])+" waiting for the model to load", "")
		return true
	case event.EngineFailed:
		c.absent(a, bad, string(c.Skin.Glyphs.Failed)+" the engine failed", "see What to know")
		return true
	}
	return false
}

// stateStyle is the colour of a request's state.
func stateStyle(st event.State) grid.Style {
	switch st {
	case event.StateFailed:
		return bad
	case event.StateCancelled:
		return watch
	case event.StateFinished:
		return text
	}
	return grid.Fg(theme.Accent)
}
