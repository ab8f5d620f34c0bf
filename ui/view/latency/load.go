package latency

import (
	"slices"
	"strings"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/theme"
	"github.com/llmtop/llmtop/ui/grid"
	"github.com/llmtop/llmtop/ui/pane"
	"github.com/llmtop/llmtop/ui/sanitize"
)

// drawLoad draws the model load as a waterfall on a common time axis and returns the rows used. The name column is as
// wide as needed, up to half of the area. Where not all stages fit, the shortest share the last row. Where their times
// are unknown, all bars begin at the left.
func drawLoad(a grid.Area, s *store.Snapshot, f *pane.Frame) int {
	gl := f.Skin.Glyphs
	if len(s.Load) == 0 {
		f.Waiting(a, s)
		return 0
	}
	from, to, longest := s.Load[0].Start, s.Load[0].End, time.Duration(0)
	for _, p := range s.Load {
		from, to, longest = min(from, p.Start), max(to, p.End), max(longest, p.Dur())
	}
	loads := s.Engine.State <= event.EngineLoading
	room := a.H
	if loads && room > 1 {
		room--
	}
	own, rest := pane.Unfolded(len(s.Load), func(i int) int64 { return int64(s.Load[i].Dur()) }, room)
	names := 0
	for i, p := range s.Load {
		if own[i] {
			names = max(names, grid.Width(loadStageName(p))+1)
		}
	}
	const numbers = 9
	names = min(names, a.W/2)
	begins := func(p store.StageSpan) event.Time { return p.Start - from }
	span := max(float64(to-from), 1)
	if unplacedLoad(s) {
		begins, span = func(store.StageSpan) event.Time { return 0 }, max(float64(longest), 1)
	}
	bar := a.Sub(names, 0, a.W-names-numbers-1, a.H)
	y, shorter := 0, time.Duration(0)
	for i, p := range s.Load {
		if !own[i] {
			shorter += p.Dur()
			continue
		}
		a.Elide(0, y, names-1, pane.Dim, loadStageName(p), gl.Ellipsis)
		begin := begins(p)
		x0 := int(float64(begin) / span * float64(bar.W))
		x1 := int(float64(begin+p.End-p.Start) / span * float64(bar.W))
		bar.Fill(min(x0, bar.W-1), y, max(x1-x0, 1), grid.Fg(theme.PartLoad), gl.Bar)
		a.Right(a.W, y, pane.Data, metric.Duration(int64(p.Dur())))
		y++
	}
	if rest != "" && y < room {
		a.Text(0, y, pane.Dim, rest)
		a.Right(a.W, y, pane.Data, metric.Duration(int64(shorter)))
		y++
	}
	if y < a.H && loads {
		spin, done := string(gl.Spinner[f.Spin%len(gl.Spinner)])+" loading", loadProgress(s)
		words := spin + ", " + metric.Duration(int64(time.Duration(s.Now-from))) + " so far" + done
		if done != "" && grid.Width(words) > a.W {
			words = spin + done
		}
		a.Text(0, y, grid.Fg(theme.Accent), words)
		y++
	}
	return y
}

// unplacedLoad reports whether a stage ended before the clock of this session started, as for an engine that was
// attached later. The store keeps the length of such a stage, but gives all of them the same end, 1 ns.
func unplacedLoad(s *store.Snapshot) bool {
	return slices.ContainsFunc(s.Load, func(p store.StageSpan) bool { return p.End <= 1 })
}

// loadTitle draws the heading above drawLoad.
func loadTitle(a grid.Area, s *store.Snapshot) {
	l := a.Line(0, 0)
	l.Put(pane.Heading, "Model load")
	if unplacedLoad(s) {
		l.Gap(2).Fit(grid.Piece{Style: pane.Dim, Words: "before this session: lengths only"})
	}
}

// loadStageName returns the short name of a load stage.
func loadStageName(p store.StageSpan) string {
	if p.Stage == event.StageLoad {
		return "total"
	}
	return sanitize.Line(strings.TrimPrefix(p.Label(), "load_"))
}

