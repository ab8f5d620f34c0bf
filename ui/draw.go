package ui

import (
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
	if a.w < minWidth || a.h < minHeight {
		panes.Vital(all, a.snap, &a.panes)
	} else {
		panes.Header(all.Sub(0, 0, a.w, 1), a.snap, &a.panes)
		a.body(all.Sub(0, 1, a.w, a.h-2))
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
		a.panes.Scroll = drawHelp(area, a.panes.Scroll, a.skin)
	case zoomed:
		panes.Draw(a.panes.Focus, area, a.snap, &a.panes)
	default:
		a.places = append(a.places, arrange(a.w, a.h)...)
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
	for _, b := range bindings {
		if a.mode != overview && b.act == actBack {
			b.word = "back"
		}
		if b.word != "" && a.able(b.act) && !(a.mode != overview && b.act == actZoom) {
			out = append(out, b)
		}
	}
	return out
}

// able reports whether an action can be done at all.
func (a *app) able(act action) bool {
	switch act {
	case actPrompt:
		return a.cfg.Actions.Prompt != nil
	case actCancel:
		return a.cfg.Actions.Cancel != nil
	case actFaster, actSlower:
		return a.cfg.Actions.SetPace != nil
	}
	return true
}
