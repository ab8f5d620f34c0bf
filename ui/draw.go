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
	a.places = a.places[:0]
	a.panes.Suggest = ""
	if a.able(actPrompt) {
		a.panes.Suggest = "press p to type a prompt"
	}
	if a.w < minWidth || a.h < minHeight {
		panes.Vital(all, a.snap, &a.panes)
	} else {
		h := a.h - 2
		if a.cfg.Replay != nil && a.h > minHeight {
			h--
			panes.Progress(all.Sub(0, 1+h, a.w, 1), &a.panes)
		}
		if a.mode == listing {
			panes.EnginesHeader(all.Sub(0, 0, a.w, 1), a.engines.rows, &a.panes)
		} else {
			panes.Header(all.Sub(0, 0, a.w, 1), a.snap, &a.panes)
		}
		a.body(all.Sub(0, 1, a.w, h))
		a.footer(all.Sub(0, a.h-1, a.w, 1))
	}
	if a.editor.open {
		a.editor.draw(all, a.skin)
	}
	a.frame = a.grid.Encode(a.skin)
}

func (a *app) body(area grid.Area) {
	a.panes.Zoomed = a.mode == zoomed
	switch a.mode {
	case helping:
		a.panes.Scroll = drawHelp(area, a.bindings, a.panes.Scroll, a.skin)
	case listing:
		a.engines.first = panes.Engines(area, a.engines.rows, a.engines.selected, a.engines.first, &a.panes)
	case zoomed:
		panes.Draw(a.panes.Focus, area, a.snap, &a.panes)
	default:
		a.places = append(a.places, arrange(a.w, area.H+2)...)
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

// footer writes the keys, or a word about the last one. Keys that do not fit are left out, except help and quit.
func (a *app) footer(area grid.Area) {
	area.Fill(0, 0, area.W, grid.Fg(theme.Dim), ' ')
	if a.toast != "" {
		area.Text(1, 0, grid.Fg(theme.Accent).With(grid.Bold), a.toast)
		return
	}
	words := a.footerKeys()
	room := area.W - 2
	for _, b := range words {
		if essential(b.act) {
			room -= len(b.show) + len(b.word) + 3
		}
	}
	l := area.Line(1, 0)
	for _, b := range words {
		n := len(b.show) + len(b.word) + 3
		if !essential(b.act) {
			if n > room {
				continue
			}
			room -= n
		}
		l.Put(grid.Fg(theme.Accent).With(grid.Bold), b.show).Put(grid.Fg(theme.Dim), " "+b.word).Gap(2)
	}
}

func essential(act action) bool { return act == actHelp || act == actQuit || act == actBack }

// footerKeys are the bindings that the footer shows in this mode.
func (a *app) footerKeys() []binding {
	var out []binding
	for _, b := range a.bindings {
		if a.mode != overview && b.act == actBack {
			b.word = "back"
		}
		if a.mode == listing && b.act == actZoom {
			b.word = "show"
		}
		if b.word != "" && a.able(b.act) && !(a.mode != overview && a.mode != listing && b.act == actZoom) {
			out = append(out, b)
		}
	}
	return out
}

// able reports whether an action can be done at all.
func (a *app) able(act action) bool {
	if a.mode == listing { // which engine is meant would not be clear
		switch act {
		case actPrompt, actCancel, actFaster, actSlower, actNext, actPrevious, actPhase, actPreviousEngine, actNextEngine:
			return false
		}
	}
	switch act {
	case actPrompt:
		return a.session.Actions.Prompt != nil && a.offered(event.CapPrompt)
	case actCancel:
		return a.session.Actions.Cancel != nil && a.offered(event.CapCancel)
	case actFaster, actSlower:
		return a.session.Actions.SetPace != nil
	case actList:
		return a.cfg.Sessions != nil
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