// loadProgress returns the reported progress of the load stages.
func loadProgress(s *store.Snapshot) (words string) {
	for _, n := range s.Aggregates.More {
		stage, is := strings.CutPrefix(n.Name, "load_")
		if stage, share := strings.CutSuffix(stage, "_share"); is && share && n.OK() {
			words += ", " + metric.Percent(n.V) + " of " + sanitize.Line(stage)
		}
	}
	return words
}

// drawLoadOnly draws the model load of an attached engine while nothing else is known of it, with a note on what is
// missing; false if no load was reported.
func drawLoadOnly(a grid.Area, s *store.Snapshot, f *pane.Frame, missing string) bool {
	if len(s.Load) == 0 || s.Engine.Remote.Link == event.LinkNone || a.H < 4 {
		return false
	}
	loadTitle(a, s)
	y := drawLoad(a.Sub(0, 1, min(a.W, widestLoad), a.H-2), s, f) + 2
	a.Elide(0, min(y, a.H-1), a.W, pane.Dim, missing, f.Skin.Glyphs.Ellipsis)
	return true
}

// StartupPrefix is the name prefix of reported startup phase durations, which have no start time.
const StartupPrefix = "startup_"

// startupPhases returns the reported duration of each startup phase, in s.
func startupPhases(s *store.Snapshot) (out []pane.TimePart) {
	for _, n := range s.Aggregates.More {
		if phase, is := strings.CutPrefix(n.Name, StartupPrefix); is && n.OK() {
			name, _ := metric.Named(sanitize.Line(phase))
			out = append(out, pane.TimePart{Name: name, Share: n.V})
		}
	}
	return out
}

// drawStartup draws the duration of each startup phase and a note with the text below; false if none was reported.
func drawStartup(a grid.Area, s *store.Snapshot, f *pane.Frame, below string) bool {
	list := startupPhases(s)
	longest, names := 0.0, 0
	for _, p := range list {
		longest, names = max(longest, p.Share), max(names, grid.Width(p.Name)+1)
	}
	if longest == 0 || a.H < 4 {
		return false
	}
	a.Text(0, 0, pane.Heading, "Engine startup")
	bars := a.Sub(0, 1, min(a.W, widestLoad), a.H-1)
	const numbers = 10
	names = min(names, bars.W/2)
	for y, p := range list {
		bars.Elide(0, y, names-1, pane.Dim, p.Name, f.Skin.Glyphs.Ellipsis)
		bars.Bar(names, y, bars.W-names-numbers, p.Share/longest, theme.PartLoad, f.Skin.Colour(), f.Skin.Glyphs)
		bars.Right(bars.W, y, pane.Data, metric.Seconds(p.Share))
	}
	words := "phases may overlap" + below
	if len(list) == 1 {
		words = "reported by the engine" + below
	}
	a.Wrapped(0, len(list)+1, pane.Dim, words)
	return true
}

// widestLoad is the maximum width of the load waterfall in cells, so that the eye finds the number at the end of a row.
const widestLoad = 100

// zoomUnmeasured draws TTFT without measured requests and, where there is room, the startup or load below.
func zoomUnmeasured(a grid.Area, s *store.Snapshot, f *pane.Frame) {
	if s.Engine.State <= event.EngineLoading {
		drawUnmeasuredTTFT(a, s, f)
		return
	}
	known := longestTTFT(&s.Aggregates) > 0 // it draws TTFT itself, not the startup in its place
	if n := len(startupPhases(s)); n > 0 && len(s.Load) == 0 && known && a.H-n-3 >= leastTTFTRows {
		drawUnmeasuredTTFT(a.Sub(0, 0, a.W, a.H-n-3), s, f)
		drawStartup(a.Sub(0, a.H-n-2, a.W, n+2), s, f, "")
		return
	}
	rows := min(len(s.Load), a.H/2)
	if rows < 2 || noRequestData(&s.Aggregates) || a.H-rows < leastTTFTRows {
		drawUnmeasuredTTFT(a, s, f)
		return
	}
	drawUnmeasuredTTFT(a.Sub(0, 0, a.W, a.H-rows-2), s, f)
	loadTitle(a.Sub(0, a.H-rows-1, a.W, 1), s)
	drawLoad(a.Sub(0, a.H-rows, min(a.W, widestLoad), rows), s, f)
}

// leastTTFTRows is the minimum number of rows above the load.
const leastTTFTRows = 12
