package latency

import (
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/theme"
	"github.com/llmtop/llmtop/ui/grid"
	"github.com/llmtop/llmtop/ui/pane"
	"github.com/llmtop/llmtop/ui/view/request"
)

// mostGaps bounds the gaps of a histogram, taken from the newest requests.
const mostGaps = 8192

// ttftHistogram draws the TTFT distribution of the warm requests of the window.
func ttftHistogram(a grid.Area, s *store.Snapshot, f *pane.Frame) {
	var far outliers
	values := ttfts(s, f.Window, false, &far)
	lo, hi := logRange(values)
	title := []string{keptOf(len(values), s.Latency.Of[store.TTFT][f.Window].Count, "warm request")}
	logHistogram(a, f, "TTFT", title, values, lo, hi, &far, targetStyle(s.Latency.Targets.TTFT))
}

// targetStyle returns a style function that highlights times above a target.
func targetStyle(target time.Duration) func(ns float64) grid.Style {
	return func(ns float64) grid.Style {
		if target > 0 && ns > float64(target) {
			return pane.Bad
		}
		return grid.Fg(theme.SeriesDecode)
	}
}

// itlHistogram draws the distribution of the most recent gaps between tokens.
func itlHistogram(a grid.Area, s *store.Snapshot, f *pane.Frame) {
	values := make([]float64, 0, mostGaps)
	median := float64(s.Latency.Of[store.ITL][metric.Session].P50)
	var far outliers
	for _, r := range s.Requests {
		from := max(len(r.Gaps)-mostGaps+len(values), 0)
		_, last, _ := request.Received(r)
		for i, g := range r.Gaps[from:] {
			if g <= 0 {
				continue
			}
			values = append(values, float64(g))
			if float64(g) >= pane.StallGap*median && median > 0 {
				far.add(outlier{float64(g), r.ID, last - len(r.Gaps) + 1 + from + i})
			}
		}
		if len(values) >= mostGaps {
			break
		}
	}
	lo, hi := logRange(values)
	title := []string{metric.Count(float64(len(values))) + " most recent gaps"}
	logHistogram(a, f, "ITL", title, values, lo, hi, &far, func(ns float64) grid.Style { return pane.GapStyle(ns / max(median, 1)) })
}

// logRange returns an axis range in ns that holds all values and spans at least one octave.
func logRange(lists ...[]float64) (lo, hi float64) {
	lo, hi = math.Inf(1), 0.0
	for _, values := range lists {
		for _, v := range values {
			lo, hi = min(lo, v), max(hi, v)
		}
	}
	lo, hi = lo/1.05, hi*1.05
	if hi < 2*lo {
		mid := math.Sqrt(lo * hi)
		lo, hi = mid/math.Sqrt2, mid*math.Sqrt2
	}
	return lo, hi
}

// logHistogram draws times in ns as columns on a logarithmic axis from lo to hi, under a title and those of the texts on
// them that fit. style colours a column by its time, so that values beyond a limit stand out even if there is only one.
func logHistogram(a grid.Area, f *pane.Frame, name string, what []string, values []float64, lo, hi float64, far *outliers, style func(ns float64) grid.Style) {
	if a.H < 3 || a.W < 20 {
		return
	}
	l := a.Line(0, 0)
	l.Put(pane.Heading, name).Gap(2)
	for _, words := range append(what, "; log scale") {
		l.Fit(grid.Piece{Style: pane.Dim, Words: words})
	}
	if len(values) == 0 {
		return
	}
	plot := a.Sub(0, 1, a.W, a.H-2)
	scale := float64(plot.W) / math.Log(hi/lo)
	bins, most := make([]int, plot.W), 0
	for _, v := range values {
		i := min(max(int(math.Log(v/lo)*scale), 0), plot.W-1)
		bins[i]++
		most = max(most, bins[i])
	}
	for x, n := range bins {
		if n > 0 {
			at := lo * math.Exp((float64(x)+0.5)/scale)
			plot.Column(x, plot.H-1, plot.H, float64(n)/float64(most), style(at), f.Skin.Glyphs)
		}
	}
	l.Fit(grid.Piece{Style: pane.Dim, Words: ", peak " + metric.Count(float64(most))})
	tops := bins // row of the top of each column
	for x, n := range bins {
		if tops[x] = plot.H; n > 0 {
			tops[x] -= n*plot.H/most + 1
		}
	}
	far.draw(plot, f.Skin.Glyphs, tops, func(ns float64) int { return min(max(int(math.Log(ns/lo)*scale), 0), plot.W-1) })
	drawLogAxis(a.Sub(0, a.H-1, a.W, 1), lo, hi)
}

