package overview

import (
	"slices"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/ui/grid"
	"github.com/llmtop/llmtop/ui/view/latency"
)

// The overview, from 100 columns:
//
//	header
//	╭ TTFT ──────────────────────╮╭ ITL ──────────────────────╮
//	╰────────────────────────────╯╰───────────────────────────╯
//	╭ Experts ───────────────────╮╭ Throughput ─╮╭ Machine ───╮
//	╰────────────────────────────╯╰─────────────╯╰────────────╯
//	╭ Text ──────────────────────╮╭ Insights ─────────────────╮
//	╰────────────────────────────╯╰───────────────────────────╯
//	keys
//
// From 80 columns Machine takes the place of Text; below that the panes form one column. Panes that do not fit are
// dropped, the least important first: no pane gets fewer rows than it needs. Panes without data for the kind of engine
// give their place to Requests and Queue.

// The smallest screen with panes, in cells.
const (
	MinWidth  = 60
	MinHeight = 18
)

// Placement is a pane with its place on the screen.
type Placement struct {
	ID ID
	At grid.Rect
}

// fit returns the default rows of panes for a width: those without data give their place to those that have some.
func (v *View) fit(w int, s *store.Snapshot) []layoutRow {
	if s.CallsOnly() {
		rows := []layoutRow{{[]ID{Throughput, Machine}, []int{2, 1}, 8, 12}, {[]ID{Insights}, []int{1}, 4, 2}}
		if w < 80 {
			rows[0] = layoutRow{[]ID{Throughput}, []int{1}, 8, 12}
		}
		return rows
	}
	wide := slices.DeleteFunc([]ID{Experts, Requests, Queue}, func(id ID) bool { return !v.shown[id] })
	wide = append(wide, NumPanes, NumPanes)
	low := wide[1]
	if v.shown[Text] {
		low = Text
	}
	if w < 80 {
		return v.fitColumn(wide[0], low)
	}
	first := layoutRow{[]ID{TTFT, ITL}, []int{1, 1}, 7, 4}
	if w < 100 {
		return []layoutRow{
			first, {[]ID{wide[0], Throughput}, []int{5, 4}, 8, 4}, {[]ID{Insights, Machine}, []int{5, 4}, 6, 3}, {[]ID{low}, []int{1}, 8, 4},
		}
	}
	middle := layoutRow{[]ID{wide[0], Throughput, Machine}, []int{10, 6, 6}, 8, 12}
	if w >= 140 {
		middle.parts = []int{2, 1, 1}
	}
	last := layoutRow{[]ID{low, Insights}, []int{1, 1}, 6, 10}
	if !v.shown[low] {
		last.weight = 7
	}
	first.weight = 12
	switch {
	case latency.HasTrends(s) && s.Distribution(store.TTFT, metric.Session).Count > 0:
		first.weight = 16
	case !latency.Measured(s) && s.Engine.Remote.Link != event.LinkNone: // little or nothing in it
		first.weight = 7
	}
	return []layoutRow{first, middle, last}
}

// fitColumn returns the default rows of one column: all panes with their least rows, the most important first.
func (v *View) fitColumn(wide, low ID) (rows []layoutRow) {
	for _, p := range [...]struct {
		id   ID
		rows int
	}{{TTFT, 5}, {ITL, 5}, {wide, 6}, {Insights, 5}, {Throughput, 7}, {Machine, 8}, {low, 6}} {
		rows = append(rows, layoutRow{[]ID{p.id}, []int{1}, p.rows, 1})
	}
	return rows
}

// The screen from which the default layout has a breakdown, in cells.
const (
	breakdownWidth  = 200
	breakdownHeight = 40
)

// splitBreakdown returns the areas of the panes and of the breakdown below them, empty on a smaller screen and while
// requests do not differ.
func splitBreakdown(body grid.Rect, s *store.Snapshot) (panes, low grid.Rect) {
	if body.W < breakdownWidth || body.H < breakdownHeight {
		return body, grid.Rect{}
	}
	h := 0
	for _, b := range bands(s) {
		each := cellHeight
		if slices.ContainsFunc(b.cells, func(c cell) bool { return len(c.requests) >= manyRequests }) {
			each = max(bandHeight, body.H/6)
		}
		if h == 0 || h+each <= body.H*2/5 {
			h += each
		}
	}
	if h == 0 {
		return body, grid.Rect{}
	}
	panes, low = body, body
	panes.H -= h + 2
	low.Y, low.H = body.Y+panes.H, h+2
	return panes, low
}

// splitRows places as many rows as fit with their minimum height, and distributes the rest by weight.
func splitRows(h int, rows []layoutRow) []int {
	n, left, sum := 0, h, 0
	for ; n < len(rows) && rows[n].least <= left; n++ {
		left -= rows[n].least
		sum += rows[n].weight
	}
	out := make([]int, n)
	used, acc := 0, 0
	for i := range out {
		acc += rows[i].weight
		out[i] = max(h*acc/sum-used, rows[i].least)
		used += out[i]
	}
	for i := 0; used > h; i = (i + 1) % n {
		if out[i] > rows[i].least {
			out[i]--
			used--
		}
	}
	return out
}

// placeRows places rows of panes one below another, as many as fit.
func placeRows(r grid.Rect, rows []layoutRow) (out []Placement) {
	y := r.Y
	for i, h := range splitRows(r.H, rows) {
		row := &rows[i]
		sum := 0
		for _, p := range row.parts {
			sum += p
		}
		x, acc := r.X, 0
		for k, id := range row.panes {
			acc += row.parts[k]
			end := r.X + r.W*acc/sum
			out = append(out, Placement{id, grid.Rect{X: x, Y: y, W: end - x, H: h}})
			x = end
		}
		y += h
	}
	return out
}
