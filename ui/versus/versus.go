// Package versus draws a comparison: the change of each metric with its interval, the TTFT components of both sides,
// and the change of each expert's share of picks.
package versus

import (
	"fmt"
	"math"
	"strings"

	"github.com/llmtop/llmtop/profiler/compare"
	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/theme"
	"github.com/llmtop/llmtop/ui/grid"
	"github.com/llmtop/llmtop/ui/sanitize"
)

var (
	text  = grid.Fg(theme.Text)
	dim   = grid.Fg(theme.Dim)
	data  = grid.Fg(theme.Data).With(grid.Bold)
	title = grid.Fg(theme.Title).With(grid.Bold)
)

// The minimum screen size; below it only the outcome is shown.
const minWidth, minHeight = 40, 8

// Draw draws a comparison on the whole screen. first is the index of the first visible metric. It returns how many
// metrics fit.
func Draw(g *grid.Grid, r *compare.Result, skin *theme.Skin, first int) (room int) {
	a := g.All()
	if a.W < minWidth || a.H < minHeight {
		a.Text(0, 0, text, r.Outcome.String())
		return 1
	}
	drawHead(a, r, skin)
	body := a.Sub(0, 2, a.W, a.H-3)
	lower := lowerHeight(body.H, r)
	metrics := body.Sub(0, 0, body.W, body.H-lower)
	room = drawMetrics(frame(metrics, "Metrics", "change against the base, 95 % interval", skin), r, skin, first)
	if lower > 0 {
		drawLower(body.Sub(0, metrics.H, body.W, lower), r, skin)
	}
	return room
}

// lowerHeight returns the height of the TTFT and expert boxes: the rows that they need, at most three fifths of h.
func lowerHeight(h int, r *compare.Result) int {
	need := max(2*len(r.Parts), len(r.Experts)+2)
	if need == 0 || h < 16 {
		return 0
	}
	return min(need+2, h*3/5)
}

func outcomeStyle(o compare.Outcome) grid.Style {
	switch o {
	case compare.NoWorse, compare.Better:
		return grid.Fg(theme.Good)
	case compare.Worse:
		return grid.Fg(theme.Bad)
	}
	return grid.Fg(theme.Watch)
}

// drawHead draws the outcome with the metric that decided, and what was compared.
func drawHead(a grid.Area, r *compare.Result, skin *theme.Skin) {
	l := a.Line(0, 0)
	l.Put(grid.Fg(theme.OnBadge).On(theme.Accent).With(grid.Bold), " llmtop compare ")
	l.Put(outcomeStyle(r.Outcome).With(grid.Bold), "  "+strings.ToUpper(r.Outcome.String()))
	a.Elide(l.X+2, 0, a.W-l.X-3, text, sanitize.Line(r.Summary), skin.Glyphs.Ellipsis)
	note := ""
	if n := len(r.Differences); n > 0 {
		note = "different: " + sanitize.Line(r.Differences[0].Name)
		if n > 1 {
			note += fmt.Sprintf(" and %d more", n-1)
		}
	}
	names := sanitize.Line(r.New) + " against " + sanitize.Line(r.Base)
	room := a.W - 4 - grid.Width(note)
	if room < 10 {
		room, note = a.W-2, ""
	}
	a.Elide(1, 1, room, text, names, skin.Glyphs.Ellipsis)
	a.Right(a.W-1, 1, grid.Fg(theme.Watch), note)
}

// frame draws a titled box and returns its inside.
func frame(a grid.Area, name, note string, skin *theme.Skin) grid.Area {
	a.Frame(grid.Fg(theme.Border), skin.Glyphs)
	l := a.Line(2, 0)
	l.Put(title, " "+name+" ")
	l.Fit(grid.Piece{Style: dim, Words: note + " "})
	return a.Inset(2, 1)
}

// The columns of the table of metrics, in cells.
const (
	pointWidth  = 24
	metricWidth = 10
	valueWidth  = 10
	changeWidth = 9
	stateWidth  = 12
)

func drawMetrics(a grid.Area, r *compare.Result, skin *theme.Skin, first int) (room int) {
	points := 0
	for i := range r.Rows {
		if r.Rows[i].Point != "" {
			points = pointWidth
		}
	}
	if a.W < 110 {
		points = min(points, 12)
	}
	plot := points + metricWidth + 2*valueWidth + changeWidth + stateWidth + 2
	span := scaleRange(r.Rows)
	head := a.Line(0, 0)
	head.Put(dim, "").Gap(points)
	a.Clip(points, 0, metricWidth, dim, "metric")
	a.Right(points+metricWidth+valueWidth, 0, dim, "base")
	a.Right(points+metricWidth+2*valueWidth, 0, dim, "new")
	a.Right(points+metricWidth+2*valueWidth+changeWidth, 0, dim, "change")
	drawScale(a, plot, span, skin)
	room = max(a.H-1, 0)
	for i, row := range r.Rows[min(first, len(r.Rows)):] {
		if i >= room {
			break
		}
		drawRow(a, i+1, points, plot, span, &row, skin)
	}
	drawNotes(a.Sub(0, len(r.Rows)-first+2, a.W, a.H-(len(r.Rows)-first+2)), r.Notes)
	return room
}

