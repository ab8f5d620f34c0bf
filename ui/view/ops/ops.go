// Package ops is the Operations view: the time of each kind of operation in each layer.
package ops

import (
	"cmp"
	"maps"
	"slices"
	"strconv"

	"github.com/llmtop/llmtop/ui/view"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/theme"
	"github.com/llmtop/llmtop/ui/grid"
	"github.com/llmtop/llmtop/ui/pane"
	"github.com/llmtop/llmtop/ui/sanitize"
)

// opsTable holds the times of operations for display: kinds by descending time, layers in order, preceded by operations
// outside of all layers.
type opsTable struct {
	passes int64
	kinds  []opKind
	layers []opLayer
	whole  int64 // ns, all kinds and layers
	most   int64 // ns of the longest cell
}

// opKind is one kind of operation, summed over all layers.
type opKind struct {
	name    string
	calls   int64
	elapsed int64 // ns
}

// opLayer is one layer with its time in ns per kind, in the order of the kinds.
type opLayer struct {
	layer   int // -1: outside all layers
	times   []int64
	elapsed int64
}

// newOpsTable sums and sorts the times of operations.
func newOpsTable(o *event.Ops) *opsTable {
	t := &opsTable{passes: max(o.Passes, 1)}
	kinds, layers := map[string]*opKind{}, map[int]map[string]int64{}
	for _, x := range o.Times {
		k := kinds[x.Op]
		if k == nil {
			k = &opKind{name: x.Op}
			kinds[x.Op] = k
		}
		k.calls, k.elapsed, t.whole = k.calls+x.Calls, k.elapsed+x.Dur, t.whole+x.Dur
		if layers[x.Layer] == nil {
			layers[x.Layer] = map[string]int64{}
		}
		layers[x.Layer][x.Op] += x.Dur
	}
	for _, k := range kinds {
		t.kinds = append(t.kinds, *k)
	}
	slices.SortFunc(t.kinds, func(a, b opKind) int { return cmp.Or(cmp.Compare(b.elapsed, a.elapsed), cmp.Compare(a.name, b.name)) })
	for _, n := range slices.Sorted(maps.Keys(layers)) {
		l := opLayer{layer: n, times: make([]int64, len(t.kinds))}
		for i, k := range t.kinds {
			l.times[i] = layers[n][k.name]
			l.elapsed += l.times[i]
			t.most = max(t.most, l.times[i])
		}
		t.layers = append(t.layers, l)
	}
	return t
}

// perPass formats a time of all passes as the mean per pass.
func (t *opsTable) perPass(ns int64) string { return metric.Duration(ns / t.passes) }

// share returns the share of a time in the time of all operations.
func (t *opsTable) share(ns int64) float64 { return float64(ns) / float64(max(t.whole, 1)) }

// leastKinds is the minimum number of rows for the list of kinds.
const leastKinds = 3

// View is the Operations view.
type View struct {
	view.Base
	first int
} // first layer shown

// Name implements view.View.
func (v *View) Name() string { return "Operations" }

// Missing implements view.View.
func (v *View) Missing(s *store.Snapshot) (why, advice string) {
	if s.Ops != nil && len(s.Ops.Times) > 0 {
		return "", ""
	}
	return whyNone(s)
}

// Open shows the first layers.
func (v *View) Open() { v.first = 0 }

// Keys implements view.View.
func (v *View) Keys() []view.Key { return nil }

// Scroll scrolls by a number of layers; drawing limits the position to the layers that exist.
func (v *View) Scroll(by int) { v.first = max(v.first+by, 0) }

// Draw draws the time of each kind of operation in each layer, and the slowdown caused by timing them.
func (v *View) Draw(a grid.Area, s *store.Snapshot, f *pane.Frame) {
	in := f.BoxAs(a, "Operations", "forward pass time by operation and layer, session", "session")
	if s.Ops == nil || len(s.Ops.Times) == 0 {
		noOps(in, s, f)
		return
	}
	t := newOpsTable(s.Ops)
	n := in.Wrapped(0, 0, pane.Dim, opsCost(s.Ops))
	in = in.Sub(0, n, in.W, in.H-n)
	rows := 3 + len(t.layers)
	if in.H > rows+leastKinds+3 {
		opsMatrix(in.Sub(0, 1, in.W, rows), f, t, &v.first)
		opsKinds(in.Sub(0, rows+2, in.W, in.H-rows-2), f, t)
		return
	}
	opsMatrix(in, f, t, &v.first)
	if in.H < rows {
		f.Foot(a, pane.Dim, "up, down: scroll "+strconv.Itoa(len(t.layers))+" rows")
	}
}

// noOps draws why there are no times.
func noOps(in grid.Area, s *store.Snapshot, f *pane.Frame) {
	switch why, advice := whyNone(s); {
	case why == "":
		f.Absent(in, pane.Dim, "no operation timed yet", "with --ops the engine times operations once it computes; timing slows it down")
	case !f.Waiting(in, s):
		f.Absent(in, pane.Dim, why, advice)
	}
}

// whyNone returns why the engine does not time operations; "" if it can.
func whyNone(s *store.Snapshot) (why, advice string) {
	if s.Engine.Caps.Has(event.CapOps) {
		return "", ""
	}
	return "time per operation: not reported by this engine", "llama.cpp does: llmtop run MODEL.gguf --engine llamacpp --ops"
}

