package overview

import (
	"cmp"
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
)

// The breakdown draws small multiples: a band per property in which requests differ, a cell per value of it, and in each
// cell a column per request, on a scale that all cells of a band share.

// maxBroken bounds the requests of the breakdown: the newest ones.
const maxBroken = 256

// The smallest size of a cell, and the smallest height of a band in the default layout.
const (
	cellWidth  = 24
	cellHeight = 5
	bandHeight = 9

	manyRequests = 8 // of a cell, below which all bands are as low as they can be
	maxColumn    = 4 // widest column of a request, with the gap after it
)

// properties are what requests may differ in, the most telling first.
var properties = [...]struct {
	by, none string // none: the name of the empty value
	of       func(*store.Request) (value string, ok bool)
}{
	{"model", "loaded model", func(r *store.Request) (string, bool) { return r.Model, true }},
	{"slot", "", func(r *store.Request) (string, bool) {
		if r.Slot < 0 { // every request of an engine that is not polled: no text for nothing
			return "", false
		}
		return "slot " + strconv.Itoa(r.Slot), true
	}},
	{"kind of prompt", "other", func(r *store.Request) (string, bool) { return r.Label, true }},
	{"group", "default", func(r *store.Request) (string, bool) { return r.Group, true }},
}

// band is the requests by one property.
type band struct {
	by    string
	cells []cell
}

// cell is the requests with one value of a property, oldest first.
type cell struct {
	name     string
	requests []*store.Request
}

// bands divides the newest requests by each property in which they differ. The values are in order: cells keep their place.
func bands(s *store.Snapshot) (out []band) {
	requests := s.Requests[:min(len(s.Requests), maxBroken)]
	for _, p := range properties {
		b := band{by: p.by}
		for i := len(requests) - 1; i >= 0; i-- {
			r := requests[i]
			value, ok := p.of(r)
			if !ok || s.Excluded(r) || value == "" && r.MissedStart { // what it said of itself is not known
				continue
			}
			value = cmp.Or(value, p.none)
			at := slices.IndexFunc(b.cells, func(c cell) bool { return c.name == value })
			if at < 0 {
				at = len(b.cells)
				b.cells = append(b.cells, cell{name: value})
			}
			b.cells[at].requests = append(b.cells[at].requests, r)
		}
		if len(b.cells) < 2 {
			continue
		}
		slices.SortFunc(b.cells, func(x, y cell) int { // slot 10 after slot 9
			if p.by == "slot" {
				return cmp.Compare(x.requests[0].Slot, y.requests[0].Slot)
			}
			return cmp.Compare(x.name, y.name)
		})
		out = append(out, b)
	}
	return out
}

// measure is a number of requests that cells show.
type measure struct {
	name   string
	of     func(*store.Request) event.Reading
	format func(float64) string
	unit   string
	role   theme.Role
}

var measures = [...]measure{
	{"TTFT", warmTTFT, func(v float64) string { return metric.Duration(int64(v * 1e9)) }, "", theme.SeriesPrefill},
	{"decode", func(r *store.Request) event.Reading { return r.DecodeRate }, metric.Rate, " tok/s", theme.SeriesDecode},
}

// warmTTFT returns the TTFT of a request without a model load, as the distributions of TTFT count it.
func warmTTFT(r *store.Request) event.Reading {
	if r.Cold {
		return event.Absent(event.NotYet)
	}
	return r.TTFT
}

// drawBreakdown draws as many bands as fit.
func drawBreakdown(a grid.Area, s *store.Snapshot, f *pane.Frame) {
	all := bands(s)
	if len(all) == 0 {
		in := f.Box(a, "requests by model, slot, kind of prompt and group")
		if !f.Waiting(in, s) {
			f.Absent(in, pane.Dim, "no differences yet: all requests have the same model and kind of prompt", "")
		}
		return
	}
	all = all[:min(len(all), max((a.H-2)/cellHeight, 1))]
	titles := "by " + all[0].by
	for _, b := range all[1:] {
		titles += ", by " + b.by
	}
	in := f.Box(a, titles, "by "+all[0].by)
	f.Foot(a, pane.Dim, pane.FirstFitting(a.W-6, "1 column = 1 request, the newest "+strconv.Itoa(maxBroken)+" at most; the cells of a row share their scales", "1 column = 1 request"))
	y := 0
	for i := range all {
		h := in.H*(i+1)/len(all) - y
		drawBand(in.Sub(0, y, in.W, h), f, &all[i])
		y += h
	}
}

