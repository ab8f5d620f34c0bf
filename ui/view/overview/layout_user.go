package overview

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/llmtop/llmtop/ui/grid"
)

// Layout is an arrangement of the overview: rows from top to bottom. The zero value is the default arrangement, which
// adapts to small screens.
type Layout struct{ rows []layoutRow }

// layoutRow is one row of panes with its share of the height.
type layoutRow struct {
	panes  []ID
	parts  []int // shares of the width
	weight int
}

// LayoutSyntax is an example of the input of ParseLayout.
const LayoutSyntax = "ttft:2 itl | experts @3 | text insights"

// LayoutDefault is the name of the default arrangement.
const LayoutDefault = "default"

// formerNames are former names of panes, which layouts still accept.
var formerNames = map[string]string{"tpot": "itl", "know": "insights"}

// layouts are the built-in layouts by name.
var layouts = map[string]string{
	LayoutDefault: "",
	"latency":     "ttft | itl | throughput insights",
	"router":      "experts @3 | ttft itl | insights throughput",
	"machine":     "machine throughput @2 | ttft itl | insights",
	"reading":     "text:2 ttft @2 | itl insights",
}

// Layouts returns the names of the built-in layouts in alphabetical order.
func Layouts() []string {
	names := make([]string, 0, len(layouts))
	for name := range layouts {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// Equal reports whether two layouts are the same.
func (l Layout) Equal(other Layout) bool {
	return slices.EqualFunc(l.rows, other.rows, func(x, y layoutRow) bool {
		return x.weight == y.weight && slices.Equal(x.panes, y.panes) && slices.Equal(x.parts, y.parts)
	})
}

// LayoutText returns the rows of a layout, or what the default one does, for the name of a built-in one or for rows.
func LayoutText(text string) string {
	if text == LayoutDefault {
		return "fits the size of the screen and the kind of engine"
	}
	return cmp.Or(layouts[text], text)
}

// The maximum share and the maximum number of rows of a layout.
const (
	maxWeight = 100
	maxRows   = int(NumPanes)
)

// minPaneWidth and minPaneHeight are the smallest size of a pane of a layout, in cells; panes that do not fit are
// dropped.
const (
	minPaneWidth  = 24
	minPaneHeight = 5
)

// ParseLayout parses a layout: the name of a built-in one, or rows separated by |, each a list of panes separated by
// spaces. A pane may have a share of the width after a colon, a row a share of the height after @.
func ParseLayout(text string) (l Layout, err error) {
	if builtIn, ok := layouts[strings.TrimSpace(text)]; ok {
		if text = builtIn; text == "" {
			return Layout{}, nil
		}
	}
	seen := make(map[ID]bool)
	for i, rowText := range strings.Split(text, "|") {
		row, err := parseRow(strings.Fields(rowText), seen)
		if err == nil && i >= maxRows {
			err = fmt.Errorf("a layout has at most %d rows", maxRows)
		}
		if err != nil {
			return Layout{}, fmt.Errorf("row %d: %w", i+1, err)
		}
		l.rows = append(l.rows, row)
	}
	return l, nil
}

// parseRow parses one row; each pane may appear in one row only.
func parseRow(words []string, seen map[ID]bool) (row layoutRow, err error) {
	row.weight = 1
	for i, word := range words {
		if share, ok := strings.CutPrefix(word, "@"); ok {
			if i < len(words)-1 || i == 0 {
				return row, fmt.Errorf("%.40q: put the share of the height last in its row, for example \"ttft itl @2\"", word)
			}
			if row.weight, err = parseShare(word, share); err != nil {
				return row, err
			}
			continue
		}
		name, share, hasShare := strings.Cut(word, ":")
		at := layoutPane(name)
		if at < 0 {
			return row, fmt.Errorf("unknown pane %.40q: use %s, or a built-in layout: %s", name, strings.ToLower(strings.Join(names[:], ", ")), strings.Join(Layouts(), ", "))
		}
		id := ID(at)
		if seen[id] {
			return row, fmt.Errorf("pane %q appears twice: remove one", name)
		}
		seen[id] = true
		part := 1
		if hasShare {
			if part, err = parseShare(word, share); err != nil {
				return row, err
			}
		}
		row.panes, row.parts = append(row.panes, id), append(row.parts, part)
	}
	if len(row.panes) == 0 {
		return row, fmt.Errorf("no pane: write a layout such as %q", LayoutSyntax)
	}
	return row, nil
}

// layoutPane returns the pane with a name in a layout, or -1. It accepts former names of panes.
func layoutPane(name string) int {
	name = strings.ToLower(name)
	if now, ok := formerNames[name]; ok {
		name = now
	}
	return slices.IndexFunc(names[:], func(title string) bool { return strings.EqualFold(title, name) })
}

func parseShare(word, share string) (int, error) {
	n, err := strconv.Atoi(share)
	if err != nil || n < 1 || n > maxWeight {
		return 0, fmt.Errorf("%.40q: a share must be a whole number from 1 to %d", word, maxWeight)
	}
	return n, nil
}

// arrange places the panes into the body of the screen. It drops rows and panes that do not fit, the last first.
func (l Layout) arrange(body grid.Rect) []Placement {
	if len(l.rows) == 0 {
		return arrange(body)
	}
	var least, weight []int
	var ids [][]ID
	var parts [][]int
	for _, row := range l.rows {
		n := panesThatFit(row.parts, body.W)
		ids, parts = append(ids, row.panes[:n]), append(parts, row.parts[:n])
		least, weight = append(least, minPaneHeight), append(weight, row.weight)
	}
	return placeRows(body, splitRows(body.H, least, weight), ids, parts)
}

// panesThatFit returns how many panes of a row fit, at least one.
func panesThatFit(parts []int, w int) int {
	for n := len(parts); n > 1; n-- {
		sum := 0
		for _, p := range parts[:n] {
			sum += p
		}
		if w*slices.Min(parts[:n])/sum >= minPaneWidth {
			return n
		}
	}
	return 1
}
