package panes

import (
	"math"
	"strconv"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/theme"
	"github.com/llmtop/llmtop/ui/grid"
	"github.com/llmtop/llmtop/ui/sanitize"
)

// nameWidth and valueWidth are the widths of left-aligned names and right-aligned values in panes that list numbers.
const (
	nameWidth  = 9
	valueWidth = 7
)

// rowWriter writes named values one below another until the area is full.
type rowWriter struct {
	a grid.Area
	y int
}

// next writes a name and returns the area to its right; false if the area is full.
func (r *rowWriter) next(name string) (grid.Area, bool) {
	if r.y >= r.a.H {
		return grid.Area{}, false
	}
	r.a.Text(0, r.y, dim, name)
	rest := r.a.Sub(nameWidth, r.y, r.a.W-nameWidth, 1)
	r.y++
	return rest, true
}

// putReading writes a reading with its unit, or why it is absent, and returns the next column.
func putReading(a grid.Area, r event.Reading, f func(float64) string, unit string, st grid.Style) int {
	if !r.OK() {
		return a.Text(1, 0, dim, r.Origin.String()) + 2
	}
	a.Right(valueWidth, 0, st, f(r.V))
	return valueWidth + 1 + a.Text(valueWidth+1, 0, dim, unit) + 1
}

func drawThroughput(a grid.Area, s *store.Snapshot, c *Ctx) {
	in := c.frame(a, "tokens/s")
	if s.Aggregates == nil && s.Counts.Finished+uint64(s.Counts.Running+s.Counts.Queued) == 0 && len(s.Requests) == 0 {
		if !c.waiting(in, s) {
			c.absent(in, dim, "no request yet", c.Suggest)
		}
		return
	}
	r := rowWriter{a: in}
	drawRates(&r, s, c)
	drawRequests(&r, s)
	drawKV(&r, s, c)
	drawBandwidth(&r, s, c)
	extraRows(&r, s, c)
	drawTotals(&r, s)
	drawGroups(&r, s)
	pts := s.Throughput.Series
	r.trend("tokens/s", len(pts), func(i int) float64 { return rateOrGap(&pts[i], float64(pts[i].Generated)) }, 0, theme.SeriesDecode, theme.AreaDecode, c)
}

// trend fills the remaining rows, if there are enough, with one series, one column per second. top is the scale; 0 fits
// the values shown.
func (r *rowWriter) trend(name string, n int, at func(int) float64, top float64, line, area theme.Role, c *Ctx) {
	h := r.a.H - r.y - 1
	if h < 2 || n < 2 {
		return
	}
	n, first := min(n, r.a.W-nameWidth), max(n-(r.a.W-nameWidth), 0)
	shown := func(i int) float64 { return at(first + i) }
	if top == 0 {
		top = scaleTop(n, shown)
	}
	r.a.Text(0, r.a.H-1, dim, name)
	r.a.Text(0, r.y+1, dim, metric.Count(top))
	if top <= 1 {
		r.a.Fill(0, r.y+1, nameWidth, dim, ' ')
		r.a.Text(0, r.y+1, dim, metric.Percent(top))
	}
	r.a.Filled(nameWidth, r.a.H-1, r.a.W-nameWidth, h, n, shown, top, line, area, c.Skin.Glyphs)
}

// drawRates draws prefill, decode and total throughput with their trend over the last seconds.
func drawRates(r *rowWriter, s *store.Snapshot, c *Ctx) {
	t, pts := s.Throughput, s.Throughput.Series
	for i, row := range [...]struct {
		name string
		v    event.Reading
		role theme.Role
		at   func(int) float64
	}{
		{"decode", t.Decode, theme.SeriesDecode, func(i int) float64 { return rateOrGap(&pts[i], pts[i].Decode) }},
		{"prefill", t.Prefill, theme.SeriesPrefill, func(i int) float64 { return rateOrGap(&pts[i], pts[i].Prefill) }},
		{"TTPS", t.TTPS, theme.Title, func(i int) float64 { return rateOrGap(&pts[i], float64(pts[i].Generated)) }},
	} {
		a, ok := r.next(row.name)
		if !ok {
			return
		}
		st := loud
		if i > 0 {
			st = data
		}
		x := putReading(a, row.v, metric.Rate, "tok/s", st)
		n := min(len(pts), a.W-x)
		at := func(i int) float64 { return row.at(len(pts) - n + i) }
		a.Spark(x, 0, a.W-x, 1, n, at, scaleTop(n, at), row.role, c.Skin.Glyphs)
	}
}

// rateOrGap returns a value of one second, or NaN, a gap in a chart, if the engine reported nothing.
func rateOrGap(p *store.RatePoint, v float64) float64 {
	if p.Silent {
		return math.NaN()
	}
	return v
}

// scaleTop returns the scale of a series: a round number at or above all values.
func scaleTop(n int, at func(int) float64) float64 {
	top := 0.0
	for i := range n {
		if v := at(i); !math.IsNaN(v) {
			top = max(top, v)
		}
	}
	return grid.NiceTop(top)
}

