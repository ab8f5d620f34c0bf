package ui

import (
	"slices"

	tea "charm.land/bubbletea/v2"

	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/theme"
	"github.com/llmtop/llmtop/ui/sanitize"
	"github.com/llmtop/llmtop/ui/view/latency"
	"github.com/llmtop/llmtop/ui/view/overview"
)

// page is the number of rows per page key, wheel the number per notch of the mouse wheel.
const (
	page  = 10
	wheel = 3
)

// onKey handles a key. While the user types, keys go to the input line.
func (a *app) onKey(msg tea.KeyPressMsg) tea.Cmd {
	if a.editor.open {
		if a.editor.key(msg.Keystroke(), msg.Text) {
			text, label := a.editor.submit()
			note, err := a.session.Actions.Prompt(text, label)
			if note != "" {
				note = "; " + sanitize.Line(note)
			}
			a.report(err, "prompt sent"+note)
		}
		return nil
	}
	if a.palette.open {
		return a.onPaletteKey(msg.Keystroke(), msg.Text)
	}
	if a.view == viewRequests && a.requests.typing {
		a.requests.onKey(msg.Keystroke(), msg.Text)
		return nil
	}
	if a.view == viewEngines && a.replicas.typing {
		a.replicas.onKey(msg.Keystroke(), msg.Text)
		return nil
	}
	if a.view == viewExperts && a.experts.typing {
		a.experts.onKey(msg.Keystroke(), msg.Text, a.snap, &a.panes)
		return nil
	}
	key := msg.String()
	if key == " " {
		key = "space"
	}
	if act := a.lookup(key); a.available(act) {
		return a.run(act, key)
	}
	return nil
}

// run performs an action of a key or of a palette command.
func (a *app) run(act action, key string) tea.Cmd {
	switch act {
	case actQuit:
		return tea.Quit
	case actSuspend:
		return func() tea.Msg { suspend(); return nil } // after the key has been handled
	case actCopy:
		if text, ok := a.requestToCopy(); ok {
			return tea.SetClipboard(text)
		}
	case actReport:
		write := a.reportWriter()
		return func() tea.Msg { return write() }
	case actView:
		a.show(view(slices.Index(viewKeys[:], key)))
	default:
		a.do(act)
	}
	return nil
}

// do performs the actions that change the screen or call the engine.
func (a *app) do(act action) {
	c := &a.panes
	switch act {
	case actPrompt:
		a.editor.show()
	case actPause:
		a.pause()
	case actNext, actPrevious:
		a.moveFocus(act == actNext)
	case actZoom:
		a.zoom(a.focus)
	case actShow:
		a.showEngine()
	case actList:
		a.toggle(viewEngines)
	case actOps:
		a.toggle(viewOps)
	case actPreviousEngine, actNextEngine:
		a.switchEngine(act == actNextEngine)
	case actFilter, actFollow, actColumnLeft, actColumnRight, actReverse:
		if a.view == viewEngines {
			a.replicas.do(act)
			break
		}
		a.requests.do(act, a.snap)
	case actOpen, actTokenLeft, actTokenRight, actRequestAbove, actRequestBelow, actAxis, actNextStall, actSlowest:
		a.doRequest(act)
	case actExpertLeft, actExpertRight, actFind, actFindNext, actBudgetLess, actBudgetMore, actSplit, actSection, actSpan:
		a.doExperts(act)
	case actPage:
		a.latencyPage = (a.latencyPage + 1) % latency.NumPages
	case actPageBack:
		a.latencyPage = (a.latencyPage + latency.NumPages - 1) % latency.NumPages
	case actInspect:
		a.inspect()
	case actBack:
		a.back()
	case actHelp:
		a.toggle(viewHelp)
	case actWindow:
		c.Window = (c.Window + 1) % metric.NumWindows
		a.notify("window: " + c.Window.String())
	case actPhase:
		c.Phase = (c.Phase + 1) % metric.NumPhases
		a.notify("router picks: " + c.Phase.String())
	case actTheme:
		a.theme = (a.theme + 1) % len(theme.Palettes())
		a.applyTheme()
		a.notify("theme: " + a.skin.Palette.Name)
	case actPalette:
		a.palette.show()
	case actSnapshot:
		a.writeScreenshot()
	case actMark:
		a.mark()
	case actSince:
		a.toggleSince()
	case actUnmark:
		a.clearMarks()
	case actAlerts:
		a.alertsOpen = !a.alertsOpen
	case actCancel:
		a.cancel()
	case actFaster, actSlower:
		a.pace(act == actFaster)
	default:
		if !a.doReplay(act) && !a.doHistory(act) {
			a.scroll(act)
		}
	}
}

// zoom shows a pane of the overview in full screen.
func (a *app) zoom(id overview.ID) {
	a.focus = id
	if id == overview.Experts { // this pane has its own view
		a.show(viewExperts)
		return
	}
	a.show(viewPane)
}

// moveFocus focuses the next or previous pane: of those on the overview, or of all panes in full screen.
func (a *app) moveFocus(forward bool) {
	order := make([]overview.ID, 0, overview.NumPanes)
	for _, p := range a.placements {
		order = append(order, p.id)
	}
	if len(order) == 0 {
		for id := range overview.NumPanes {
			order = append(order, id)
		}
	}
	if len(a.layout().rows) == 0 {
		slices.Sort(order)
	}
	step := 1
	if !forward {
		step = len(order) - 1
	}
	i := max(slices.Index(order, a.focus), 0)
	a.focus = order[(i+step)%len(order)]
	a.resetScroll()
}

