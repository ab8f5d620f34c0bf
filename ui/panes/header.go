package panes

import (
	"strconv"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/theme"
	"github.com/llmtop/llmtop/ui/grid"
	"github.com/llmtop/llmtop/ui/sanitize"
)

// sessionTime returns the time from the session's first event to at.
func sessionTime(s *store.Snapshot, at event.Time) time.Duration {
	return time.Duration(at - s.Started)
}

// Header draws the top row: state and session time, engine and model, and at the right llmtop's own cost and dropped
// events. Parts that do not fit are omitted, the least important first.
func Header(a grid.Area, s *store.Snapshot, t *Status, c *Ctx) {
	l := c.brand(a)
	c.state(&l, s, t)
	right := c.headerRight(a, l.X, s, t)
	c.headerModel(a.Sub(0, 0, right-1, 1), l, s, t)
	a.Paint(8, 0, a.W-8, theme.Select, 0)
}

// brand clears the top row and writes the name llmtop.
func (c *Ctx) brand(a grid.Area) grid.Line {
	a.Fill(0, 0, a.W, text.On(theme.Select), ' ')
	brand := grid.Style{FG: theme.OnBadge, BG: theme.Accent, Attr: grid.Bold}
	if !c.Skin.Colour() {
		brand.Attr |= grid.Reverse
	}
	l := a.Line(0, 0)
	l.Put(brand, " llmtop ").Gap(1)
	return l
}

// state writes the state with its glyph and colour: of the replay, of a broken connection, or of the engine.
func (c *Ctx) state(l *grid.Line, s *store.Snapshot, t *Status) {
	if t.Replay != nil {
		c.replayState(l, t.Replay)
		return
	}
	if mark, words, st, broken := c.link(s); broken {
		st = st.With(grid.Bold)
		l.Rune(st, mark).Gap(1).Put(st, words).Gap(2)
		return
	}
	mark, word, st := c.engineState(s)
	switch {
	case s == NotKept:
	case t.Paused:
		mark, word, st = c.Skin.Glyphs.Paused, "view paused", watch
	case s.Engine.Remote.Link == event.LinkNone:
	case word == "live":
		word = "connected"
	case word == "idle":
		word = "connected, idle"
	}
	st = st.With(grid.Bold)
	l.Rune(st, mark).Gap(1).Put(st, word).Gap(1)
	l.Put(text, clock(sessionTime(s, s.Now))).Gap(2)
}

// notKept is the state of an engine without history at the selected moment.
const notKept = "not kept"

// engineState returns the glyph, word and colour of the state of the engine.
func (c *Ctx) engineState(s *store.Snapshot) (mark rune, word string, st grid.Style) {
	gl := c.Skin.Glyphs
	mark, word, st = gl.Live, "live", good
	switch {
	case s == NotKept:
		mark, word, st = gl.Idle, notKept, dim
	case s.Engine.State == event.EngineStarting, s.Engine.State == event.EngineLoading:
		mark, word, st = gl.Spinner[c.Spin%len(gl.Spinner)], s.Engine.State.String(), grid.Fg(theme.Accent)
	case s.Engine.State == event.EngineFailed:
		mark, word, st = gl.Failed, "failed", bad
	case s.Engine.State == event.EngineStopped:
		mark, word, st = gl.Idle, "stopped", dim
	case s.Engine.State == event.EnginePaused:
		mark, word, st = gl.Paused, "engine paused", watch
	case s.Throughput.Running == 0 && s.Throughput.Queued == 0 && (s.Aggregates == nil || s.Aggregates.Running.OK()):
		mark, word, st = gl.Idle, "idle", good
	}
	return mark, word, st
}

// mostKernels is the maximum width of the name of an instruction set or backend; longer names are omitted.
const mostKernels = 24

// leastModel is the width reserved for the model name.
const leastModel = 12

// headerRight writes the right part of the header and returns its start column. Dropped events come first, so that
// nothing hides them.
func (c *Ctx) headerRight(a grid.Area, from int, s *store.Snapshot, t *Status) int {
	x := a.W - 1
	put := func(st grid.Style, words string, keep int) bool {
		fits := x-grid.Width(words)-2 >= from+keep
		if words != "" && fits {
			x = a.Right(x, 0, st, words) - 2
		}
		return fits
	}
	loss, lossless := c.dropCounts(s)
	if !lossless {
		put(bad.With(grid.Bold), loss, 0)
	}
	if words, short := t.firingAlerts(); words != "" && !put(bad.With(grid.Bold), words, 30) {
		put(bad.With(grid.Bold), short, 0)
	}
	if n := s.Engine.Remote.Restarts; n > 0 {
		put(watch.With(grid.Bold), "RESTARTED ("+strconv.Itoa(n)+")", 0)
	}
	if m := c.Mark(); m != nil {
		put(grid.Fg(theme.Accent).With(grid.Bold), m.sinceLabel(s), 24)
	}
	if n := t.Record; n.Words != "" && !(n.Why != "" && put(n.style(), n.Words+": "+n.Why, 20)) {
		put(n.style(), n.Words, 0)
	}
	if _, _, _, broken := c.link(s); broken { // leave the rest of the row to the reason
		if t.Paused {
			put(watch.With(grid.Bold), "view paused", 0)
		}
		if lossless {
			put(dim, loss, 60)
		}
		return x + 1
	}
	named := min(grid.Width(t.Engine), 30) // width reserved for the engine name, one of several
	if s.Engine.Pace > 0 {
		put(watch, "paced "+metric.Rate(s.Engine.Pace)+"/s", named+leastModel)
	}
	self := s.Host.Self
	if s.Host.Sampled && self.CPU.OK() {
		words := "self " + metric.Reading(self.OutsideEngine, metric.Percent)
		if !self.OutsideEngine.OK() {
			words = "self " + metric.Percent(self.CPU.V)
		}
		if self.RSS.OK() {
			words += " " + metric.Bytes(self.RSS.V)
		}
		put(text, words, 30+named)
	}
	if lossless && !put(dim, loss, 60+named) {
		put(dim, "dropped 0", 60)
	}
	put(dim, strconv.Itoa(t.FPS)+" fps", 80+named)
	put(watch, t.OutputNote, 40+named)
	return x + 1
}

