package ui

import (
	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/theme"
	"github.com/llmtop/llmtop/ui/grid"
	"github.com/llmtop/llmtop/ui/panes"
)

// draw makes the frame of the state as it is.
func (a *app) draw() {
	a.dirty = false
	a.grid.Reset(a.w, a.h)
	all := a.grid.All()
	a.places, a.tabs, a.track = a.places[:0], a.tabs[:0], grid.Rect{}
	a.panes.Suggest = ""
	if a.able(actPrompt) {
		a.panes.Suggest = "press p to type a prompt"
	}
	a.panes.Inspect = a.able(actInspect)
	if a.w < minWidth || a.h < minHeight {
		panes.Vital(all, a.snap, &a.panes)
	} else {
		h := a.h - 2
		if row := all.Sub(0, h, a.w, 1); a.h > minHeight {
			switch {
			case a.cfg.Replay != nil:
				h--
				a.track = panes.Progress(row, &a.panes)
			case a.panes.Timeline != nil:
				h--
				a.track = panes.DrawTimeline(row, a.panes.Timeline, &a.panes)
			}
		}
		if a.view == viewEngines {
			panes.EnginesHeader(all.Sub(0, 0, a.w, 1), a.engines.rows, &a.panes)
		} else {
			panes.Header(all.Sub(0, 0, a.w, 1), a.snap, &a.panes)
		}
		a.body(all.Sub(0, 1, a.w, h))
		if a.marks.open && len(a.panes.Marks) > 0 && a.view != viewHelp && a.view != viewEngines {
			panes.Since(all.Sub(0, 1, a.w, h), a.snap, &a.panes)
		}
		if a.alerts && a.view != viewHelp {
			panes.DrawAlerts(all.Sub(0, 1, a.w, h), &a.panes)
		}
		a.footer(all.Sub(0, a.h-1, a.w, 1))
	}
	if a.editor.open {
		a.editor.draw(all, a.skin)
	}
	if a.palette.open {
		a.drawPalette(all)
	}
	a.frame = a.grid.Encode(a.skin)
}

func (a *app) body(area grid.Area) {
	switch a.view {
	case viewHelp:
		a.panes.Scroll = drawHelp(area, a.bindings, a.before, a.panes.Scroll, a.skin)
	case viewEngines:
		if a.replicas.on {
			a.replicas.draw(area, &a.panes)
			break
		}
		a.engines.at = panes.Engines(area, a.engines.rows, a.engines.selected, a.engines.first, &a.panes)
		a.engines.first = a.engines.at.First
	case viewRequests:
		a.requests.draw(area, a.snap, &a.panes)
	case viewRequest:
		a.requests.drawRequest(area, a.snap, &a.panes)
	case viewPane:
		a.drawPane(area, a.panes.Focus, "")
	case viewLatency:
		panes.Latency(area, a.snap, &a.panes)
	case viewOps:
		panes.Operations(area, a.snap, &a.panes)
	case viewExperts:
		a.experts.draw(area, a.snap, &a.panes)
	case viewSystem:
		a.drawSystem(area)
	default:
		a.places = append(a.places, a.layout().arrange(a.w, area.H+2)...)
		a.keepFocus()
		for _, p := range a.places {
			panes.Draw(p.id, a.grid.Area(p.at), a.snap, &a.panes)
		}
	}
}

// keepFocus moves the focus to a pane that is on the screen.
func (a *app) keepFocus() {
	for _, p := range a.places {
		if p.id == a.panes.Focus {
			return
		}
	}
	if len(a.places) > 0 {
		a.panes.Focus = a.places[0].id
	}
}

// footer writes the views, and right of them the keys of the one on show or a word about the last key. Keys that do not fit are left
// out, except help and quit.
func (a *app) footer(area grid.Area) {
	area.Fill(0, 0, area.W, grid.Fg(theme.Dim), ' ')
	x := a.drawTabs(area) + 1
	if a.toast != "" {
		if x+1+grid.Width(a.toast) > area.W { // nothing of it may be lost: it takes the place of the views
			area.Fill(0, 0, area.W, grid.Fg(theme.Dim), ' ')
			a.tabs, x = a.tabs[:0], 0
		}
		area.Elide(x+1, 0, area.W-x-1, grid.Fg(theme.Accent).With(grid.Bold), a.toast, a.skin.Glyphs.Ellipsis)
		return
	}
	area = area.Sub(x, 0, area.W-x, 1)
	words := a.footerKeys()
	room := area.W - 1
	for _, b := range words {
		if essential(b.act) {
			room -= b.width()
		}
	}
	l := area.Line(1, 0)
	for _, b := range words {
		if !essential(b.act) {
			if b.width() > room {
				continue
			}
			room -= b.width()
		}
		l.Put(grid.Fg(theme.Accent).With(grid.Bold), b.show).Put(grid.Fg(theme.Dim), " "+b.word).Gap(2)
	}
}

func essential(act action) bool { return act == actHelp || act == actQuit || act == actBack }

// footerKeys are the bindings that the footer shows in this view, those of this view alone first; the overview, which is what a newcomer
// sees, begins with what goes for all views, and a view that is paused with the way through time. Keys that mean something else in this view
// are not shown for that.
func (a *app) footerKeys() (out []binding) {
	const ways, own, rest = 0, 1, 2
	ranked := func(b *binding) int {
		switch {
		case a.panes.Paused && lookup(travelling, b.keys[0], a.view) == b.act:
			return ways
		case b.in != everywhere && a.view != viewOverview:
			return own
		}
		return rest
	}
	for rank := range rest + 1 {
		for _, b := range a.bindings {
			if b.act == actBack && a.view != viewOverview {
				b.word = "back"
			}
			if b.word != "" && b.in.has(a.view) && ranked(&b) == rank && lookup(a.bindings, b.keys[0], a.view) == b.act && a.able(b.act) {
				out = append(out, b)
			}
		}
	}
	return out
}

// able reports whether an action can be done at all.
func (a *app) able(act action) bool {
	if a.view == viewEngines { // which engine is meant would not be clear
		switch act {
		case actPrompt, actCancel, actFaster, actSlower, actPhase, actReport, actMark, actSince, actUnmark, actPreviousEngine, actNextEngine:
			return false
		}
	}
	switch act {
	case actFilter, actColumnLeft, actColumnRight, actReverse:
		return a.view != viewEngines || a.replicas.on
	case actPrompt:
		return a.session.Actions.Prompt != nil && a.offered(event.CapPrompt)
	case actCancel:
		return a.session.Actions.Cancel != nil && a.offered(event.CapCancel)
	case actFaster, actSlower:
		return a.session.Actions.SetPace != nil
	case actReport:
		return a.session.Actions.Report != nil
	case actInspect:
		return a.session.Actions.Inspect != nil
	case actPreviousEngine, actNextEngine:
		return len(a.sessions) > 1
	}
	return true
}

// offered reports whether an engine in another process can be asked for something; of one in this process the actions tell.
func (a *app) offered(c event.Caps) bool {
	e := &a.snap.Engine
	return e.Remote.Link == event.LinkNone || e.Caps.Has(c)
}
