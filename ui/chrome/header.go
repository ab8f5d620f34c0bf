// Package chrome draws what surrounds a view: the top row, the timeline, and the boxes of alerts and of changes since a
// mark.
package chrome

import (
	"cmp"
	"fmt"
	"strconv"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/theme"
	"github.com/llmtop/llmtop/ui/grid"
	"github.com/llmtop/llmtop/ui/pane"
	"github.com/llmtop/llmtop/ui/sanitize"
)

// DrawHeader draws the top row: state and session time, engine and model, and at the right llmtop's own cost and dropped
// events. Parts that do not fit are omitted, the least important first.
func DrawHeader(a grid.Area, s *store.Snapshot, f *pane.Frame, t *Status) {
	l := DrawBrand(a, f)
	drawState(&l, s, f, t)
	right := headerRight(a, s, f, l.X, t)
	headerModel(a.Sub(0, 0, right-1, 1), s, f, l, t)
	a.Paint(8, 0, a.W-8, theme.Select, 0)
}

// DrawBrand clears the top row and writes the name llmtop.
func DrawBrand(a grid.Area, f *pane.Frame) grid.Line {
	a.Fill(0, 0, a.W, pane.Plain.On(theme.Select), ' ')
	l := a.Line(0, 0)
	l.Put(pane.Badge(f.Skin), " llmtop ").Gap(1)
	return l
}

// drawState writes the state with its glyph and colour: of the replay, of a broken connection, or of the engine.
func drawState(l *grid.Line, s *store.Snapshot, f *pane.Frame, t *Status) {
	if t.Replay != nil {
		ReplayState(l, f, t.Replay)
		return
	}
	if mark, words, st, broken := LinkState(s, f); broken {
		st = st.With(grid.Bold)
		l.Rune(st, mark).Gap(1).Put(st, words).Gap(2)
		return
	}
	mark, word, st := EngineState(s, f)
	switch {
	case s == NotKept:
	case t.Paused:
		mark, word, st = f.Skin.Glyphs.Paused, "view paused", pane.Watch
	case s.Engine.Remote.Link == event.LinkNone:
	case word == "live":
		word = "connected"
	case word == "idle":
		word = "connected, idle"
	}
	st = st.With(grid.Bold)
	l.Rune(st, mark).Gap(1).Put(st, word).Gap(1)
	l.Fit(grid.Piece{Style: pane.Plain, Words: pane.Clock(pane.SessionTime(s, s.Now))})
	l.Gap(2)
}

// NotKeptWord is the state of an engine without history at the selected moment.
const NotKeptWord = "not kept"

// EngineState returns the glyph, word and colour of the state of the engine.
func EngineState(s *store.Snapshot, f *pane.Frame) (mark rune, word string, st grid.Style) {
	gl := f.Skin.Glyphs
	mark, word, st = gl.Live, "live", pane.Good
	switch {
	case s == NotKept:
		mark, word, st = gl.Idle, NotKeptWord, pane.Dim
	case s.Engine.State == event.EngineStarting, s.Engine.State == event.EngineLoading:
		mark, word, st = gl.Spinner[f.Spin%len(gl.Spinner)], s.Engine.State.String(), grid.Fg(theme.Accent)
	case s.Engine.State == event.EngineFailed:
		mark, word, st = gl.Failed, "failed", pane.Bad
	case s.Engine.State == event.EngineStopped:
		mark, word, st = gl.Idle, "stopped", pane.Dim
	case s.Engine.State == event.EnginePaused:
		mark, word, st = gl.Paused, cmp.Or(sanitize.Line(s.Engine.Reason), "engine paused"), pane.Watch
	case s.Throughput.Running == 0 && s.Throughput.Queued == 0 && s.Totals().Running.OK() && !s.CallsOnly():
		mark, word, st = gl.Idle, "idle", pane.Good
	}
	return mark, word, st
}

// mostKernels is the maximum width of the name of an instruction set or backend; longer names are omitted.
const mostKernels = 24

