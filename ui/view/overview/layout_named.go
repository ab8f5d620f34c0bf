package overview

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/ui/grid"
)

// Layout is an arrangement of the overview that the user chooses by its name. The zero value is the default arrangement.
type Layout struct {
	name string
	rows []layoutRow // from top to bottom; none: the default, which adapts to the screen and to the kind of engine
}

// layoutRow is one row of panes with its share of the height.
type layoutRow struct {
	panes  []ID
	parts  []int // shares of the width
	least  int   // rows
	weight int
}

// LayoutDefault is the name of the default arrangement.
const LayoutDefault = "default"

// layouts are in alphabetical order.
var layouts = []Layout{
	{name: LayoutDefault},
	{"latency", []layoutRow{{[]ID{TTFT}, []int{1}, 5, 1}, {[]ID{ITL}, []int{1}, 5, 1}, {[]ID{Throughput, Insights}, []int{1, 1}, 5, 1}}},
	{"machine", []layoutRow{{[]ID{Machine, Throughput}, []int{1, 1}, 5, 2}, {[]ID{TTFT, ITL}, []int{1, 1}, 5, 1}, {[]ID{Insights}, []int{1}, 5, 1}}},
	{"reading", []layoutRow{{[]ID{Text, TTFT}, []int{2, 1}, 5, 2}, {[]ID{ITL, Insights}, []int{1, 1}, 5, 1}}},
	{"router", []layoutRow{{[]ID{Experts}, []int{1}, 5, 3}, {[]ID{TTFT, ITL}, []int{1, 1}, 5, 1}, {[]ID{Insights, Throughput}, []int{1, 1}, 5, 1}}},
}

// Layouts returns the names of all layouts in alphabetical order.
func Layouts() (names []string) {
	for _, l := range layouts {
		names = append(names, l.name)
	}
	return names
}

// LayoutNamed returns the layout with a name. The error lists the names.
func LayoutNamed(name string) (Layout, error) {
	i := slices.IndexFunc(layouts, func(l Layout) bool { return l.name == name })
	if i < 0 {
		return Layout{}, fmt.Errorf("use one of %s", strings.Join(Layouts(), ", "))
	}
	return layouts[i], nil
}

// Name returns the name of the layout.
func (l Layout) Name() string { return cmp.Or(l.name, LayoutDefault) }

// Text returns the panes of the layout, by row.
func (l Layout) Text() string {
	var rows []string
	for _, row := range l.rows {
		var panes []string
		for _, id := range row.panes {
			panes = append(panes, id.String())
		}
		rows = append(rows, strings.Join(panes, " "))
	}
	return cmp.Or(strings.Join(rows, " | "), "fits the size of the screen and the kind of engine")
}

// minPaneWidth is the smallest width of a pane of a layout, in cells; panes that do not fit are dropped.
const minPaneWidth = 24

// arrange places the panes that have data, or will have some, into the body of the screen. It drops rows and panes that
// do not fit, the last first.
func (v *View) arrange(body grid.Rect, s *store.Snapshot) []Placement {
	v.show(s)
	rows := v.Layout.rows
	if len(rows) == 0 {
		rows = v.fit(body.W, s)
	}
	var shown []layoutRow
	for _, row := range rows {
		with := layoutRow{least: row.least, weight: row.weight}
		for i, id := range row.panes {
			if v.shown[id] {
				with.panes, with.parts = append(with.panes, id), append(with.parts, row.parts[i])
			}
		}
		if len(with.panes) > 0 {
			n := panesThatFit(with.parts, body.W)
			with.panes, with.parts = with.panes[:n], with.parts[:n]
			shown = append(shown, with)
		}
	}
	return placeRows(body, shown)
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