// outlier is a time far above the typical one. token is -1 for the time of a whole request.
type outlier struct {
	ns      float64
	request event.RequestID
	token   int
}

// outliers holds the longest times in descending order, at most one per request.
type outliers struct {
	list [3]outlier
	n    int
}

// add inserts a time if it is among the longest.
func (o *outliers) add(v outlier) {
	for i := range o.n {
		if o.list[i].request == v.request {
			if o.list[i].ns >= v.ns {
				return
			}
			copy(o.list[i:], o.list[i+1:o.n])
			o.n--
			break
		}
	}
	i := o.n
	for i > 0 && o.list[i-1].ns < v.ns {
		i--
	}
	if i == len(o.list) {
		return
	}
	copy(o.list[i+1:], o.list[i:])
	o.list[i] = v
	o.n = min(o.n+1, len(o.list))
}

// draw labels the outliers above their columns, one per row where there is room: left or right of the line to the column,
// where no other column and no line is. tops holds the top row of each column, place returns the column of a time.
func (o *outliers) draw(plot grid.Area, gl *theme.Glyphs, tops []int, place func(ns float64) int) {
	y, line := 0, plot.W // the previous line
	for _, v := range o.list[:o.n] {
		x := place(v.ns)
		words := "#" + strconv.Itoa(int(v.request))
		if v.token >= 0 {
			words += " token " + strconv.Itoa(v.token)
		}
		words += " " + metric.Duration(int64(v.ns))
		w := grid.Width(words)
		free := func(from, to int) bool {
			return from >= 0 && to <= line && !slices.ContainsFunc(tops[from:to], func(top int) bool { return top <= y })
		}
		if y >= tops[x] || y >= plot.H-1 {
			continue
		}
		switch {
		case free(x-1-w, x-1):
			plot.Text(x-1-w, y, pane.Bad, words)
		case free(x+2, x+2+w):
			plot.Text(x+2, y, pane.Bad, words)
		default:
			continue
		}
		for row := y; row < tops[x]; row++ {
			plot.Cell(x, row, grid.Fg(theme.Border), gl.Vertical)
		}
		y, line = y+1, x
	}
}

// drawLogAxis labels a logarithmic axis where there is room: 1, 2 and 5 of every power of ten, or equal steps if it has
// fewer than three of them.
func drawLogAxis(a grid.Area, lo, hi float64) {
	var values []float64
	for p := math.Pow(10, math.Floor(math.Log10(lo))); p <= hi; p *= 10 {
		for _, m := range [...]float64{1, 2, 5} {
			if v := p * m; v >= lo && v <= hi {
				values = append(values, v)
			}
		}
	}
	step := 0.0
	if len(values) < 3 {
		values, step = nil, axisStep(hi-lo)
		for v := math.Ceil(lo/step) * step; v <= hi; v += step {
			values = append(values, v)
		}
	}
	scale, free := float64(a.W)/math.Log(hi/lo), 0
	for _, v := range values {
		x, words := int(math.Log(v/lo)*scale), pane.AxisLabel(pane.TimeAxis, hi)(v, step)
		if x >= free && x+1+grid.Width(words) <= a.W {
			a.Cell(x, 0, grid.Fg(theme.Border), '|')
			a.Text(x+1, 0, pane.Dim, words)
			free = x + grid.Width(words) + 2
		}
	}
}

// axisStep returns the longest round step with which a range has at least three labels.
func axisStep(span float64) float64 {
	p := math.Pow(10, math.Floor(math.Log10(span/3)))
	for _, m := range [...]float64{5, 2} {
		if p*m <= span/3 {
			return p * m
		}
	}
	return p
}
