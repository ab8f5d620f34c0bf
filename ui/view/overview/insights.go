package overview

import (
	"strconv"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/profiler/verdict"
	"github.com/llmtop/llmtop/theme"
	"github.com/llmtop/llmtop/ui/chrome"
	"github.com/llmtop/llmtop/ui/grid"
	"github.com/llmtop/llmtop/ui/pane"
	"github.com/llmtop/llmtop/ui/sanitize"
)

// severity returns the glyph and the colour of a verdict.
func severity(f *pane.Frame, v verdict.Severity) (rune, grid.Style) {
	gl := f.Skin.Glyphs
	switch v {
	case verdict.Good:
		return gl.Good, pane.Good
	case verdict.Watch:
		return gl.Watch, pane.Watch
	case verdict.Bad:
		return gl.Bad, pane.Bad
	}
	return gl.Info, grid.Fg(theme.Accent)
}

func drawInsights(a grid.Area, s *store.Snapshot, f *pane.Frame) {
	in := f.Box(a, "")
	if drawFailure(in, s, f) {
		return
	}
	used := 0
	defer func() { drawNotReported(a.Sub(0, 0, a.W-used, a.H), s, f) }()
	if n := chrome.DrawWarnings(in, s, f); n > 0 {
		in = in.Sub(0, n, in.W, in.H-n)
	}
	if len(s.Verdicts) == 0 {
		if !f.Waiting(in, s) {
			drawNoVerdicts(in, s, f)
		}
		return
	}
	spare := in.H - rowsOf(in, s, f) // rows left for evidence and advice, given to the first verdicts
	y, shown := 0, 0
	for _, v := range s.Verdicts {
		lines, plain := verdictLines(f, v, in.W, true)
		more := len(lines) - plain
		full := more <= spare
		if full {
			spare -= more
		}
		n := drawVerdict(in, f, y, v, full)
		if n == 0 {
			break
		}
		y += n
		if full && spare > 0 {
			y++
			spare--
		}
		shown++
	}
	if rest := len(s.Verdicts) - shown; rest > 0 {
		used = f.Foot(a, pane.Dim, strconv.Itoa(rest)+" more: zoom to see")
	}
}

// drawNotReported names what the engine does not report in the border below, as far as there is room.
func drawNotReported(a grid.Area, s *store.Snapshot, f *pane.Frame) {
	names := ""
	for name := range f.NotReported(s) {
		names += ", " + name
	}
	if names == "" {
		return
	}
	names = names[2:]
	words := " not reported: " + names
	a.Text(2, a.H-1, pane.Dim, pane.FirstFitting(a.W-4, words+" (? says how to get them) ", words+" (?) ", " not reported: see ? ", ""))
}

// drawNoVerdicts draws why there are no verdicts and, of a polled server, the messages of the poller.
func drawNoVerdicts(in grid.Area, s *store.Snapshot, f *pane.Frame) {
	why := noVerdictReason(s)
	if s.Engine.Remote.Link == event.LinkNone || len(s.Log) == 0 {
		f.Absent(in, pane.Dim, why, "")
		return
	}
	y := in.Wrapped(0, 0, pane.Dim, why)
	pane.DrawLog(in.Sub(0, y+1, in.W, in.H-y-1), s, f)
}

// noVerdictReason returns why there are no verdicts.
func noVerdictReason(s *store.Snapshot) string {
	switch why := sanitize.Line(s.Engine.Reason); {
	case s.CallsOnly():
		return "no insights: " + why
	case s.Distribution(store.MaxITL, metric.Session).Origin != event.NotReported:
		return "no insights yet: they need a few tokens"
	case !s.ReportsTooLittle():
		return "no insights yet: they need a few requests"
	case why != "":
		return "no insights: " + why
	}
	return "no insights: this server reports too little about its requests. Measure them with " + s.MeasuredBy() + " or llmtop bench"
}

// rowsOf returns the rows that the verdicts take without evidence and advice.
func rowsOf(a grid.Area, s *store.Snapshot, f *pane.Frame) (n int) {
	for _, v := range s.Verdicts {
		lines, _ := verdictLines(f, v, a.W, false)
		n += len(lines)
	}
	return n
}

// drawFailure fills the pane with the error and the log of a failed engine; false if the engine has not failed.
func drawFailure(a grid.Area, s *store.Snapshot, f *pane.Frame) bool {
	if s.Engine.State != event.EngineFailed {
		return false
	}
	y := a.Wrapped(0, 0, pane.Bad, string(f.Skin.Glyphs.Failed)+" engine failed: "+sanitize.Line(s.Engine.Reason))
	for i := len(s.Log) - 1; i >= 0 && y < a.H; i-- {
		a.Elide(0, y, a.W, pane.Dim, sanitize.Line(s.Log[i].Text), f.Skin.Glyphs.Ellipsis)
		y++
	}
	return true
}

// verdictLines wraps a verdict. The full form adds evidence and advice from line plain on.
func verdictLines(f *pane.Frame, v verdict.Verdict, w int, full bool) (lines []string, plain int) {
	lines = grid.Wrap(nil, sanitize.Line(v.Text), w-2)
	plain = len(lines)
	if full && v.Evidence != "" {
		lines = grid.Wrap(lines, sanitize.Line(v.Evidence), w-2)
	}
	if full && v.Try != "" {
		lines = grid.Wrap(lines, string(f.Skin.Glyphs.Arrow)+" "+sanitize.Line(v.Try), w-2)
	}
	return lines, plain
}

// drawVerdict draws one verdict from row y on and returns the rows used, 0 if it does not fit whole.
func drawVerdict(a grid.Area, f *pane.Frame, y int, v verdict.Verdict, full bool) int {
	mark, st := severity(f, v.Severity)
	lines, plain := verdictLines(f, v, a.W, full)
	if y+len(lines) > a.H && y > 0 {
		return 0
	}
	a.Cell(0, y, st.With(grid.Bold), mark)
	for i, line := range lines {
		use := pane.Plain
		if i >= plain {
			use = pane.Dim
		} else if v.Severity >= verdict.Watch {
			use = pane.Data
		}
		a.Text(2, y+i, use, line)
	}
	return len(lines)
}

// zoomInsights draws every verdict with evidence and advice, and the engine log below.
func zoomInsights(a grid.Area, s *store.Snapshot, f *pane.Frame, scroll *int) {
	in := f.Box(a, "measurement, limit, what to try")
	if drawFailure(in, s, f) {
		return
	}
	drawNotReported(a, s, f)
	*scroll = min(*scroll, max(len(s.Verdicts)-1, 0))
	y := chrome.DrawWarnings(in, s, f)
	for _, v := range s.Verdicts[*scroll:] {
		n := drawVerdict(in, f, y, v, true)
		if n == 0 {
			f.Foot(a, pane.Dim, "more below")
			return
		}
		y += n + 1
	}
	if len(s.Verdicts) == 0 {
		in.Text(0, y, pane.Dim, noVerdictReason(s))
		y += 2
	}
	pane.DrawLog(in.Sub(0, y, in.W, in.H-y), s, f)
}
