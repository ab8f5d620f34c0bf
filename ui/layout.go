package ui

import (
	"github.com/llmtop/llmtop/ui/grid"
	"github.com/llmtop/llmtop/ui/panes"
)

// The overview, from 100 columns on:
//
//	header
//	╭ TTFT ──────────────────────╮╭ TPOT ─────────────────────╮
//	╰────────────────────────────╯╰───────────────────────────╯
//	╭ Experts ───────────────────╮╭ Throughput ─╮╭ Machine ───╮
//	╰────────────────────────────╯╰─────────────╯╰────────────╯
//	╭ Text ──────────────────────╮╭ What to know ─────────────╮
//	╰────────────────────────────╯╰───────────────────────────╯
//	keys
//
// From 80 columns on Machine takes the place of Text; below that panes stand one under another. Panes for which there is no
// room are dropped, the least important first: none is squeezed below the rows it needs.

// The smallest screen with panes.
const (
	minWidth  = 60
	minHeight = 18
)

// placed is a pane with its place on the screen.
type placed struct {
	id panes.ID
	at grid.Rect
}

// arrange places the panes of the overview on a screen of w by h cells; none if the screen is too small.
func arrange(w, h int) []placed {
	body := grid.Rect{X: 0, Y: 1, W: w, H: h - 2}
	switch {
	case w < minWidth || h < minHeight:
		return nil
	case w < 80:
		return stacked(body)
	case w < 100:
		return twoColumns(body)
	}
	return wide(body)
}

// importance lists the panes of a single column with the rows that each needs, the most important first.
var importance = []struct {
	id   panes.ID
	rows int
}{
	{panes.TTFT, 5},
	{panes.TPOT, 5},
	{panes.Experts, 6},
	{panes.Know, 5},
	{panes.Throughput, 7},
	{panes.Machine, 8},
	{panes.Text, 6},
}

// stacked takes panes by importance while there is room and shares out the rows that are left.
func stacked(r grid.Rect) []placed {
	var rows [panes.NumPanes]int
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
	var out []placed
	for id := range panes.NumPanes {
		if rows[id] > 0 {
			out = append(out, placed{id, grid.Rect{X: r.X, Y: r.Y, W: r.W, H: rows[id]}})
			r.Y += rows[id]
		}
	}
	return out
}

func twoColumns(r grid.Rect) []placed {
	rows := split(r.H, []int{7, 8, 6, 8}, []int{4, 4, 3, 4})
	all := [][]panes.ID{{panes.TTFT, panes.TPOT}, {panes.Experts, panes.Throughput}, {panes.Know, panes.Machine}, {panes.Text}}
	return lay(r, rows, all, [][]int{{1, 1}, {5, 4}, {5, 4}, {1}})
}

func wide(r grid.Rect) []placed {
	rows := split(r.H, []int{7, 8, 6}, []int{12, 12, 10})
	all := [][]panes.ID{{panes.TTFT, panes.TPOT}, {panes.Experts, panes.Throughput, panes.Machine}, {panes.Text, panes.Know}}
	parts := [][]int{{1, 1}, {10, 6, 6}, {1, 1}}
	if r.W >= 140 {
		parts[1] = []int{2, 1, 1}
	}
	return lay(r, rows, all, parts)
}

// split gives as many rows as fit their least height, and shares what is left by weight.
func split(h int, least, weight []int) []int {
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

// lay puts rows of panes one under another; parts are the shares of the width within a row.
func lay(r grid.Rect, rows []int, all [][]panes.ID, parts [][]int) []placed {
	var out []placed
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
			out = append(out, placed{id, grid.Rect{X: x, Y: y, W: end - x, H: h}})
			x = end
		}
		y += h
	}
	return out
}