// leastModel is the width reserved for the model name.
const leastModel = 12

// headerRight writes the right part of the header and returns its start column. Dropped events come first, so that
// nothing hides them.
func headerRight(a grid.Area, s *store.Snapshot, f *pane.Frame, from int, t *Status) int {
	x := a.W - 1
	put := func(st grid.Style, words string, keep int) bool {
		fits := x-grid.Width(words)-2 >= from+keep
		if words != "" && fits {
			x = a.Right(x, 0, st, words) - 2
		}
		return fits
	}
	putNote := func(n Note, keep int) {
		if n.Why == "" || !put(n.Style, n.Words+": "+n.Why, max(keep, 20)) {
			put(n.Style, n.Words, keep)
		}
	}
	loss, lossless := DropCounts(s, f)
	if !lossless {
		put(pane.Bad.With(grid.Bold), loss, 0)
	}
	if words, short := t.FiringAlerts(); words != "" && !put(pane.Bad.With(grid.Bold), words, 30) {
		put(pane.Bad.With(grid.Bold), short, 0)
	}
	if n := s.Engine.Remote.Restarts; n > 0 {
		put(pane.Watch.With(grid.Bold), "RESTARTED ("+strconv.Itoa(n)+")", 0)
	}
	if m := f.Mark(); m != nil {
		put(grid.Fg(theme.Accent).With(grid.Bold), m.SinceLabel(s), 24)
	}
	putNote(t.Record, 0)
	if _, _, _, broken := LinkState(s, f); broken { // leave the rest of the row to the reason
		if t.Paused {
			put(pane.Watch.With(grid.Bold), "view paused", 0)
		}
		if lossless {
			put(pane.Dim, loss, 60)
		}
		return x + 1
	}
	named := min(grid.Width(t.Engine), 30) // width reserved for the engine name, one of several
	if s.Engine.Pace > 0 {
		put(pane.Plain, "paced "+metric.Rate(s.Engine.Pace)+"/s", named+leastModel)
	}
	self := s.Host.Self
	if s.Host.Sampled && self.CPU.OK() {
		cpu := self.CPU
		if self.OutsideEngine.OK() {
			cpu = self.OutsideEngine
		}
		words := fmt.Sprintf("self %5s", metric.Percent(cpu.V)) // fixed widths, so that the parts left of it stay in place
		if self.RSS.OK() {
			words += fmt.Sprintf(" %7s", metric.Bytes(self.RSS.V))
		}
		put(pane.Plain, words, 30+named)
	}
	if lossless && !put(pane.Dim, loss, 60+named) {
		put(pane.Dim, "dropped 0", 60)
	}
	put(pane.Dim, strconv.Itoa(t.FPS)+" fps", 80+named)
	putNote(t.Output, 40+named)
	return x + 1
}

