package panes

import (
	"strings"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/theme"
	"github.com/llmtop/llmtop/ui/grid"
	"github.com/llmtop/llmtop/ui/sanitize"
)

// drawLoad draws the model load as a waterfall: each stage where it lies on the common time axis, under a name that has as much room as it needs, up
// to half of the width. Where not all have a row, the shortest are left out. It returns the rows that it took.
func drawLoad(a grid.Area, s *store.Snapshot, c *Ctx) int {
	gl := c.Skin.Glyphs
	if len(s.Load) == 0 {
		c.waiting(a, s)
		return 0
	}
	from, to := s.Load[0].Start, s.Load[0].End
	stages := make([]slice, 0, len(s.Load))
	for _, p := range s.Load {
		from, to = min(from, p.Start), max(to, p.End)
		stages = append(stages, slice{name: loadName(p), dur: p.Dur()})
	}
	loads := s.Engine.State <= event.EngineLoading
	room := a.H
	if loads && room > 1 {
		room--
	}
	least, names := kthLongest(stages, room), 0
	for _, p := range stages {
		if p.dur >= least {
			names = max(names, grid.Width(p.name)+1)
		}
	}
	const numbers = 9
	names = min(names, a.W/2)
	span := max(float64(to-from), 1)
	bar := a.Sub(names, 0, a.W-names-numbers-1, a.H)
	y := 0
	for i, p := range s.Load {
		if stages[i].dur < least || y == room {
			continue
		}
		a.Elide(0, y, names-1, dim, stages[i].name, gl.Ellipsis)
		x0 := int(float64(p.Start-from) / span * float64(bar.W))
		x1 := int(float64(p.End-from) / span * float64(bar.W))
		bar.Fill(min(x0, bar.W-1), y, max(x1-x0, 1), grid.Fg(theme.PartLoad), gl.Bar)
		a.Right(a.W, y, data, metric.Duration(int64(p.Dur())))
		y++
	}
	if y < a.H && loads {
		spin, done := string(gl.Spinner[c.Spin%len(gl.Spinner)])+" loading", loadProgress(s)
		words := spin + ", " + metric.Duration(int64(time.Duration(s.Now-from))) + " so far" + done
		if done != "" && grid.Width(words) > a.W {
			words = spin + done
		}
		a.Text(0, y, grid.Fg(theme.Accent), words)
		y++
	}
	return y
}

// loadName is the short name of a stage of the load.
func loadName(p store.Span) string {
	if p.Stage == event.StageLoad {
		return "in all"
	}
	return sanitize.Line(strings.TrimPrefix(p.Label(), "load_"))
}

// loadProgress is how much of its stage an engine says that it has done.
func loadProgress(s *store.Snapshot) (words string) {
	if s.Reported == nil {
		return ""
	}
	for _, n := range s.Reported.More {
		stage, is := strings.CutPrefix(n.Name, "load_")
		if stage, share := strings.CutSuffix(stage, "_share"); is && share && n.OK() {
			words += ", " + metric.Percent(n.V) + " of " + sanitize.Line(stage)
		}
	}
	return words
}

// loadAlone draws the load of an engine elsewhere for as long as there is nothing else to see of it, and says below what is missing; false if no load is
// known.
func (c *Ctx) loadAlone(a grid.Area, s *store.Snapshot, missing string) bool {
	if len(s.Load) == 0 || s.Engine.Remote.Link == event.LinkNone || a.H < 4 {
		return false
	}
	a.Text(0, 0, head, "Model load")
	y := drawLoad(a.Sub(0, 1, min(a.W, widestLoad), a.H-2), s, c) + 2
	a.Elide(0, min(y, a.H-1), a.W, dim, missing, c.Skin.Glyphs.Ellipsis)
	return true
}

// startupPrefix begins the names of the times that the phases of an engine's start took, where it tells these without saying when they were.
const startupPrefix = "startup_"

// phases are how long those of an engine's start took, by its own word.
func phases(s *store.Snapshot) (out []slice) {
	for _, n := range s.Reported.More {
		if phase, is := strings.CutPrefix(n.Name, startupPrefix); is && n.OK() {
			name, _ := numberName(phase)
			out = append(out, slice{name: name, share: n.V})
		}
	}
	return out
}

// startup draws how long the phases of an engine's start took, and what else there is to say below; false if it has not told.
func (c *Ctx) startup(a grid.Area, s *store.Snapshot, below string) bool {
	list := phases(s)
	longest, names := 0.0, 0
	for _, p := range list {
		longest, names = max(longest, p.share), max(names, grid.Width(p.name)+1)
	}
	if longest == 0 || a.H < 4 {
		return false
	}
	a.Text(0, 0, head, "Start of the engine")
	bars := a.Sub(0, 1, min(a.W, widestLoad), a.H-1)
	const numbers = 10
	names = min(names, bars.W/2)
	for y, p := range list {
		bars.Elide(0, y, names-1, dim, p.name, c.Skin.Glyphs.Ellipsis)
		bars.Bar(names, y, bars.W-names-numbers, p.share/longest, theme.PartLoad, c.Skin.Colour(), c.Skin.Glyphs)
		bars.Right(bars.W, y, data, metric.Seconds(p.share))
	}
	words := "as it tells them, some are parts of others" + below
	if len(list) == 1 {
		words = "as it tells it" + below
	}
	for i, line := range grid.Wrap(nil, words, a.W) {
		a.Text(0, len(list)+1+i, dim, line)
	}
	return true
}

// widestLoad is how wide a waterfall of the load is at most, in cells: the eye has to find the number at the end of the row.
const widestLoad = 100

// loadBelow draws what an engine tells in sum with its load below, where one is known and there is room for both.
func (c *Ctx) loadBelow(a grid.Area, s *store.Snapshot) {
	known := longestTTFT(s.Reported) > 0 || !c.counts(s.Reported) && s.Probes().Last != nil // so that the start is not drawn in its place
	if n := len(phases(s)); n > 0 && len(s.Load) == 0 && known && a.H-n-3 >= leastAbove {
		c.reportedTTFT(a.Sub(0, 0, a.W, a.H-n-3), s)
		c.startup(a.Sub(0, a.H-n-2, a.W, n+2), s, "")
		return
	}
	rows := min(len(s.Load), a.H/2)
	if rows < 2 || c.idle(s.Reported) || a.H-rows < leastAbove {
		c.reportedTTFT(a, s)
		return
	}
	c.reportedTTFT(a.Sub(0, 0, a.W, a.H-rows-2), s)
	a.Text(0, a.H-rows-1, head, "Model load")
	drawLoad(a.Sub(0, a.H-rows, min(a.W, widestLoad), rows), s, c)
}

// leastAbove is how many rows stay above the load at least.
const leastAbove = 12
