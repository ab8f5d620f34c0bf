package ui

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/theme"
	"github.com/llmtop/llmtop/ui/grid"
	"github.com/llmtop/llmtop/ui/pane"
	"github.com/llmtop/llmtop/ui/table"
	"github.com/llmtop/llmtop/ui/view"
	"github.com/llmtop/llmtop/ui/view/engines"
	"github.com/llmtop/llmtop/ui/view/experts"
	"github.com/llmtop/llmtop/ui/view/latency"
	"github.com/llmtop/llmtop/ui/view/ops"
	"github.com/llmtop/llmtop/ui/view/overview"
	"github.com/llmtop/llmtop/ui/view/request"
	"github.com/llmtop/llmtop/ui/view/requests"
	"github.com/llmtop/llmtop/ui/view/system"
)

// viewID identifies a view. Those with a number key come first, in the order of app.tabs.
type viewID uint8

// The views that the program itself opens or knows.
const (
	viewOverview viewID = iota
	viewRequests
	viewRequest
	viewLatency
	viewExperts
	viewSystem
	viewEngines
)

// The views without a number key: a pane of the overview in full screen, the operations, and the help. There are at
// most maxTabs others, one per digit.
const (
	viewPane viewID = maxTabs + iota
	viewOps
	viewHelp
	numViews
	maxTabs = 9
)

// makeViews makes all views. A new view is a line in tabs.
func (a *app) makeViews() {
	selection := &table.Selection{Follow: true}
	a.requests = requests.New(a, selection, func() { a.show(viewRequest) })
	a.request = request.New(a, selection, a.requests.Step, a.requests.Pin)
	open := func(id event.RequestID, token int) {
		if !a.request.Show(a.snap, id, token) {
			a.Notify("request #" + strconv.Itoa(int(id)) + " is no longer kept")
			return
		}
		a.show(viewRequest)
	}
	a.latency = latency.New(a, func(x store.Stall) { open(x.Request, x.Index) })
	a.overview = overview.New(a, a.cfg.Layout, a.zoom, a.latency, func(id event.RequestID) { open(id, 0) })
	a.experts = experts.New(a)
	a.engines = engines.New(a.showEngine)
	a.help = &help{app: a}
	a.palette.app, a.palette.commands = a, a.commands
	a.tabs = []view.View{
		a.overview,
		a.requests,
		a.request,
		a.latency,
		a.experts,
		system.New(a, a.request),
		a.engines,
	}
	copy(a.views[:], a.tabs)
	a.views[viewPane], a.views[viewOps], a.views[viewHelp] = overview.Zoomed{View: a.overview}, &ops.View{}, a.help
}

// viewSet is a set of views.
type viewSet uint16

// only returns the set of the given views; everywhere is the set of all.
func only(vs ...viewID) (s viewSet) {
	for _, v := range vs {
		s |= 1 << v
	}
	return s
}

const everywhere = viewSet(1<<numViews - 1)

// scrollViews are the views with something to scroll or to select.
const scrollViews = everywhere &^ (1 << viewOverview)

func (s viewSet) has(v viewID) bool { return s&(1<<v) != 0 }

// viewNames lists the views of a set for the help, "" for all.
func (a *app) viewNames(s viewSet) string {
	switch s {
	case everywhere:
		return ""
	case scrollViews:
		return "lists, texts and tables"
	case everywhere &^ only(viewEngines): // in the help of the engines
		return "all other views"
	}
	var out []string
	for v, room := range a.tabs {
		if s.has(viewID(v)) {
			out = append(out, strings.ToLower(room.Name()))
		}
	}
	return strings.Join(out, ", ")
}

// missing returns why the engine on the screen has no data for a view, and how to get them; why is "" if the view is
// offered. All views are offered until an engine has identified itself, and if it failed.
func (a *app) missing(v viewID) (why, advice string) {
	if state := a.snap.Engine.State; a.views[v] == nil || state <= event.EngineLoading || state == event.EngineFailed {
		return "", ""
	}
	return a.views[v].Missing(a.snap)
}

// offers reports whether a view is offered for the engine on the screen.
func (a *app) offers(v viewID) bool {
	why, _ := a.missing(v)
	return why == ""
}

// explain shows why a view is not offered; on a narrow screen, how to get its data instead.
func (a *app) explain(v viewID) {
	const seconds = 4
	why, advice := a.missing(v)
	note := why
	if advice != "" {
		note = pane.FirstFitting(a.w-2, why+"; "+advice, a.views[v].Name()+": "+advice, why)
	}
	a.notifyFor(seconds, note)
}

// updateOffers decides which views are offered, and leaves the view on the screen if it is not one of them. While the
// user moves in time, that view stays: the engine may have its data at another moment. The list of several engines
// offers all views.
func (a *app) updateOffers() {
	offered := everywhere
	if a.view != viewEngines || len(a.sessions) == 1 {
		for v := range numViews {
			if !a.offers(v) {
				offered &^= only(v)
			}
		}
	}
	if (a.status.Paused || a.cfg.Replay != nil) && a.offered.has(a.view) {
		offered |= only(a.view)
	}
	if offered != a.offered {
		a.offered = offered
		a.live = a.keyTable()
		a.updateBindings()
	}
	if left := a.view; !offered.has(left) {
		a.show(viewOverview)
		a.explain(left)
	}
}