// headerModel writes the engine and the model, as much as fits.
func (c *Ctx) headerModel(a grid.Area, l grid.Line, s *store.Snapshot, t *Status) {
	l = a.Line(l.X, 0)
	sep := " " + string(c.Skin.Glyphs.Bullet) + " "
	m, e := s.Model, s.Engine
	full := false // a more important part did not fit
	put := func(st grid.Style, words string, lead string) {
		if words != "" && !full {
			full = !l.Fit(grid.Piece{Style: dim, Words: lead}, grid.Piece{Style: st, Words: words})
		}
	}
	lead := ""
	if t.Engine != "" {
		l.X += a.Elide(l.X, 0, l.Room(), loud, t.Engine, c.Skin.Glyphs.Ellipsis)
		lead = sep
	}
	if why, st, ok := c.linkError(s); ok {
		l.Put(dim, lead)
		a.Elide(l.X, 0, l.Room(), st, why, c.Skin.Glyphs.Ellipsis)
		return
	}
	if m.Name == "" && m.Architecture == "" {
		put(text, sanitize.Line(e.Name), lead)
		put(text, sanitize.Line(e.Device.Name), sep)
		if e.State == event.EngineLoading {
			put(text, sanitize.Line(e.Reason), sep)
		}
		return
	}
	if name := sanitize.Line(m.Name); grid.Width(lead+name) > l.Room() {
		l.Put(dim, lead)
		a.Elide(l.X, 0, l.Room(), data, name, c.Skin.Glyphs.Ellipsis)
		return
	}
	put(data, sanitize.Line(m.Name), lead)
	if m.Parameters > 0 {
		put(text, metric.Count(float64(m.Parameters)), " ")
	}
	put(text, sanitize.Line(m.Quantisation), " ")
	if m.Layers > 0 {
		put(text, modelShape(m), sep)
	}
	engine := sanitize.Line(e.Name)
	if kernels := sanitize.Line(e.Device.Kernels); kernels != "" && grid.Width(kernels) <= mostKernels { // some engines list every backend that they support
		engine += " " + kernels
	}
	put(text, engine, sep)
	if why := sanitize.Line(e.Reason); why != "" && e.State != event.EngineFailed && !full && l.Room() > leastModel {
		l.Put(dim, sep)
		l.X += a.Elide(l.X, 0, l.Room(), dim, why, c.Skin.Glyphs.Ellipsis)
	}
	if e.Device.Threads > 0 {
		put(text, strconv.Itoa(e.Device.Threads)+" threads", sep)
	}
	if m.Context > 0 {
		put(text, "ctx "+strconv.Itoa(m.Context), sep)
	}
	put(dim, sanitize.Line(m.Path), sep)
}

// modelShape returns the number of layers and experts of the model.
func modelShape(m event.Model) string {
	words := strconv.Itoa(m.Layers) + "L"
	if m.Experts > 0 {
		words += " × " + strconv.Itoa(m.Experts) + "E top-" + strconv.Itoa(m.ExpertsUsed)
	}
	return words
}

// SmallScreen draws the few lines that fit a screen too small for panes.
func SmallScreen(a grid.Area, s *store.Snapshot, t *Status, c *Ctx) {
	l := a.Line(0, 0)
	c.state(&l, s, t)
	itl := s.Latency.ITL[c.Window]
	gap := dim
	words := "no token yet"
	if itl.Count > 0 {
		gap, words = data, metric.Duration(itl.P50)+" p50  "+metric.Duration(itl.P99)+" p99"
	}
	loss, lossless := c.dropCounts(s)
	dropStyle := text
	if !lossless {
		dropStyle = bad
	}
	ttft := "no request yet"
	if r := withTTFT(s.Requests); r != nil {
		ttft = metric.Seconds(r.TTFT.V)
	}
	for i, row := range []struct {
		name, words string
		st          grid.Style
	}{
		{"TTFT", ttft, data},
		{"ITL", words, gap},
		{"decode", metric.Reading(s.Throughput.Decode, metric.Rate) + " tok/s", data},
		{"events", loss, dropStyle},
	} {
		a.Text(0, 1+i, dim, row.name)
		a.Text(8, 1+i, row.st, row.words)
	}
	a.Elide(0, a.H-1, a.W, watch, "llmtop needs 60x18: "+strconv.Itoa(a.W)+"x"+strconv.Itoa(a.H)+" here", c.Skin.Glyphs.Ellipsis)
}
