package panes

import (
	"math"
	"slices"
	"strconv"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/theme"
	"github.com/llmtop/llmtop/ui/grid"
	"github.com/llmtop/llmtop/ui/sanitize"
	"github.com/llmtop/llmtop/ui/table"
)

// requestRow draws one request.
func (c *Ctx) requestRow(a grid.Area, cols []requestColumn, r *store.Request, top float64, s *store.Snapshot) {
	x := markWidth
	for _, col := range cols {
		c.requestCell(columnAt(col, a, x, 0, 1), col.field, r, s)
		x += col.w
	}
	bar, strip := pictureWidths(a.W - x)
	if bar > 0 && r.TTFT.OK() && top > 0 {
		at := a.Sub(x+1, 0, bar-2, 1)
		c.stack(at, 0, r, top)
		if r.TTFT.V > top {
			at.Cell(at.W-1, 0, data.With(grid.Bold), c.Skin.Glyphs.Cut)
		}
	}
	if strip > 0 {
		c.gapStrip(a.Sub(x+1+bar, 0, strip-1, 1), r)
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
func (c *Ctx) gapStrip(a grid.Area, r *store.Request) {
	n := min(len(r.Gaps), a.W)
	median := float64(r.ITL.P50)
	if n == 0 || median <= 0 {
		return
	}
	for i, gap := range r.Gaps[len(r.Gaps)-n:] {
		ratio := float64(gap) / median
		a.Column(i, 0, 1, ratio/stripTop, gapStyle(ratio), c.Skin.Glyphs)
	}
}

// requestCell writes one value.
func (c *Ctx) requestCell(a grid.Area, f table.Field, r *store.Request, s *store.Snapshot) {
	gl := c.Skin.Glyphs
	switch {
	case f == table.ID:
		a.Text(0, 0, data, "#"+strconv.Itoa(int(r.ID)))
		return
	case f == table.State:
		st := stateStyle(r.State)
		a.Cell(0, 0, st, c.stateMark(r.State))
		word := r.State.String()
		if r.Probe { // the mark shows how it ended
			word = "probe"
		}
		a.Text(2, 0, st, word)
		return
	case f.Kind() == table.Word:
		a.Elide(0, 0, a.W, text, sanitize.Line(f.Text(r)), gl.Ellipsis)
		return
	case f == table.TTFT:
		c.ttftCell(a, r, s.Now)
		return
	}
	v := f.Value(r, s.Now)
	_, missed := f.Target(r, s.Now)
	if !v.OK() {
		if missed { // running for longer than the target
			a.Right(a.W, 0, bad, ">"+metric.Duration(int64(s.Now-r.Enqueued)))
			return
		}
		a.Right(a.W, 0, dim, "-")
		return
	}
	st := text
	switch {
	case missed:
		a.Right(a.W, 0, bad.With(grid.Bold), string(gl.No)+formatField(f, v.V))
		return
	case v.V == 0:
		st = dim
	case f == table.Stalls:
		st = watch
	case f == table.TPOT || f == table.Rate:
		st = data
	}
	a.Right(a.W, 0, st, formatField(f, v.V))
}

// formatField formats a number of a column.
func formatField(f table.Field, v float64) string {
	switch f.Kind() {
	case table.Time:
		return metric.Seconds(v)
	case table.Speed:
		return metric.Rate(v)
	}
	return metric.Count(v)
}

// stateMark returns a glyph per state, so that no state depends on colour alone.
func (c *Ctx) stateMark(st event.State) rune {
	gl := c.Skin.Glyphs
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
func (c *Ctx) ttftCell(a grid.Area, r *store.Request, now event.Time) {
	gl := c.Skin.Glyphs
	_, missed := table.TTFT.Target(r, now)
	end := a.W - markOf(table.TTFT)
	switch {
	case !r.TTFT.OK() && missed:
		a.Right(end, 0, bad, ">"+metric.Duration(int64(now-r.Enqueued)))
	case !r.TTFT.OK():
		a.Right(end, 0, dim, "-")
		return
	case missed:
		a.Right(end, 0, bad.With(grid.Bold), metric.Seconds(r.TTFT.V))
	default:
		a.Right(end, 0, loud, metric.Seconds(r.TTFT.V))
	}
	switch {
	case missed:
		a.Cell(a.W-1, 0, bad, gl.No)
	case r.Cold:
		a.Cell(a.W-1, 0, dim, gl.Cold)
	case r.Targets.TTFT > 0:
		a.Cell(a.W-1, 0, good, gl.Yes)
	}
}

// requestSums draws a rule with the range of rows shown, and sums and percentiles below.
func (c *Ctx) requestSums(a grid.Area, cols []requestColumn, t *RequestTable, shown int, targets store.Targets) {
	gl, l := c.Skin.Glyphs, t.List
	a.Fill(0, 0, a.W, grid.Fg(theme.Border), gl.Horizontal)
	if shown < len(l.Rows) {
		a.Right(a.W, 0, dim, " "+strconv.Itoa(t.First+1)+" to "+strconv.Itoa(t.First+shown)+" of "+strconv.Itoa(len(l.Rows))+" ")
	}
	sums := &l.Sums
	x := markWidth
	for _, col := range cols {
		cell := columnAt(col, a, x, 1, a.H-1)
		end := cell.W - markOf(col.field)
		switch f := col.field; {
		case sums.Counted == 0 && len(l.Rows) > 0: // all are probes
		case f == table.ID:
			for y, word := range []string{"sum", "p50", "p99"}[:cell.H] {
				cell.Text(0, y, dim, word)
			}
		case f == table.Prompt:
			cell.Right(end, 0, loud, metric.Count(float64(sums.Prompt)))
		case f == table.Cached:
			cell.Right(end, 0, loud, metric.Count(float64(sums.Cached)))
		case f == table.Generated:
			cell.Right(end, 0, loud, metric.Count(float64(sums.Generated)))
		default:
			for y, v := range []float64{math.NaN(), sums.P50[f], sums.P99[f]}[:cell.H] {
				if !math.IsNaN(v) {
					cell.Right(end, y, data, formatField(f, v))
				}
			}
		}
		x += col.w
	}
	c.requestStates(a.Sub(0, 0, a.W-20, 1), sums, len(l.Rows)-sums.Counted, targets)
}

// requestStates writes into the rule the number of rows per state, of missed targets and of probes.
func (c *Ctx) requestStates(a grid.Area, sums *table.Sums, probes int, targets store.Targets) {
	l := a.Line(markWidth-1, 0)
	l.Put(dim, " ")
	for _, st := range [...]event.State{event.StateDispatched, event.StateQueued, event.StateFinished, event.StateCancelled, event.StateFailed} {
		if n := sums.States[st]; n > 0 {
			l.Fit(grid.Piece{Style: stateStyle(st), Words: strconv.Itoa(n)}, grid.Piece{Style: dim, Words: " " + st.String() + "  "})
		}
	}
	if sums.Missed > 0 {
		words := " missed the TTFT target "
		if targets.BeyondTTFT() {
			words = " missed a target "
		}
		l.Fit(grid.Piece{Style: bad, Words: strconv.Itoa(sums.Missed)}, grid.Piece{Style: dim, Words: words})
	}
	if probes > 0 {
		l.Fit(grid.Piece{Style: dim, Words: "probes (not in sums): " + strconv.Itoa(probes) + " "})
	}
}
