package ui

import (
	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/theme"
	"github.com/llmtop/llmtop/ui/grid"
	"github.com/llmtop/llmtop/ui/panes"
)

// draw draws the frame of the current state.
func (a *app) draw() {
	a.dirty = false
	a.grid.Reset(a.w, a.h)
	all := a.grid.All()
	a.placements, a.tabs, a.track = a.placements[:0], a.tabs[:0], grid.Rect{}
	a.panes.Suggest = ""
	if a.available(actPrompt) {
		a.panes.Suggest = "press p to type a prompt"
	}
	a.panes.Inspect = a.available(actInspect)
	if a.w < minWidth || a.h < minHeight {
		panes.SmallScreen(all, a.snap, &a.panes)
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
			panes.DrawSince(all.Sub(0, 1, a.w, h), a.snap, &a.panes)
		}
		if a.alertsOpen && a.view != viewHelp {
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
		a.panes.Scroll = a.help.draw(area, a.bindings, a.viewBefore, a.panes.Scroll, a.skin)
	case viewEngines:
		if a.replicas.enabled {
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
		a.placements = append(a.placements, a.layout().arrange(a.w, area.H+2)...)
		a.keepFocus()
		for _, p := range a.placements {
			panes.Draw(p.id, a.grid.Area(p.at), a.snap, &a.panes)
		}
	}
}

// keepFocus moves the focus to a visible pane.
func (a *app) keepFocus() {
	for _, p := range a.placements {
		if p.id == a.panes.Focus {
			return
		}
	}
	if len(a.placements) > 0 {
		a.panes.Focus = a.placements[0].id
	}
}

// footer draws the tabs of the views, and right of them the keys of the current view or a note about the last key. It
// drops keys that do not fit, except help, back and quit.
func (a *app) footer(area grid.Area) {
	area.Fill(0, 0, area.W, grid.Fg(theme.Dim), ' ')
	x := a.drawTabs(area) + 1
	if a.toast != "" {
		if x+1+grid.Width(a.toast) > area.W { // show all of the note: hide the tabs
			area.Fill(0, 0, area.W, grid.Fg(theme.Dim), ' ')
			a.tabs, x = a.tabs[:0], 0
		}
		area.Elide(x+1, 0, area.W-x-1, grid.Fg(theme.Accent).With(grid.Bold), a.toast, a.skin.Glyphs.Ellipsis)
		return
	}
	area = area.Sub(x, 0, area.W-x, 1)
	keys := a.footerKeys()
	room := area.W - 1
	for _, b := range keys {
		if essential(b.act) {
			room -= b.width()
		}
	}
	l := area.Line(1, 0)
	for _, b := range keys {
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

// footerKeys returns the bindings that the footer shows in this view. Keys of this view alone come first, except in the
// overview, where a newcomer first needs the keys that work everywhere; while the view is paused, the keys that move in
// time come first. A key with another meaning in this view is listed for that meaning only.
func (a *app) footerKeys() (out []binding) {
	const timeKeys, ownKeys, otherKeys = 0, 1, 2
	rankOf := func(b *binding) int {
		switch {
		case a.panes.Paused && lookup(historyKeys, b.keys[0], a.view) == b.act:
			return timeKeys
		case b.views != everywhere && a.view != viewOverview:
			return ownKeys
		}
		return otherKeys
	}
	for rank := range otherKeys + 1 {
		for _, b := range a.bindings {
			if b.act == actBack && a.view != viewOverview {
				b.word = "back"
			}
			if b.word != "" && b.views.has(a.view) && rankOf(&b) == rank && lookup(a.bindings, b.keys[0], a.view) == b.act && a.available(b.act) {
				out = append(out, b)
			}
		}
	}
	return out
}

// available reports whether an action is possible now.
func (a *app) available(act action) bool {
	if a.view == viewEngines { // no engine is selected for these actions
		switch act {
		case actPrompt, actCancel, actFaster, actSlower, actPhase, actReport, actMark, actSince, actUnmark, actPreviousEngine, actNextEngine:
			return false
		}
	}
	switch act {
	case actFilter, actColumnLeft, actColumnRight, actReverse:
		return a.view != viewEngines || a.replicas.enabled
	case actPrompt:
		return a.session.Actions.Prompt != nil && a.engineSupports(event.CapPrompt)
	case actCancel:
		return a.session.Actions.Cancel != nil && a.engineSupports(event.CapCancel)
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

// engineSupports reports whether an engine in another process has a capability. For an engine in this process the
// Actions decide.
func (a *app) engineSupports(c event.Caps) bool {
	e := &a.snap.Engine
	return e.Remote.Link == event.LinkNone || e.Caps.Has(c)
}