// drawNotes draws warnings, and what to do if the outcome is inconclusive, as far as they fit.
func drawNotes(a grid.Area, notes []string) {
	var lines []string
	for _, note := range notes {
		lines = grid.Wrap(lines, sanitize.Line(note), a.W)
	}
	for y, line := range lines[:max(min(len(lines), a.H), 0)] {
		a.Text(0, y, dim, line)
	}
}

// scaleRange returns the change at the ends of the scale, 0.1 to 1.
func scaleRange(rows []compare.Row) float64 {
	span := 0.1
	for i := range rows {
		for _, v := range []float64{rows[i].Low, rows[i].High, rows[i].Change} {
			if !math.IsInf(v, 0) && v > -1 {
				span = max(span, math.Abs(v))
			}
		}
	}
	return min(span, 1)
}

// column returns the cell of a change on a scale of w cells.
func column(v, span float64, w int) int {
	at := (v/span + 1) / 2 * float64(w-1)
	return min(max(int(math.Round(at)), 0), w-1)
}

func drawScale(a grid.Area, x int, span float64, skin *theme.Skin) {
	w := a.W - x
	if w < 20 {
		return
	}
	s := a.Sub(x, 0, w, 1)
	s.Text(0, 0, dim, fmt.Sprintf("-%.0f %%", 100*span))
	s.Text(w/2-2, 0, dim, "0 %")
	s.Right(w, 0, dim, fmt.Sprintf("+%.0f %%", 100*span))
}

func drawRow(a grid.Area, y, points, x int, span float64, row *compare.Row, skin *theme.Skin) {
	st := outcomeStyle(row.Outcome)
	name := text
	if !row.Gate {
		st, name = dim, dim
	}
	gl := skin.Glyphs
	if points > 0 {
		a.Elide(0, y, points-1, dim, sanitize.Line(row.Point), gl.Ellipsis)
	}
	a.Clip(points, y, metricWidth, name, row.Metric)
	a.Right(points+metricWidth+valueWidth, y, text, row.Format(row.Base))
	a.Right(points+metricWidth+2*valueWidth, y, data, row.Format(row.New))
	a.Right(points+metricWidth+2*valueWidth+changeWidth, y, st, change(row.Change))
	a.Text(points+metricWidth+2*valueWidth+changeWidth+1, y, st, row.Outcome.String())
	w := a.W - x
	if w < 20 {
		return
	}
	s := a.Sub(x, y, w, 1)
	if math.IsNaN(row.Change) || math.IsInf(row.High, 1) {
		s.Elide(0, 0, w, dim, sanitize.Line(row.Why), gl.Ellipsis)
		return
	}
	from, to := column(-row.Threshold, span, w), column(row.Threshold, span, w)
	s.Fill(from, 0, to-from+1, grid.Fg(theme.Track), gl.Track)
	s.Cell(column(0, span, w), 0, dim, gl.Target)
	low, high := column(row.Low, span, w), column(row.High, span, w)
	s.Fill(low, 0, high-low+1, st, gl.Thick)
	s.Cell(column(row.Change, span, w), 0, st.With(grid.Bold), gl.Live)
}

// change formats a relative change in per cent, or as a factor from 10 on.
func change(v float64) string {
	switch {
	case math.IsNaN(v):
		return "no data"
	case v >= 9.995:
		return fmt.Sprintf("x %.0f", v+1)
	}
	return metric.PercentChange(v)
}

// drawLower draws TTFT on the left and experts on the right, or only the one that has data.
func drawLower(a grid.Area, r *compare.Result, skin *theme.Skin) {
	left := a.W
	if len(r.Experts) > 0 && len(r.Parts) > 0 {
		left = a.W / 2
	}
	if len(r.Parts) > 0 {
		drawParts(frame(a.Sub(0, 0, left, a.H), "TTFT", "mean of warm requests, base above new", skin), r, skin)
	} else {
		left = 0
	}
	if len(r.Experts) > 0 && left < a.W {
		drawDrift(frame(a.Sub(left, 0, a.W-left, a.H), "Experts", "change of each expert's share of picks", skin), r, skin)
	}
}
