package ui

import (
	"testing"

	tea "charm.land/bubbletea/v2"

	"github.com/llmtop/llmtop/profiler/event/eventtest"
	"github.com/llmtop/llmtop/profiler/recording"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/theme"
	"github.com/llmtop/llmtop/ui/grid"
	"github.com/llmtop/llmtop/ui/pane"
	"github.com/llmtop/llmtop/ui/view/overview"
	"github.com/llmtop/llmtop/ui/view/viewtest"
)

// Every size up to the first one with panes, and some larger ones, in every state of a session and every mode.
func TestSweepScreen(t *testing.T) {
	for _, sc := range viewtest.Scenes {
		t.Run(sc.Name, func(t *testing.T) {
			t.Parallel()
			s := sc.Make().Snapshot()
			for w := 1; w <= overview.MinWidth+2; w += eventtest.Step(7) {
				for h := 1; h <= overview.MinHeight+2; h++ {
					sweep(t, s, w, h, w >= overview.MinWidth && h >= overview.MinHeight)
				}
			}
			for _, size := range [][2]int{
				{60, 40}, {79, 24}, {80, 24}, {99, 30}, {100, 18}, {100, 30}, {139, 40}, {140, 41}, {500, 200}, {1000, 10}, {1000, 18}, {60, 500}, {3, 300},
			} {
				sweep(t, s, size[0], size[1], true)
			}
		})
	}
}

// The same for the list of several engines, single engines, a recording and a replay.
func TestSweepSurroundings(t *testing.T) {
	all := sessionsOf(viewtest.SeveralEngines())
	for w := 1; w <= 130; w += eventtest.Step(3) * (1 + w/overview.MinWidth*3) {
		for h := 1; h <= 45; h += 1 + h/(overview.MinHeight+2)*5 {
			for i, rec := range recordings {
				a := openFleet(&all, w%2 == 0, w, h)
				a.cfg.Recording = func() (recording.RecordStatus, bool) { return rec.RecordStatus, true }
				a.updateStatus()
				a.press("down", "down", "down", "down", "down", "down")
				checkFrame(t, a.View().Content, w, h)
				a.press("enter")
				checkFrame(t, a.View().Content, w, h)
				for range 1 + i {
					a.press("]", "z")
					checkFrame(t, a.View().Content, w, h)
				}
			}
			p := newPlayer()
			p.Speed = recording.Unpaced
			a := openReplay(p, w, h)
			checkFrame(t, a.View().Content, w, h)
		}
	}
}

// sweep draws the overview with and without the prompt editor; full: also each pane in full screen and the help.
func sweep(t *testing.T, s *store.Snapshot, w, h int, full bool) {
	a := open(s, theme.TrueColour, w%2 == 0, w, h)
	show := func(keys ...string) {
		a.press(keys...)
		checkFrame(t, a.View().Content, w, h)
	}
	show("space")
	show("p", "tab", "日")
	show("esc")
	if !full {
		return
	}
	for id := range overview.NumPanes {
		a.zoom(id)
		show("pgdown", "w", "e")
		show("end")
	}
	for v := range numTabs {
		show(viewKey(v))
		show("pgdown")
	}
	show("o")
	show("pgdown")
	show("?")
	show("end")
}

// Each pane alone in every small area, in both of its forms, also where the layouts never place one.
func TestSweepPanes(t *testing.T) {
	for _, sc := range viewtest.Scenes {
		t.Run(sc.Name, func(t *testing.T) {
			t.Parallel()
			s := sc.Make().Snapshot()
			var g grid.Grid
			c := pane.Frame{Skin: theme.NewSkin(theme.Palettes()[0], theme.TrueColour, theme.Unicode)}
			for w := 1; w <= 60; w++ {
				for h := 1; h <= 30; h += 1 + h/12 {
					for id := range overview.NumPanes {
						var zoom *overview.Zoom
						if (w+h)%2 == 0 {
							zoom = &overview.Zoom{}
						}
						g.Reset(w, h)
						overview.Draw(g.All(), s, &c, id, false, zoom)
						checkFrame(t, g.Encode(c.Skin), w, h)
					}
				}
			}
		})
	}
}

// Resizing leaves nothing of an earlier size behind.
func TestResizeLeavesNothingBehind(t *testing.T) {
	s := viewtest.LiveSnapshot()
	a := open(s, theme.TrueColour, false, 200, 60)
	a.View()
	for _, size := range [][2]int{{80, 24}, {1, 1}, {160, 45}, {61, 18}, {120, 36}} {
		a.Update(tea.WindowSizeMsg{Width: size[0], Height: size[1]})
		fresh := open(s, theme.TrueColour, false, size[0], size[1])
		if a.View().Content != fresh.View().Content {
			t.Errorf("%dx%d differs from a fresh screen of this size", size[0], size[1])
		}
	}
}