// opsCost returns the number of timed passes and the slowdown caused by timing.
func opsCost(o *event.Ops) string {
	words := "Mean of " + pane.CountOf(uint64(max(o.Passes, 0)), "timed forward pass", "timed forward passes") + ". "
	if !o.Slowdown.OK() {
		return words + "Slowdown caused by timing: " + o.Slowdown.Absence() + "."
	}
	return words + "Timing made a pass " + metric.Rate(o.Slowdown.V) + " times as long: all times here and in other views are longer than without --ops."
}

// opsLabels and opsColumn are the widths of the layer names and of one column.
const (
	opsLabels = 8
	opsColumn = 11
)

// opsMatrix draws the table of layers by kinds: a row for all layers, the share of each kind, and one row per layer
// from *scroll on. Kinds that do not fit share one column.
func opsMatrix(a grid.Area, f *pane.Frame, t *opsTable, scroll *int) {
	columns := max((a.W-opsLabels)/opsColumn-2, 0) // without the columns "all" and "share"
	if columns < len(t.kinds) {
		columns--
	}
	columns = min(columns, len(t.kinds))
	sums := opLayer{times: make([]int64, len(t.kinds)), elapsed: t.whole}
	a.Right(opsEnd(0), 0, pane.Heading, "all")
	a.Right(opsEnd(1), 0, pane.Heading, "share")
	a.Text(0, 2, pane.Dim, "share")
	others := 1.0
	for k, kind := range t.kinds {
		sums.times[k] = kind.elapsed
		if k < columns {
			others -= t.share(kind.elapsed)
			name := sanitize.Line(kind.name)
			x := opsEnd(2+k) - min(grid.Width(name), opsColumn-1)
			a.Elide(x, 0, opsColumn-1, pane.Heading, name, f.Skin.Glyphs.Ellipsis)
			a.Right(opsEnd(2+k), 2, pane.Plain, metric.Percent(t.share(kind.elapsed)))
		}
	}
	if columns >= 0 && columns < len(t.kinds) {
		a.Right(opsEnd(2+columns), 0, pane.Heading, "others")
		a.Right(opsEnd(2+columns), 2, pane.Plain, metric.Percent(max(others, 0)))
	}
	opsRow(a, f, 1, "all", &sums, columns, 0, t)
	room := max(a.H-3, 0)
	*scroll = max(min(*scroll, len(t.layers)-room), 0)
	for i := range min(room, len(t.layers)) {
		l := &t.layers[*scroll+i]
		name := "outside"
		if l.layer >= 0 {
			name = "L" + strconv.Itoa(l.layer)
		}
		opsRow(a, f, 3+i, name, l, columns, t.most, t)
	}
}

// opsEnd returns the column after a number of the matrix.
func opsEnd(column int) int { return opsLabels + (column+1)*opsColumn - 1 }

// opsRow draws a row of the matrix. Cells are coloured by their time relative to most; 0 means no colours.
func opsRow(a grid.Area, f *pane.Frame, y int, name string, l *opLayer, columns int, most int64, t *opsTable) {
	a.Text(0, y, pane.Dim, name)
	a.Right(opsEnd(0), y, pane.Loud, t.perPass(l.elapsed))
	a.Right(opsEnd(1), y, pane.Plain, metric.Percent(t.share(l.elapsed)))
	others := l.elapsed
	for k := range max(columns, 0) {
		others -= l.times[k]
		opsCell(a, f, opsEnd(2+k), y, l.times[k], most, t)
	}
	if columns >= 0 && columns < len(l.times) {
		opsCell(a, f, opsEnd(2+columns), y, others, 0, t)
	}
}

// opsCell draws one time that ends before column x1.
func opsCell(a grid.Area, f *pane.Frame, x1, y int, elapsed, most int64, t *opsTable) {
	if elapsed == 0 {
		a.Right(x1, y, pane.Dim, "-")
		return
	}
	st := pane.Data
	if most > 0 && f.Skin.Colour() {
		bg := theme.Heat(float64(elapsed) / float64(most))
		st = grid.Style{FG: f.Skin.OnHeat(bg), BG: bg}
		a.Fill(x1-opsColumn+2, y, opsColumn-1, st, ' ')
		x1--
	}
	a.Right(x1, y, st, t.perPass(elapsed))
}

// opsKinds lists the kinds with a bar relative to the longest, the calls per pass and the time per call.
func opsKinds(a grid.Area, f *pane.Frame, t *opsTable) {
	const names, numbers = 18, 32
	a.Text(0, 0, pane.Heading, "kind")
	a.Right(a.W-22, 0, pane.Heading, "share")
	a.Right(a.W-11, 0, pane.Heading, "calls/pass")
	a.Right(a.W, 0, pane.Heading, "per call")
	bar := a.Sub(names, 0, a.W-names-numbers, a.H)
	for i, k := range t.kinds[:max(min(a.H-1, len(t.kinds)), 0)] {
		y, share := 1+i, t.share(k.elapsed)
		a.Elide(0, y, names-1, pane.Plain, sanitize.Line(k.name), f.Skin.Glyphs.Ellipsis)
		bar.Fill(0, y, int(float64(k.elapsed)/float64(max(t.kinds[0].elapsed, 1))*float64(bar.W)+0.5), grid.Fg(theme.SeriesDecode), f.Skin.Glyphs.Bar)
		a.Right(a.W-22, y, pane.Data, metric.Percent(share))
		a.Right(a.W-11, y, pane.Plain, metric.Rate(float64(k.calls)/float64(t.passes)))
		a.Right(a.W, y, pane.Plain, metric.Duration(k.elapsed/max(k.calls, 1)))
	}
}