func drawRequests(r *rowWriter, s *store.Snapshot) {
	a, ok := r.next("running")
	if !ok {
		return
	}
	t, running, queued := s.Throughput, runningCount(s), queuedCount(s)
	words := strconv.Itoa(t.Running)
	if t.Slots > 0 {
		words += "/" + strconv.Itoa(t.Slots)
	}
	x := valueWidth + 1
	if running.OK() {
		a.Right(valueWidth, 0, data, words)
	} else {
		x = a.Text(1, 0, dim, running.Origin.String()) + 2
	}
	l := a.Line(x, 0)
	l.Put(dim, "queued ")
	switch {
	case !queued.OK():
		l.Put(dim, firstFitting(l.Room(), queued.Origin.String(), "n/r"))
	case queued.V > 0:
		l.Put(watch, metric.Count(queued.V))
	default:
		l.Put(text, metric.Count(queued.V))
	}
	if t.BusyShare.OK() {
		l.Fit(grid.Piece{Style: dim, Words: "  busy "}, grid.Piece{Style: text, Words: metric.Percent(t.BusyShare.V)})
	}
}

func drawKV(r *rowWriter, s *store.Snapshot, c *Ctx) {
	a, ok := r.next("KV cache")
	if !ok {
		return
	}
	if !s.KV.Usage.OK() {
		a.Text(1, 0, dim, s.KV.Usage.Origin.String())
		return
	}
	a.Right(valueWidth, 0, data, metric.Percent(s.KV.Usage.V))
	cells := strconv.Itoa(int(s.KV.Used)) + "/" + strconv.Itoa(int(s.KV.Total))
	w := a.W - valueWidth - 1
	if w > len(cells)+8 && s.KV.Total > 0 {
		a.Right(a.W, 0, dim, cells)
		w -= len(cells) + 1
	}
	a.Bar(valueWidth+1, 0, w, s.KV.Usage.V, loadRole(s.KV.Usage.V), c.Skin.Colour(), c.Skin.Glyphs)
	if s.KV.Residency.Count == 0 {
		return
	}
	if a, ok := r.next("KV held"); ok {
		l := a.Line(1, 0)
		l.Put(dim, "p50 ").Put(text, metric.Duration(s.KV.Residency.P50))
		l.Fit(grid.Piece{Style: dim, Words: "  p99 "}, grid.Piece{Style: text, Words: metric.Duration(s.KV.Residency.P99)})
	}
}

// loadRole colours a utilisation by how close it is to 1.
func loadRole(share float64) theme.Role {
	switch {
	case share >= 0.9:
		return theme.Bad
	case share >= 0.75:
		return theme.Watch
	}
	return theme.SeriesPrefill
}

func drawBandwidth(r *rowWriter, s *store.Snapshot, c *Ctx) {
	t := s.Throughput
	if !t.Bandwidth.OK() {
		return
	}
	a, ok := r.next("bandwidth")
	if !ok {
		return
	}
	l := a.Line(1, 0)
	l.Put(data, metric.Bytes(t.Bandwidth.V)+"/s")
	if !t.CopyBandwidth.OK() {
		return
	}
	if l.Fit(grid.Piece{Style: dim, Words: " of "}, grid.Piece{Style: text, Words: metric.Bytes(t.CopyBandwidth.V) + "/s"}) {
		l.Fit(grid.Piece{Style: dim, Words: " measured"})
	}
}

func drawTotals(r *rowWriter, s *store.Snapshot) {
	a, ok := r.next("session")
	if !ok {
		return
	}
	n := s.Counts
	l := a.Line(1, 0)
	agg := s.Aggregates
	if agg == nil || agg.Generated.Origin != event.NotReported {
		l.Put(text, metric.Count(float64(n.GeneratedTokens))).Put(dim, " out ")
	}
	if agg == nil || agg.Prompt.Origin != event.NotReported {
		l.Put(text, metric.Count(float64(n.PromptTokens))).Put(dim, " in ")
	}
	if agg != nil && agg.Generated.Origin == event.NotReported && agg.Prompt.Origin == event.NotReported {
		l.Put(dim, event.NotReported.String())
	}
	for _, k := range []struct {
		n    uint64
		word string
		st   grid.Style
	}{{n.Finished, " done", text}, {n.Failed, " failed", bad}, {n.Cancelled, " cancelled", watch}} {
		if k.n > 0 {
			l.Fit(grid.Piece{Style: k.st, Words: " " + metric.Count(float64(k.n)) + k.word})
		}
	}
}

// drawGroups lists the request groups if there are several.
func drawGroups(r *rowWriter, s *store.Snapshot) {
	if len(s.Counts.Groups) < 2 {
		return
	}
	for _, g := range s.Counts.Groups {
		name := sanitize.Line(g.Name)
		if name == "" {
			name = "(default)"
		}
		a, ok := r.next("")
		if !ok {
			return
		}
		r.a.Elide(0, r.y-1, nameWidth, dim, name, '…')
		x := putReading(a, g.TPS, metric.Rate, "tok/s", text)
		a.Clip(x, 0, a.W-x, dim, countOf(uint64(g.Requests), "request", "requests"))
	}
}
