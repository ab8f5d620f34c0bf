package overview

import (
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/ui/grid"
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
// dropped, the least important first: no pane gets fewer rows than it needs.

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

// arrange places the panes of the overview into the body of the screen.
func arrange(body grid.Rect) []Placement {
	switch {
	case body.W < 80:
		return singleColumn(body)
	case body.W < 100:
		return twoColumns(body)
	}
	return wideLayout(body)
}

// importance lists the panes of a single column with the rows that each needs, the most important first.
var importance = []struct {
	id   ID
	rows int
}{
	{TTFT, 5},
	{ITL, 5},
	{Experts, 6},
	{Insights, 5},
	{Throughput, 7},
	{Machine, 8},
	{Text, 6},
}

// singleColumn places as many panes as fit, by importance, and distributes the remaining rows.
func singleColumn(r grid.Rect) []Placement {
	var rows [NumPanes]int
	left, n := r.H, 0
	for _, p := range importance {
		if p.rows > left {
			break
		}
		rows[p.id] = p.rows
		left -= p.rows
		n++
	}
	for i := 0; left > 0; i++ {
		rows[importance[i%n].id]++
		left--
	}
	var out []Placement
	for id := range NumPanes {
		if rows[id] > 0 {
			out = append(out, Placement{id, grid.Rect{X: r.X, Y: r.Y, W: r.W, H: rows[id]}})
			r.Y += rows[id]
		}
	}
	return out
}

func twoColumns(r grid.Rect) []Placement {
	rows := splitRows(r.H, []int{7, 8, 6, 8}, []int{4, 4, 3, 4})
	all := [][]ID{{TTFT, ITL}, {Experts, Throughput}, {Insights, Machine}, {Text}}
	return placeRows(r, rows, all, [][]int{{1, 1}, {5, 4}, {5, 4}, {1}})
}

func wideLayout(r grid.Rect) []Placement {
	rows := splitRows(r.H, []int{7, 8, 6}, []int{12, 12, 10})
	all := [][]ID{{TTFT, ITL}, {Experts, Throughput, Machine}, {Text, Insights}}
	parts := [][]int{{1, 1}, {10, 6, 6}, {1, 1}}
	if r.W >= 140 {
		parts[1] = []int{2, 1, 1}
	}
	return placeRows(r, rows, all, parts)
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
	h, each := 0, max(bandHeight, body.H/6)
	for range bands(s) {
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
func splitRows(h int, least, weight []int) []int {
	n, left := 0, h
	for n < len(least) && least[n] <= left {
		left -= least[n]
		n++
	}
	sum := 0
	for _, w := range weight[:n] {
		sum += w
	}
	out := make([]int, n)
	used, acc := 0, 0
	for i := range out {
		acc += weight[i]
		out[i] = max(h*acc/sum-used, least[i])
		used += out[i]
	}
	for i := 0; used > h; i = (i + 1) % n {
		if out[i] > least[i] {
			out[i]--
			used--
		}
	}
	return out
}

// placeRows places rows of panes one below another; parts are the shares of the width within a row.
func placeRows(r grid.Rect, rows []int, all [][]ID, parts [][]int) []Placement {
	var out []Placement
	y := r.Y
	for i, h := range rows {
		sum := 0
		for _, p := range parts[i] {
			sum += p
		}
		x, acc := r.X, 0
		for k, id := range all[i] {
			acc += parts[i][k]
			end := r.X + r.W*acc/sum
			out = append(out, Placement{id, grid.Rect{X: x, Y: y, W: end - x, H: h}})
			x = end
		}
		y += h
	}
	return out
}