// scroll scrolls or selects in the current view. Text is scrolled from its end, so its rows count from there.
func (a *app) scroll(act action) {
	if a.view == viewOverview {
		return
	}
	by := map[action]int{actUp: -1, actDown: 1, actPageUp: -page, actPageDown: page, actTop: -1 << 20, actBottom: 1 << 20}[act]
	if a.view == viewEngines && a.replicas.enabled {
		a.replicas.pin(a.replicas.shown.Selected + by)
		return
	}
	if a.view == viewEngines {
		a.engines.selected = max(min(a.engines.selected+by, len(a.sessions)-1), 0)
		return
	}
	switch a.view {
	case viewRequests:
		a.requests.move(by)
		return
	case viewRequest:
		a.requests.scroll(by)
		return
	case viewExperts:
		a.experts.scroll(a.snap, by)
		return
	}
	if a.view == viewPane && a.focus == overview.Text {
		by = -by
	}
	row := a.scrollRow()
	*row = max(*row+by, 0)
}

// scrollRow returns the first row of what scrolls in the current view.
func (a *app) scrollRow() *int {
	switch {
	case a.view == viewSystem:
		return &a.machine.Scroll
	case a.view == viewPane && a.focus == overview.Machine:
		return &a.zoomed.Machine.Scroll
	case a.view == viewPane:
		return &a.zoomed.Scroll
	}
	return &a.scrolled
}

// resetScroll shows the first rows.
func (a *app) resetScroll() {
	a.scrolled, a.zoomed.Scroll, a.zoomed.Machine.Scroll, a.machine.Scroll = 0, 0, 0, 0
}

// cancel cancels the request on the screen: in the requests table and in the request view the selected one.
func (a *app) cancel() {
	r := a.snap.Current
	if a.view == viewRequests || a.view == viewRequest {
		r = a.requests.current(a.snap)
	}
	if r == nil || r.State.Final() {
		a.notify("no request is running")
		return
	}
	a.report(a.session.Actions.Cancel(r.ID), "request cancelled")
}

// paces are the steps of the pace keys, in tokens/s; 0 is unlimited, after the fastest.
var paces = []float64{2, 5, 10, 20, 40, 80, 160, 0}

// nextPace returns the next faster or slower pace; the ends stay.
func nextPace(now float64, faster bool) float64 {
	if faster {
		if now <= 0 {
			return 0
		}
		return paces[slices.IndexFunc(paces, func(p float64) bool { return p == 0 || p > now })]
	}
	for i := len(paces) - 2; i >= 0; i-- {
		if now <= 0 || paces[i] < now {
			return paces[i]
		}
	}
	return now
}

// pace changes the engine's pace by one step.
func (a *app) pace(faster bool) {
	to := nextPace(a.snap.Engine.Pace, faster)
	note := "pace: unlimited"
	if to > 0 {
		note = "pace: " + metric.Rate(to) + " tokens/s"
	}
	a.report(a.session.Actions.SetPace(to), note)
}

// onPaste inserts pasted text into the open input line, or opens the prompt editor with it.
func (a *app) onPaste(text string) {
	if a.palette.open {
		a.palette.line.insert(text)
		a.palette.selected = 0
		return
	}
	if a.view == viewRequests && a.requests.typing {
		a.requests.paste(text)
		return
	}
	if a.view == viewEngines && a.replicas.typing {
		a.replicas.paste(text)
		return
	}
	if a.view == viewExperts && a.experts.typing {
		a.experts.paste(text, a.snap, &a.panes)
		return
	}
	if !a.available(actPrompt) {
		return
	}
	if !a.editor.open {
		a.editor.show()
	}
	a.editor.insert(text)
}

// onClick handles a click: it goes to the view of a tab, to a moment of the timeline, or selects or opens what is under
// the mouse. In the overview a click focuses a pane; on its title, or if it has the focus, the pane opens in full
// screen.
func (a *app) onClick(x, y int) {
	if a.clickTab(x, y) || a.clickTrack(x, y) {
		return
	}
	switch a.view {
	case viewRequests:
		if a.requests.onClick(x, y) {
			a.doRequest(actOpen)
		}
		return
	case viewRequest, viewExperts:
		a.hover(x, y)
		return
	case viewEngines:
		if a.replicas.enabled {
			if a.replicas.onClick(x, y) {
				a.do(actShow)
			}
			return
		}
		if i := a.engines.at.Row(x, y); i >= 0 {
			if i == a.engines.selected {
				a.do(actShow)
			}
			a.engines.selected = i
		}
		return
	}
	for _, p := range a.placements {
		if !p.at.Has(x, y) {
			continue
		}
		if a.focus == p.id || y == p.at.Y {
			a.zoom(p.id)
		}
		a.focus = p.id
		return
	}
}

// hover selects what is under the mouse and reports whether the selection changed.
func (a *app) hover(x, y int) bool {
	switch a.view {
	case viewRequest:
		return a.requests.hover(x, y)
	case viewExperts:
		return a.experts.hover(a.snap, x, y)
	}
	return false
}

func (a *app) onWheel(b tea.MouseButton) {
	act := actDown
	if b == tea.MouseWheelUp {
		act = actUp
	}
	if a.palette.open {
		a.movePalette(map[action]int{actUp: -1, actDown: 1}[act])
		return
	}
	for range wheel {
		a.scroll(act)
	}
}

// report shows the result of an action in the footer.
func (a *app) report(err error, note string) {
	if err != nil {
		note = sanitize.Line(err.Error())
	}
	a.notify(note)
}

// notify shows a note in the footer for two seconds.
func (a *app) notify(note string) { a.toast, a.toastIn = note, 2*a.cfg.FPS }
