package ui

import (
	"slices"
	"strings"

	"github.com/llmtop/llmtop/theme"
	"github.com/llmtop/llmtop/ui/grid"
)

// view is a screen of the program.
type view uint8

// The views: those of the number keys in their order, then a pane of the overview in full screen, the operations, and
// the help.
const (
	viewOverview view = iota
	viewRequests
	viewRequest
	viewLatency
	viewExperts
	viewSystem
	viewEngines
	viewPane
	viewOps
	viewHelp
	numViews
	numTabs = viewPane
)

var tabNames = [numTabs]string{"Overview", "Requests", "Request", "Latency", "Experts", "System", "Engines"}

// viewSet is a set of views.
type viewSet uint16

// only returns the set of the given views; everywhere is the set of all.
func only(vs ...view) (s viewSet) {
	for _, v := range vs {
		s |= 1 << v
	}
	return s
}

const everywhere = viewSet(1<<numViews - 1)

func (s viewSet) has(v view) bool { return s&(1<<v) != 0 }

// names lists the views of a set for the help, "" for all.
func (s viewSet) names() string {
	var out []string
	for v := range numTabs {
		if s.has(v) {
			out = append(out, strings.ToLower(tabNames[v]))
		}
	}
	switch s {
	case everywhere:
		return ""
	case scrollViews:
		return "lists, texts and tables"
	}
	return strings.Join(out, ", ")
}

// show goes to a view. Help and engines store the view from which they were opened, to return there.
func (a *app) show(v view) {
	if v == a.view {
		return
	}
	if a.view != viewHelp && a.view != viewEngines {
		a.viewBefore = a.view
	}
	a.view = v
	a.resetScroll()
	a.updateEngines()
	if v == viewRequests {
		a.requests.refresh(a.snap)
	}
}

// back closes the list of alerts, or goes back from the current view.
func (a *app) back() {
	if a.alertsOpen {
		a.alertsOpen = false
		return
	}
	switch a.view {
	case viewEngines:
		if !a.replicas.unfilter() {
			a.show(a.viewBefore)
		}
	case viewHelp:
		a.show(a.viewBefore)
	case viewOverview:
		if len(a.sessions) > 1 {
			a.show(viewEngines)
		}
	case viewRequest:
		a.show(viewRequests)
	case viewRequests:
		if !a.requests.unfilter() {
			a.show(viewOverview)
		}
	default:
		a.show(viewOverview)
	}
}

// toggle opens help, engines or operations, or goes back: from help and engines to the last view, from operations to
// the overview.
func (a *app) toggle(v view) {
	if a.view == v {
		a.back()
		return
	}
	a.show(v)
}

// tab is a view's name in the last row, which can be clicked.
type tab struct {
	view view
	at   grid.Rect
}

// tabNamesWidth is the width in cells from which all tabs have names; below it only the tab of the current view has one.
const tabNamesWidth = 110

// drawTabs draws the tabs with their keys and returns their width in cells.
func (a *app) drawTabs(area grid.Area) int {
	a.tabs = a.tabs[:0]
	shown := a.view
	if shown == viewPane {
		shown = viewOverview
	}
	l := area.Line(0, 0)
	for v := range numTabs {
		from := l.X
		digit, name := string(rune('1'+v)), tabNames[v]
		switch {
		case v == shown:
			st := grid.Style{FG: theme.OnBadge, BG: theme.Accent, Attr: grid.Bold}
			if !a.skin.Colour() {
				st.Attr |= grid.Reverse
			}
			l.Put(st, " "+digit+" "+name+" ")
		case area.W >= tabNamesWidth:
			l.Put(grid.Fg(theme.Accent).With(grid.Bold), " "+digit).Put(grid.Fg(theme.Text), " "+name+" ")
		default:
			l.Put(grid.Fg(theme.Accent).With(grid.Bold), " "+digit+" ")
		}
		a.tabs = append(a.tabs, tab{v, grid.Rect{X: area.X + from, Y: area.Y, W: l.X - from, H: 1}})
	}
	return l.X
}

// clickTab goes to the view whose tab is under the mouse, and reports whether there is one.
func (a *app) clickTab(x, y int) bool {
	i := slices.IndexFunc(a.tabs, func(t tab) bool { return t.at.Has(x, y) })
	if i >= 0 {
		a.show(a.tabs[i].view)
	}
	return i >= 0
}