// drawBand draws the cells of a band beside each other: if not all fit, those with most requests and how many more.
func drawBand(a grid.Area, f *pane.Frame, b *band) {
	n := min(len(b.cells), max(a.W/cellWidth, 1))
	shown := b.cells
	if hidden := len(b.cells) - n; hidden > 0 {
		few := slices.Clone(b.cells)
		slices.SortStableFunc(few, func(x, y cell) int { return cmp.Compare(len(y.requests), len(x.requests)) })
		few = few[:n]
		shown = slices.DeleteFunc(slices.Clone(b.cells), func(x cell) bool {
			return !slices.ContainsFunc(few, func(y cell) bool { return x.name == y.name })
		})
		words := strconv.Itoa(hidden) + " more"
		a.Right(a.W, 0, pane.Dim, words)
		a = a.Sub(0, 0, a.W-grid.Width(words)-1, a.H)
	}
	for i := range shown {
		x := a.W * i / n
		drawCell(a.Sub(x, 0, a.W*(i+1)/n-x-2, a.H), f, shown, i)
	}
}

// drawCell draws the i-th of some cells: its name and, per measure, the median and a column per request.
func drawCell(a grid.Area, f *pane.Frame, cells []cell, i int) {
	count := pane.CountOf(uint64(len(cells[i].requests)), "request", "requests")
	if grid.Width(count)+8 > a.W {
		count = metric.Count(float64(len(cells[i].requests)))
	}
	left := a.Right(a.W, 0, pane.Dim, count)
	a.Elide(0, 0, left-1, pane.Loud, sanitize.Line(cells[i].name), f.Skin.Glyphs.Ellipsis)
	var tops [len(measures)]float64 // the scales; 0: no cell has a value, which takes a row without columns
	drawn := 0
	for k := range measures {
		for _, other := range cells {
			tops[k] = max(tops[k], slices.Max(append(measures[k].known(other.requests), 0)))
		}
		if tops[k] > 0 {
			drawn++
		}
	}
	y, room := 1, a.H-1-(len(measures)-drawn)
	for k := range measures {
		h := 1
		if tops[k] > 0 {
			h = room / drawn
			room, drawn = room-h, drawn-1
		}
		measures[k].draw(a.Sub(0, y, a.W, h), f, cells[i].requests, grid.NiceTop(tops[k]))
		y += h
	}
}

// draw draws a measure of some requests; a full column is top.
func (m *measure) draw(a grid.Area, f *pane.Frame, requests []*store.Request, top float64) {
	known := m.known(requests)
	l := a.Line(0, 0)
	l.Put(grid.Fg(m.role), m.name)
	if len(known) == 0 {
		l.Put(pane.Dim, " "+m.of(requests[len(requests)-1]).Absence())
		return
	}
	slices.Sort(known)
	l.Put(pane.Dim, " p50 ").Put(pane.Data, m.format(known[(len(known)-1)/2])).Put(pane.Dim, m.unit)
	if words := "to " + m.format(top); l.Room() > grid.Width(words) {
		a.Right(a.W, 0, pane.Dim, words)
	}
	wide := max(min(a.W/len(requests), maxColumn), 1) // cells per request
	n := min(len(requests), a.W)
	at := func(k int) float64 {
		if v := m.of(requests[len(requests)-n+k/wide]); v.OK() && (wide == 1 || k%wide < wide-1) {
			return v.V
		}
		return math.NaN()
	}
	a.Spark(0, a.H-1, a.W, a.H-1, n*wide, at, top, m.role, f.Skin)
}

// known returns the values that there are.
func (m *measure) known(requests []*store.Request) (out []float64) {
	for _, r := range requests {
		if v := m.of(r); v.OK() {
			out = append(out, v.V)
		}
	}
	return out
}
