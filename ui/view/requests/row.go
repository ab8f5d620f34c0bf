package requests

import (
	"math"
	"slices"
	"strconv"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/theme"
	"github.com/llmtop/llmtop/ui/grid"
	"github.com/llmtop/llmtop/ui/pane"
	"github.com/llmtop/llmtop/ui/sanitize"
	"github.com/llmtop/llmtop/ui/table"
)

// requestRow draws one request.
func requestRow(a grid.Area, s *store.Snapshot, f *pane.Frame, cols []requestColumn, bar, strip int, r *store.Request, top float64) {
	x := pane.MarkWidth
	for _, col := range cols {
		requestCell(columnAt(col, a, x, 0, 1), s, f, col.Field, r)
		x += col.W
	}
	if bar > 0 && r.TTFT.OK() && top > 0 {
		at := a.Sub(x+1, 0, bar-2, 1)
		pane.DrawStack(at, f, 0, r, top)
		if r.TTFT.V > top {
			at.Cell(at.W-1, 0, pane.Data.With(grid.Bold), f.Skin.Glyphs.Cut)
		}
	}
	if strip > 0 {
		gapStrip(a.Sub(x+1+bar, 0, strip-1, 1), f, r)
	}
}

// barTop returns the scale of the bars in s: the longest TTFT shown, at most three times the median. Longer bars are
// cut.
func barTop(shown []*store.Request) float64 {
	var all [256]float64
	ttfts := all[:0]
	for _, r := range shown {
		if r.TTFT.OK() {
			ttfts = append(ttfts, r.TTFT.V)
		}
	}
	if len(ttfts) == 0 {
		return 0
	}
	slices.Sort(ttfts)
	return min(ttfts[len(ttfts)-1], 3*ttfts[len(ttfts)/2])
}

// gapStrip draws the last gaps of a request in one row.
func gapStrip(a grid.Area, f *pane.Frame, r *store.Request) {
	n := min(len(r.Gaps), a.W)
	median := float64(r.ITL.P50)
	if n == 0 || median <= 0 {
		return
	}
	for i, gap := range r.Gaps[len(r.Gaps)-n:] {
		ratio := float64(gap) / median
		a.Column(i, 0, 1, ratio/pane.StripTop, pane.GapStyle(ratio), f.Skin.Glyphs)
	}
}

// requestCell writes one value.
func requestCell(a grid.Area, s *store.Snapshot, f *pane.Frame, field table.Field, r *store.Request) {
	gl := f.Skin.Glyphs
	switch {
	case field == table.ID:
		a.Text(0, 0, pane.Data, "#"+strconv.Itoa(int(r.ID)))
		return
	case field == table.State:
		st := pane.StateStyle(r.State)
		a.Cell(0, 0, st, stateMark(f, r.State))
		word := r.Status()
		if r.Probe { // the mark shows how it ended
			word = "probe"
		}
		a.Text(2, 0, st, word)
		return
	case field.Unit() == metric.Word:
		a.Elide(0, 0, a.W, pane.Plain, sanitize.Line(field.Text(r)), gl.Ellipsis)
		return
	case field == table.TTFT:
		ttftCell(a, f, r, s.Now)
		return
	}
	v := field.Value(r, s.Now)
	_, missed := field.Target(r, s.Now)
	if !v.OK() {
		if missed { // running for longer than the target
			a.Right(a.W, 0, pane.Bad, ">"+metric.Duration(int64(s.Now-r.Enqueued)))
			return
		}
		a.Right(a.W, 0, pane.Dim, "-")
		return
	}
	st := pane.Plain
	switch {
	case missed:
		a.Right(a.W, 0, pane.Bad.With(grid.Bold), string(gl.No)+formatField(field, v.V))
		return
	case v.V == 0:
		st = pane.Dim
	case field == table.Stalls:
		st = pane.Watch
	case field == table.TPOT || field == table.Rate:
		st = pane.Data
	}
	a.Right(a.W, 0, st, pane.AtLeast(formatField(field, v.V), field == table.Generated && r.GeneratedAtLeast()))
}

// formatField formats a number of a column.
func formatField(f table.Field, v float64) string {
	switch f.Unit() {
	case "s":
		return metric.Seconds(v)
	case "{token}/s":
		return metric.Rate(v)
	}
	return metric.Count(v)
}

// stateMark returns a glyph per state, so that no state depends on colour alone.
func stateMark(f *pane.Frame, st event.State) rune {
	gl := f.Skin.Glyphs
	switch st {
	case event.StateQueued:
		return gl.Idle
	case event.StateDispatched:
		return gl.Live
	case event.StateFinished:
		return gl.Good
	case event.StateFailed:
		return gl.Failed
	}
	return gl.Cut
}

