package ui

import (
	"github.com/llmtop/llmtop/theme"
	"github.com/llmtop/llmtop/ui/chrome"
	"github.com/llmtop/llmtop/ui/grid"
	"github.com/llmtop/llmtop/ui/view"
	"github.com/llmtop/llmtop/ui/view/engines"
	"github.com/llmtop/llmtop/ui/view/overview"
)

// draw draws the frame of the current state.
func (a *app) draw() {
	a.dirty = false
	a.grid.Reset(a.w, a.h)
	all := a.grid.All()
	a.track, a.popup = grid.Rect{}, grid.Rect{}
	clear(a.drawnTabs)
	a.panes.Suggest = ""
	if a.noPrompt() == "" {
		a.panes.Suggest = "press p to type a prompt"
	}
	a.panes.NoText = a.cfg.NoText
	if a.panes.NoText == "" && a.cfg.Replay != nil {
		a.panes.NoText = "not in the recording: record with --text"
	}
	a.panes.Problems = a.status.Problems()
	a.panes.Inspect = a.session.Actions.Inspect != nil
	if a.w < overview.MinWidth || a.h < overview.MinHeight {
		chrome.DrawSmallScreen(all, a.snap, &a.panes, &a.status)
	} else {
		h := a.h - 2
		if row := all.Sub(0, h, a.w, 1); a.h > overview.MinHeight {
			switch {
			case a.cfg.Replay != nil:
				h--
				a.track = chrome.DrawProgress(row, &a.panes, a.status.Replay)
			case a.history.timeline != nil:
				h--
				a.track = chrome.DrawTimeline(row, &a.panes, a.history.timeline)
			}
		}
		top := 1
		if a.view == viewEngines && len(a.engines.Engines) != 1 {
			engines.DrawHeader(all.Sub(0, 0, a.w, 1), &a.panes, a.engines.Engines, &a.status)
		} else {
			chrome.DrawHeader(all.Sub(0, 0, a.w, 1), a.snap, &a.panes, &a.status)
			if a.h > overview.MinHeight {
				chrome.DrawVerdict(all.Sub(0, 1, a.w, 1), a.snap, &a.panes, a.keyOf)
				top, h = top+1, h-1
			}
		}
		view := all.Sub(0, top, a.w, h)
		if a.view == viewEngines || !chrome.DrawWaiting(view, a.snap, &a.panes) {
			a.views[a.view].Draw(view, a.snap, &a.panes)
		}
		switch {
		case a.marks.shown():
			a.popup = chrome.DrawSince(view, a.snap, &a.panes)
		case a.alertsOpen:
			a.popup = chrome.DrawAlerts(view, &a.panes, a.status.Alerts)
		}
		a.footer(all.Sub(0, a.h-1, a.w, 1))
	}
	if a.editor.Open {
		a.popup = a.editor.Draw(all, a.skin)
	}
	if a.palette.open {
		a.palette.draw(all, a.skin)
	}
}

// keysRoom is the room in cells that the keys have beside whole names of tabs, at least.
const keysRoom = 45

// footer draws the tabs of the views, and right of them the keys of the current view or a note about the last key. Names
// of tabs are whole as soon as the keys have keysRoom beside them; with shorter names the keys take no more than that: a
// wider terminal never shows fewer keys. From the first key that does not fit, it drops all except help, back and quit.
func (a *app) footer(area grid.Area) {
	keys := a.footerKeys()
	timed := a.status.Paused || a.cfg.Replay != nil // the keys that move in time need the room
	need := 0
	for _, b := range keys {
		if timed && !b.essential && !a.movesInTime(&b) {
			continue
		}
		need += b.width()
	}
	switch {
	case a.toast != "":
		need = 1 + grid.Width(a.toast)
	case !timed:
		need = min(need, keysRoom)
	}
	x := 0
	tabs := func(names int) {
		area.Fill(0, 0, area.W, grid.Fg(theme.Dim), ' ')
		x = a.drawTabs(area, names) + 1
	}
	room := area.W // of the keys
	if tabs(fullNames); x+need > area.W {
		switch tabs(shortNames); {
		case timed && x+need > area.W:
			tabs(noNames)
		case area.W < shortNamesWidth:
			room = shortNamesWidth - x // no more keys than with names
			tabs(noNames)
		default:
			room = need
		}
	}
	if a.toast != "" {
		wide := func() bool { return x+1+grid.Width(a.toast) > area.W }
		if wide() { // show all of the note: hide the names of the tabs, then the tabs
			tabs(noNames)
		}
		if wide() {
			area.Fill(0, 0, area.W, grid.Fg(theme.Dim), ' ')
			clear(a.drawnTabs)
			x = 0
		}
		role := theme.Accent
		if a.toastBad {
			role = theme.Bad
		}
		area.Elide(x+1, 0, area.W-x-1, grid.Fg(role).With(grid.Bold), a.toast, a.skin.Glyphs.Ellipsis)
		return
	}
	area = area.Sub(x, 0, area.W-x, 1)
	room = min(area.W, room) + 1 // the last key needs no gap of two
	for _, b := range keys {
		if b.essential {
			room -= b.width()
		}
	}
	l := area.Line(1, 0)
	for _, b := range keys {
		if !b.essential {
			if room -= b.width(); room < 0 {
				continue
			}
		}
		l.Put(grid.Fg(theme.Accent).With(grid.Bold), b.Show).Put(grid.Fg(theme.Dim), " "+b.Word).Gap(2)
	}
}

// typingKeys are the keys of the input line of a view.
var typingKeys = []binding{
	{Key: view.Key{Show: "enter", Word: "keep"}, essential: true},
	{Key: view.Key{Show: "esc", Word: "undo"}, essential: true},
}

// movesInTime reports whether a key pauses the view or moves it in time.
func (a *app) movesInTime(b *binding) bool { return b.time || b.Keys[0] == "space" }

// footerKeys returns the bindings that the footer shows in this view. Keys of this view alone come first, except in the
// overview, where a newcomer first needs the keys that work everywhere; while the view is paused, the keys that move in
// time come first. A key with another meaning in this view is listed for that meaning only. While the user types, they
// are the keys of the input line.
func (a *app) footerKeys() (out []binding) {
	if a.typist() != nil {
		return typingKeys
	}
	const timeKeys, ownKeys, otherKeys = 0, 1, 2
	rankOf := func(b *binding) int {
		switch {
		case a.status.Paused && a.movesInTime(b):
			return timeKeys
		case b.views != everywhere && a.view != viewOverview:
			return ownKeys
		}
		return otherKeys
	}
	for rank := range otherKeys + 1 {
		for _, b := range a.bindings {
			switch {
			case b.Name == "back" && a.view != viewOverview:
				b.Word = b.Name
			case b.Name == "play or pause":
				b.Word = a.travel.playWord()
			}
			if b.Word != "" && b.views.has(a.view) && rankOf(&b) == rank && b.is(a.find(b.Keys[0])) && b.why() == "" {
				out = append(out, b)
			}
		}
	}
	return out
}