// headerModel writes the engine and the model, as much as fits.
func headerModel(a grid.Area, s *store.Snapshot, f *pane.Frame, l grid.Line, t *Status) {
	l = a.Line(l.X, 0)
	sep := " " + string(f.Skin.Glyphs.Bullet) + " "
	m, e := s.Model, s.Engine
	full := false // a more important part did not fit
	put := func(st grid.Style, words string, lead string) {
		if words != "" && !full {
			full = !l.Fit(grid.Piece{Style: pane.Dim, Words: lead}, grid.Piece{Style: st, Words: words})
		}
	}
	lead := ""
	if t.Engine != "" {
		l.X += a.Elide(l.X, 0, l.Room(), pane.Loud, t.Engine, f.Skin.Glyphs.Ellipsis)
		lead = sep
	}
	if why, st, ok := LinkError(s, f); ok {
		l.Put(pane.Dim, lead)
		a.Elide(l.X, 0, l.Room(), st, why, f.Skin.Glyphs.Ellipsis)
		return
	}
	if m.Name == "" && m.Architecture == "" {
		put(pane.Plain, sanitize.Line(e.Name), lead)
		put(pane.Plain, sanitize.Line(e.Device.Name), sep)
		if e.State == event.EngineLoading {
			put(pane.Plain, sanitize.Line(e.Reason), sep)
		}
		return
	}
	if name := sanitize.Line(m.Name); grid.Width(lead+name) > l.Room() {
		l.Put(pane.Dim, lead)
		a.Elide(l.X, 0, l.Room(), pane.Data, name, f.Skin.Glyphs.Ellipsis)
		return
	}
	put(pane.Data, sanitize.Line(m.Name), lead)
	if m.Parameters > 0 {
		put(pane.Plain, metric.Count(float64(m.Parameters)), " ")
	}
	put(pane.Plain, sanitize.Line(m.Quantisation), " ")
	if m.Layers > 0 {
		put(pane.Plain, modelShape(m), sep)
	}
	engine := sanitize.Line(e.Name)
	if kernels := sanitize.Line(e.Device.Kernels); kernels != "" && grid.Width(kernels) <= mostKernels { // some engines list every backend that they support
		engine += " " + kernels
	}
	put(pane.Plain, engine, sep)
	if why := sanitize.Line(e.Reason); why != "" && e.State != event.EngineFailed && e.State != event.EnginePaused && !full && l.Room() > leastModel {
		l.Put(pane.Dim, sep)
		l.X += a.Elide(l.X, 0, l.Room(), pane.Dim, why, f.Skin.Glyphs.Ellipsis)
	}
	if e.Device.Threads > 0 {
		put(pane.Plain, pane.CountOf(uint64(e.Device.Threads), "thread", "threads"), sep)
	}
	if m.Context > 0 {
		put(pane.Plain, "ctx "+strconv.Itoa(m.Context), sep)
	}
	put(pane.Dim, sanitize.Line(m.Path), sep)
}

// modelShape returns the number of layers and experts of the model.
func modelShape(m event.Model) string {
	words := strconv.Itoa(m.Layers) + "L"
	if m.Experts > 0 {
		words += " × " + strconv.Itoa(m.Experts) + "E top-" + strconv.Itoa(m.ExpertsUsed)
	}
	return words
}

// DrawSmallScreen draws the few lines that fit a screen too small for panes.
func DrawSmallScreen(a grid.Area, s *store.Snapshot, f *pane.Frame, t *Status) {
	l := a.Line(0, 0)
	drawState(&l, s, f, t)
	itl := s.Latency.Of[store.ITL][f.Window]
	gap := pane.Dim
	const names = 8
	words := "no token yet"
	if itl.Count > 0 {
		p50 := metric.Duration(itl.P50) + " p50"
		gap, words = pane.Data, pane.FirstFitting(a.W-names, p50+"  "+metric.Duration(itl.P99)+" p99", p50)
	}
	loss, lossless := DropCounts(s, f)
	dropStyle := pane.Plain
	if !lossless {
		dropStyle = pane.Bad
	}
	ttft := "no request yet"
	if r := pane.WithTTFT(s.Requests); r != nil {
		ttft = metric.Seconds(r.TTFT.V)
	}
	for y, row := range []struct {
		name, words string
		st          grid.Style
	}{
		{"TTFT", ttft, pane.Data},
		{"ITL", words, gap},
		{"decode", metric.Reading(s.Throughput.Decode, metric.Rate) + " tok/s", pane.Data},
		{"events", loss, dropStyle},
	} {
		a.Text(0, 1+y, pane.Dim, row.name)
		a.Elide(names, 1+y, a.W-names, row.st, row.words, f.Skin.Glyphs.Ellipsis)
	}
	needs := "needs 60x18: " + strconv.Itoa(a.W) + "x" + strconv.Itoa(a.H) + " here"
	a.Fill(0, a.H-1, a.W, pane.Plain, ' ')
	a.Elide(0, a.H-1, a.W, pane.Watch, pane.FirstFitting(a.W, "llmtop "+needs, needs, "needs 60x18"), f.Skin.Glyphs.Ellipsis)
}