// ttftCell writes TTFT and whether it met its target. For a request without a first token it writes the time since
// enqueue once that exceeds the target.
func ttftCell(a grid.Area, f *pane.Frame, r *store.Request, now event.Time) {
	gl := f.Skin.Glyphs
	_, missed := table.TTFT.Target(r, now)
	end := a.W - markOf(table.TTFT)
	switch {
	case !r.TTFT.OK() && missed:
		a.Right(end, 0, pane.Bad, ">"+metric.Duration(int64(now-r.Enqueued)))
	case !r.TTFT.OK():
		a.Right(end, 0, pane.Dim, "-")
		return
	case missed:
		a.Right(end, 0, pane.Bad.With(grid.Bold), metric.Seconds(r.TTFT.V))
	default:
		a.Right(end, 0, pane.Loud, metric.Seconds(r.TTFT.V))
	}
	switch {
	case missed:
		a.Cell(a.W-1, 0, pane.Bad, gl.No)
	case r.Cold:
		a.Cell(a.W-1, 0, pane.Dim, gl.Cold)
	case r.Targets.TTFT > 0:
		a.Cell(a.W-1, 0, pane.Good, gl.Yes)
	}
}

// requestSums draws a rule with the range of rows shown, and sums and percentiles below.
func requestSums(a grid.Area, f *pane.Frame, cols []requestColumn, t *View, targets store.Targets) {
	gl, l := f.Skin.Glyphs, t.List
	a.Fill(0, 0, a.W, grid.Fg(theme.Border), gl.Horizontal)
	a.Right(a.W, 0, pane.Dim, t.Range(len(l.Rows)))
	sums := &l.Sums
	x := pane.MarkWidth
	for _, col := range cols {
		cell := columnAt(col, a, x, 1, a.H-1)
		end := cell.W - markOf(col.Field)
		switch field := col.Field; {
		case sums.Counted == 0 && len(l.Rows) > 0: // all are probes
		case field == table.ID:
			for y, word := range []string{"sum", "p50", "p99"}[:cell.H] {
				cell.Text(0, y, pane.Dim, word)
			}
		case field == table.Prompt:
			cell.Right(end, 0, pane.Loud, metric.Count(float64(sums.Prompt)))
		case field == table.Cached:
			if sums.Cached.OK() {
				cell.Right(end, 0, pane.Loud, metric.Count(sums.Cached.V))
			}
		case field == table.Generated:
			cell.Right(end, 0, pane.Loud, pane.AtLeast(metric.Count(float64(sums.Generated)), sums.GeneratedAtLeast))
		default:
			for y, v := range []float64{math.NaN(), sums.P50[field], sums.P99[field]}[:cell.H] {
				if !math.IsNaN(v) {
					cell.Right(end, y, pane.Data, formatField(field, v))
				}
			}
		}
		x += col.W
	}
	requestStates(a.Sub(0, 0, a.W-20, 1), f, sums, len(l.Rows)-sums.Counted, targets)
}

// requestStates writes into the rule the number of rows per state, of missed targets and of probes.
func requestStates(a grid.Area, f *pane.Frame, sums *table.Sums, probes int, targets store.Targets) {
	l := a.Line(pane.MarkWidth-1, 0)
	l.Put(pane.Dim, " ")
	for _, st := range [...]event.State{event.StateDispatched, event.StateQueued, event.StateFinished, event.StateCancelled, event.StateFailed, event.StateUnseen} {
		word := st.String()
		switch {
		case st == event.StateQueued && sums.AnyQueue:
			word = store.Waiting
		case st == event.StateUnseen:
			word = "end unseen"
		}
		if n := sums.States[st]; n > 0 {
			l.Fit(grid.Piece{Style: pane.StateStyle(st), Words: strconv.Itoa(n)}, grid.Piece{Style: pane.Dim, Words: " " + word + "  "})
		}
	}
	if sums.Missed > 0 {
		words := " missed the TTFT target "
		if targets.BeyondTTFT() {
			words = " missed a target "
		}
		l.Fit(grid.Piece{Style: pane.Bad, Words: strconv.Itoa(sums.Missed)}, grid.Piece{Style: pane.Dim, Words: words})
	}
	if probes > 0 {
		l.Fit(grid.Piece{Style: pane.Dim, Words: "probes (not in sums): " + strconv.Itoa(probes) + " "})
	}
}