// show goes to a view and removes the note in the footer, or shows why the view is not offered. Help and engines store
// the view from which they were opened, to return there.
func (a *app) show(v viewID) {
	if v == a.view {
		return
	}
	if !a.offers(v) {
		a.explain(v)
		return
	}
	if a.view != viewHelp {
		a.helpFrom = a.view
	}
	if a.view != viewHelp && a.view != viewEngines {
		a.viewBefore = a.view
	}
	a.notifyFor(0, "")
	if v == viewHelp || v == viewEngines { // lists that cover the view, as pop-ups do
		a.closePopup()
	}
	a.view = v
	a.updateOffers()
	a.updateEngines()
	a.views[v].Open()
}

// keyOf returns the key of a view by its name, "" if the view is on the screen or not offered.
func (a *app) keyOf(name string) (key string, ok bool) {
	for i, room := range a.tabs {
		switch v := viewID(i); {
		case room.Name() != name || !a.offered.has(v):
		case v == a.view:
			return "", true
		default:
			return viewKey(v), true
		}
	}
	return "", false
}

// zoom shows a pane of the overview in full screen.
func (a *app) zoom(id overview.ID) {
	a.overview.Focus = id
	switch id { // two panes have their own views
	case overview.Experts:
		a.show(viewExperts)
	case overview.Requests:
		a.show(viewRequests)
	default:
		a.show(viewPane)
	}
}

// closePopup closes the pop-up on the screen. What opens another calls it first, so that there is one at most.
func (a *app) closePopup() {
	a.palette.close()
	a.editor.Open, a.alertsOpen, a.marks.open = false, false, false
}

func (a *app) openEditor() {
	a.closePopup()
	a.editor.Show()
}

// openPalette opens the palette with a text.
func (a *app) openPalette(text string) {
	a.closePopup()
	a.palette.show(text)
}

func (a *app) toggleAlerts() {
	opens := !a.alertsOpen
	a.closePopup()
	a.alertsOpen = opens
}

// back closes the pop-up, or goes back from the current view.
func (a *app) back() {
	if a.alertsOpen || a.marks.shown() {
		a.closePopup()
		return
	}
	if a.views[a.view].Back() {
		return
	}
	switch a.view {
	case viewEngines, viewHelp:
		to := a.viewBefore
		if a.view == viewHelp {
			to = a.helpFrom
		}
		if !a.offers(to) { // another engine has been selected
			to = viewOverview
		}
		a.show(to)
	case viewOverview:
		if len(a.sessions) > 1 {
			a.show(viewEngines)
		}
	case viewRequest:
		a.show(viewRequests)
	default:
		a.show(viewOverview)
	}
}

// toggle opens help, engines or operations, or goes back: from help and engines to the last view, from operations to
// the overview.
func (a *app) toggle(v viewID) {
	if a.view == v {
		a.back()
		return
	}
	a.show(v)
}

// Which names the tabs have: that of the current view only, short ones, or whole ones.
const (
	noNames = iota
	shortNames
	fullNames
)

// shortNamesWidth is the width in cells from which all tabs have names.
const shortNamesWidth = 80

// abbreviations are the short names of views whose first three letters do not identify them.
var abbreviations = map[string]string{"Overview": "Ovw", "Requests": "Rqs"}

// tabName returns the name of a view in its tab.
func tabName(names int, name string) string {
	if names != shortNames {
		return name
	}
	return cmp.Or(abbreviations[name], name[:min(len(name), 3)])
}

// drawTabs draws the tabs with their keys and returns their width in cells.
func (a *app) drawTabs(area grid.Area, names int) int {
	clear(a.drawnTabs)
	shown := a.view
	if shown == viewPane {
		shown = viewOverview
	}
	l := area.Line(0, 0)
	for i, room := range a.tabs {
		v, from := viewID(i), l.X
		if !a.offered.has(v) {
			continue
		}
		digit, name := viewKey(v), tabName(names, room.Name())
		switch {
		case v == shown:
			if names == fullNames && i > 0 { // the name before does not touch the badge
				l.Gap(1)
			}
			from = l.X
			l.Put(pane.Badge(a.skin), " "+digit+" "+name+" ")
		case names != noNames:
			l.Put(grid.Fg(theme.Accent).With(grid.Bold), " "+digit).Put(grid.Fg(theme.Text), " "+name)
		default:
			l.Put(grid.Fg(theme.Accent).With(grid.Bold), " "+digit+" ")
		}
		if v != shown && (names == shortNames || names == fullNames && i == len(a.tabs)-1) { // whole names need no wider gap
			l.Gap(1)
		}
		a.drawnTabs[v] = grid.Rect{X: area.X + from, Y: area.Y, W: l.X - from, H: 1}
	}
	return l.X
}

// clickTab goes to the view whose tab is under the mouse, and reports whether there is one.
func (a *app) clickTab(x, y int) bool {
	for v, at := range a.drawnTabs {
		if at.Has(x, y) {
			a.show(v)
			return true
		}
	}
	return false
}
