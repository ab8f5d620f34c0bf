package ui

import (
	"slices"
	"strings"

	"github.com/llmtop/llmtop/theme"
	"github.com/llmtop/llmtop/ui/grid"
	"github.com/llmtop/llmtop/ui/panes"
)

// view is what fills the screen.
type view uint8

// The views: those of the number keys, in their order, then a pane of the overview with the whole screen, the operations, and the help.
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

// views is a set of views.
type views uint16

// in is the set of some views; everywhere is that of all.
func in(vs ...view) (s views) {
	for _, v := range vs {
		s |= 1 << v
	}
	return s
}

const everywhere = views(1<<numViews - 1)

func (s views) has(v view) bool { return s&(1<<v) != 0 }

// names lists the views of a set as the help does, "" for all.
func (s views) names() string {
	var out []string
	for v := range numTabs {
		if s.has(v) {
			out = append(out, strings.ToLower(tabNames[v]))
		}
	}
	switch s {
	case everywhere:
		return ""
	case scrolling:
		return "lists, texts and tables"
	}
	return strings.Join(out, ", ")
}

// show goes to a view. Help and engines remember where they were opened, to go back there.
func (a *app) show(v view) {
	if v == a.view {
		return
	}
	if a.view != viewHelp && a.view != viewEngines {
		a.before = a.view
	}
	a.view, a.panes.Scroll = v, 0
	a.survey()
	if v == viewRequests {
		a.requests.refresh(a.snap)
	}
}

// back leaves a view for the one it belongs to.
func (a *app) back() {
	if a.alerts {
		a.alerts = false
		return
	}
	switch a.view {
	case viewEngines:
		if !a.replicas.unfilter() {
			a.show(a.before)
		}
	case viewHelp:
		a.show(a.before)
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

// toggle opens help, engines or operations, or goes back to what they were opened from; from operations to the overview.
func (a *app) toggle(v view) {
	if a.view == v {
		a.back()
		return
	}
	a.show(v)
}

// tab is where a view can be clicked on.
type tab struct {
	view view
	at   grid.Rect
}

// namesFrom is the width from which all tabs have names; below it only that of the view on show.
const namesFrom = 110

// drawTabs writes the views with their keys and returns how many cells they took.
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
		case area.W >= namesFrom:
			l.Put(grid.Fg(theme.Accent).With(grid.Bold), " "+digit).Put(grid.Fg(theme.Text), " "+name+" ")
		default:
			l.Put(grid.Fg(theme.Accent).With(grid.Bold), " "+digit+" ")
		}
		a.tabs = append(a.tabs, tab{v, grid.Rect{X: area.X + from, Y: area.Y, W: l.X - from, H: 1}})
	}
	return l.X
}

// drawPane draws a pane of the overview with the whole screen, under the name of the view that it stands for.
func (a *app) drawPane(area grid.Area, id panes.ID, title string) {
	focus := a.panes.Focus
	a.panes.Focus, a.panes.Zoomed, a.panes.Title = id, true, title
	panes.Draw(id, area, a.snap, &a.panes)
	a.panes.Focus, a.panes.Zoomed, a.panes.Title = focus, false, ""
}

// clickTab goes to the view whose tab is at a place of the screen, and reports whether there is one.
func (a *app) clickTab(x, y int) bool {
	i := slices.IndexFunc(a.tabs, func(t tab) bool { return t.at.Has(x, y) })
	if i >= 0 {
		a.show(a.tabs[i].view)
	}
	return i >= 0
}
