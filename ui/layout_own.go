package ui

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/llmtop/llmtop/ui/grid"
	"github.com/llmtop/llmtop/ui/panes"
)

// Layout is how the overview is arranged: rows from top to bottom. The zero value is llmtop's own arrangement, which knows what to leave out
// on small screens.
type Layout struct{ rows []layoutRow }

// layoutRow is one row of panes with its share of the height.
type layoutRow struct {
	panes  []panes.ID
	parts  []int // shares of the width
	weight int
}

// LayoutSyntax is an example of what ParseLayout reads.
const LayoutSyntax = "ttft:2 tpot | experts @3 | text know"

// LayoutDefault is the name of llmtop's own arrangement.
const LayoutDefault = "default"

// layoutNames are the panes by the names that a layout has for them.
var layoutNames = [panes.NumPanes]string{"ttft", "tpot", "experts", "throughput", "machine", "text", "know", "queue"}

// layouts are the arrangements that need not be written down.
var layouts = map[string]string{
	LayoutDefault: "",
	"latency":     "ttft | tpot | throughput know",
	"router":      "experts @3 | ttft tpot | know throughput",
	"machine":     "machine throughput @2 | ttft tpot | know",
	"reading":     "text:2 ttft @2 | tpot know",
}

// Layouts are the names of the layouts that are built in, in order.
func Layouts() []string {
	names := make([]string, 0, len(layouts))
	for name := range layouts {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// The bounds of a layout's numbers.
const (
	mostWeight = 100
	mostRows   = int(panes.NumPanes)
)

// leastCells and leastRows are the smallest box that a pane of a layout gets; those for which there is no room are left out.
const (
	leastCells = 24
	leastRows  = 5
)

// ParseLayout reads a layout: the name of a built-in one, or rows with | between them, each of panes with spaces between them. A pane may
// have a share of the width behind a colon, a row a share of the height behind @.
func ParseLayout(text string) (l Layout, err error) {
	if known, ok := layouts[strings.TrimSpace(text)]; ok {
		if text = known; text == "" {
			return Layout{}, nil
		}
	}
	seen := make(map[panes.ID]bool)
	for i, words := range strings.Split(text, "|") {
		row, err := parseRow(strings.Fields(words), seen)
		if err == nil && i >= mostRows {
			err = fmt.Errorf("there are at most %d rows", mostRows)
		}
		if err != nil {
			return Layout{}, fmt.Errorf("row %d: %w", i+1, err)
		}
		l.rows = append(l.rows, row)
	}
	return l, nil
}

// parseRow reads one row; each pane may be in one row only.
func parseRow(words []string, seen map[panes.ID]bool) (row layoutRow, err error) {
	row.weight = 1
	for i, word := range words {
		if share, ok := strings.CutPrefix(word, "@"); ok {
			if i < len(words)-1 || i == 0 {
				return row, fmt.Errorf("%.40q: a share of the height comes after the panes of a row", word)
			}
			if row.weight, err = parseShare(word, share); err != nil {
				return row, err
			}
			continue
		}
		name, share, has := strings.Cut(word, ":")
		at := slices.Index(layoutNames[:], strings.ToLower(name))
		if at < 0 {
			return row, fmt.Errorf("there is no pane %.40q: panes are %s, built-in layouts %s", name, strings.Join(layoutNames[:], ", "), strings.Join(Layouts(), ", "))
		}
		id := panes.ID(at)
		if seen[id] {
			return row, fmt.Errorf("pane %q is there twice", name)
		}
		seen[id] = true
		part := 1
		if has {
			if part, err = parseShare(word, share); err != nil {
				return row, err
			}
		}
		row.panes, row.parts = append(row.panes, id), append(row.parts, part)
	}
	if len(row.panes) == 0 {
		return row, fmt.Errorf("no pane: a layout is for example %q", LayoutSyntax)
	}
	return row, nil
}

func parseShare(word, share string) (int, error) {
	n, err := strconv.Atoi(share)
	if err != nil || n < 1 || n > mostWeight {
		return 0, fmt.Errorf("%.40q: a share is a whole number from 1 to %d", word, mostWeight)
	}
	return n, nil
}

// arrange places the panes on a screen of w by h cells. Rows for which there is no height, and panes for which there is no width, are left
// out, the last first.
func (l Layout) arrange(w, h int) []placed {
	if len(l.rows) == 0 || w < minWidth || h < minHeight {
		return arrange(w, h)
	}
	body := grid.Rect{X: 0, Y: 1, W: w, H: h - 2}
	var least, weight []int
	var ids [][]panes.ID
	var parts [][]int
	for _, row := range l.rows {
		n := fitting(row.parts, w)
		ids, parts = append(ids, row.panes[:n]), append(parts, row.parts[:n])
		least, weight = append(least, leastRows), append(weight, row.weight)
	}
	return lay(body, split(body.H, least, weight), ids, parts)
}

// fitting is how many of a row's panes have room, at least one.
func fitting(parts []int, w int) int {
	for n := len(parts); n > 1; n-- {
		sum := 0
		for _, p := range parts[:n] {
			sum += p
		}
		if w*slices.Min(parts[:n])/sum >= leastCells {
			return n
		}
	}
	return 1
}
