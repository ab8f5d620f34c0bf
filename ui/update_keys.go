package ui

import (
	"slices"

	tea "charm.land/bubbletea/v2"

	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/theme"
	"github.com/llmtop/llmtop/ui/panes"
	"github.com/llmtop/llmtop/ui/sanitize"
)

// page is how many rows a page key scrolls, wheel how many a notch of the mouse wheel does.
const (
	page  = 10
	wheel = 3
)

// onKey does what a key says. While a prompt is typed, keys belong to the editor.
func (a *app) onKey(msg tea.KeyPressMsg) tea.Cmd {
	if a.editor.open {
		if a.editor.key(msg.Keystroke(), msg.Text) {
			text, label := a.editor.take()
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
	if act := a.lookup(key); a.able(act) {
		return a.run(act, key)
	}
	return nil
}

// run does what a key, or a command of the palette, is for.
func (a *app) run(act action, key string) tea.Cmd {
	switch act {
	case actQuit:
		return tea.Quit
	case actSuspend:
		return func() tea.Msg { suspend(); return nil } // not before the key has been dealt with
	case actCopy:
		if text, ok := a.copied(); ok {
			return tea.SetClipboard(text)
		}
	case actReport:
		write := a.reporting()
		return func() tea.Msg { return write() }
	case actView:
		a.show(view(slices.Index(viewKeys[:], key)))
	default:
		a.do(act)
	}
	return nil
}

// do handles the actions that change what is seen or asked of the engine.
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
		a.zoom(c.Focus)
	case actShow:
		a.showEngine()
	case actList:
		a.toggle(viewEngines)
	case actOps:
		a.toggle(viewOps)
	case actPreviousEngine, actNextEngine:
		a.turn(act == actNextEngine)
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
		c.Latency = (c.Latency + 1) % panes.NumLatencyPages
	case actPageBack:
		c.Latency = (c.Latency + panes.NumLatencyPages - 1) % panes.NumLatencyPages
	case actInspect:
		a.inspect()
	case actBack:
		a.back()
	case actHelp:
		a.toggle(viewHelp)
	case actWindow:
		c.Window = (c.Window + 1) % metric.NumWindows
		a.say("window: " + c.Window.String())
	case actPhase:
		c.Phase = (c.Phase + 1) % metric.NumPhases
		a.say("router picks: " + c.Phase.String())
	case actTheme:
		a.theme = (a.theme + 1) % len(theme.Palettes())
		a.dress()
		a.say("theme: " + a.skin.Palette.Name)
	case actPalette:
		a.palette.show()
	case actSnapshot:
		a.snapshot()
	case actMark:
		a.mark()
	case actSince:
		a.toggleSince()
	case actUnmark:
		a.unmark()
	case actAlerts:
		a.alerts = !a.alerts
	case actCancel:
		a.cancel()
	case actFaster, actSlower:
		a.pace(act == actFaster)
	default:
		if !a.steer(act) && !a.roam(act) {
			a.scroll(act)
		}
	}
}

// zoom gives a pane of the overview the whole screen.
func (a *app) zoom(id panes.ID) {
	a.panes.Focus = id
	if id == panes.Experts { // which has a view of its own
		a.show(viewExperts)
		return
	}
	a.show(viewPane)
}

// moveFocus goes to the next or previous pane: of those on the overview, or of all while one has the screen.
func (a *app) moveFocus(forward bool) {
	order := make([]panes.ID, 0, panes.NumPanes)
	for _, p := range a.places {
		order = append(order, p.id)
	}
	if len(order) == 0 {
		for id := range panes.NumPanes {
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
	i := max(slices.Index(order, a.panes.Focus), 0)
	a.panes.Focus, a.panes.Scroll = order[(i+step)%len(order)], 0
}

// scroll moves through a zoomed list or the help. The text is read from its end, so its rows count from there.
func (a *app) scroll(act action) {
	if a.view == viewOverview {
		return
	}
	by := map[action]int{actUp: -1, actDown: 1, actPageUp: -page, actPageDown: page, actTop: -1 << 20, actBottom: 1 << 20}[act]
	if a.view == viewEngines && a.replicas.on {
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
	if a.view == viewPane && a.panes.Focus == panes.Text {
		by = -by
	}
	a.panes.Scroll = max(a.panes.Scroll+by, 0)
}

// cancel cancels the request that is shown: in the table and alone the one that is selected.
func (a *app) cancel() {
	r := a.snap.Current
	if a.view == viewRequests || a.view == viewRequest {
		r = a.requests.current(a.snap)
	}
	if r == nil || r.State.Final() {
		a.say("no request is running")
		return
	}
	a.report(a.session.Actions.Cancel(r.ID), "request cancelled")
}

// paces are the steps of the pace keys, in tokens/s; 0 is flat out, beyond the fastest.
var paces = []float64{2, 5, 10, 20, 40, 80, 160, 0}

// nextPace is the step beyond a pace, in either direction; the ends stay.
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

// pace moves one step from the engine's pace.
func (a *app) pace(faster bool) {
	to := nextPace(a.snap.Engine.Pace, faster)
	words := "pace: flat out"
	if to > 0 {
		words = "pace: " + metric.Rate(to) + " tokens/s"
	}
	a.report(a.session.Actions.SetPace(to), words)
}

// onPaste puts pasted text into the editor, which it opens.
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
	if !a.able(actPrompt) {
		return
	}
	if !a.editor.open {
		a.editor.show()
	}
	a.editor.insert(text)
}

// onClick goes to the view whose tab is under the mouse, moves the focus to the pane there, or zooms it by its title or if it has the focus.
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
		if a.replicas.on {
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
	for _, p := range a.places {
		if !p.at.Has(x, y) {
			continue
		}
		if a.panes.Focus == p.id || y == p.at.Y {
			a.zoom(p.id)
		}
		a.panes.Focus = p.id
		return
	}
}

// hover looks at what is under the mouse, and reports whether that is something else than before.
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

// report shows how an action went.
func (a *app) report(err error, done string) {
	if err != nil {
		done = sanitize.Line(err.Error())
	}
	a.say(done)
}

// say shows a word about the last key for two seconds.
func (a *app) say(words string) { a.toast, a.toastIn = words, 2*a.cfg.FPS }
