package ui

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"

	tea "charm.land/bubbletea/v2"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/ui/sanitize"
	"github.com/llmtop/llmtop/ui/view"
)

// wheel is the number of rows per notch of the mouse wheel.
const wheel = 3

// onKey handles a key. While the user types, keys go to the input line.
func (a *app) onKey(msg tea.KeyPressMsg) {
	switch room := a.typist(); {
	case a.editor.Open:
		if a.editor.Key(msg.Keystroke(), msg.Text) {
			a.sendPrompt()
		}
		return
	case a.palette.open:
		a.palette.key(msg.Keystroke(), msg.Text)
		return
	case room != nil:
		room.Type(msg.Keystroke(), msg.Text)
		return
	}
	a.pressed = msg.String()
	if a.pressed == " " {
		a.pressed = "space"
	}
	switch b := a.find(a.pressed); {
	case b == nil:
		a.showElsewhere(a.pressed)
	case b.why() != "":
		a.Notify(b.Show + ": " + b.why())
	default:
		b.Do()
	}
	if a.typist() != nil {
		a.closePopup()
	}
}

// showElsewhere shows in which views a key does something that does nothing in this one.
func (a *app) showElsewhere(key string) {
	var views viewSet
	for _, b := range a.working() {
		if slices.Contains(b.Keys, key) {
			views |= b.views
		}
	}
	names := a.viewNames(views)
	if slices.ContainsFunc(a.travel.keys(), func(k view.Key) bool { return slices.Contains(k.Keys, key) }) {
		names = "a paused view: press space"
	}
	if names != "" {
		a.Notify(key + " works in " + names)
	}
}

// typist returns the view with an open input line, or nil.
func (a *app) typist() view.View {
	if room := a.views[a.view]; room.Typing() {
		return room
	}
	return nil
}

func (a *app) sendPrompt() {
	text, label, copies := a.editor.Submit()
	sent, note, err := 0, "", error(nil)
	for ; sent < copies && err == nil; sent++ {
		note, err = a.session.Actions.Prompt(text, label)
	}
	if err != nil && sent > 1 {
		err = fmt.Errorf("sent %d of %d: %w", sent-1, copies, err)
	}
	words := "prompt sent"
	if copies > 1 {
		words += " " + strconv.Itoa(copies) + " times"
	}
	if note != "" {
		words += "; " + sanitize.Line(note)
	}
	a.report(err, words)
}

// later runs a command of the terminal library after the message at hand.
func (a *app) later(cmd tea.Cmd) { a.after = cmd }

func (a *app) quit() { a.later(tea.Quit) }

func (a *app) suspend() { a.later(func() tea.Msg { suspend(); return nil }) }

// Copy implements view.Program.
func (a *app) Copy(text string) { a.later(func() tea.Msg { return copyMsg(text) }) }

func (a *app) nextWindow() {
	a.panes.Window = (a.panes.Window + 1) % metric.NumWindows
	a.Notify("window: " + a.panes.Window.String())
}

func (a *app) nextPhase() {
	a.panes.Phase = (a.panes.Phase + 1) % metric.NumPhases
	a.Notify("router picks: " + a.panes.Phase.String())
}

func (a *app) nextTheme() {
	a.theme, a.themeChosen = (a.theme+1)%len(a.cfg.themes()), true
	a.applyTheme()
	a.Notify("theme: " + a.skin.Palette.Name)
}

func (a *app) chooseLayout() {
	a.show(viewOverview)
	a.openPalette("layout ")
}

// cancel cancels the request on the screen: in the requests table and in the request view the selected one.
func (a *app) cancel() {
	r := a.snap.Current
	if a.view == viewRequests || a.view == viewRequest {
		r = a.requests.Request(a.snap)
	}
	if r == nil || r.State.Final() {
		a.Notify("no request is running")
		return
	}
	a.report(a.session.Actions.Cancel(r.ID), "request cancelled")
}

// paces are the steps of the pace keys, in tokens/s; after the fastest comes unlimited.
var paces = []float64{2, 5, 10, 20, 40, 80, 160}

// nextStep returns the next higher or lower one of ascending steps; at the ends the value itself.
func nextStep(steps []float64, now float64, up bool) float64 {
	if !up {
		for _, step := range slices.Backward(steps) {
			if step < now {
				return step
			}
		}
	} else if i := slices.IndexFunc(steps, func(step float64) bool { return step > now }); i >= 0 {
		return steps[i]
	}
	return now
}

// pace changes the engine's pace by one step.
func (a *app) pace(faster bool) {
	unlimited := math.Inf(1)
	to := nextStep(append(slices.Clip(paces), unlimited), cmp.Or(max(a.snap.Engine.Pace, 0), unlimited), faster)
	note := "pace: " + metric.Rate(to) + " tokens/s"
	if to == unlimited {
		to, note = 0, "pace: unlimited"
	}
	a.report(a.session.Actions.SetPace(to), note)
}

// onPaste inserts pasted text into the open input line, or opens the prompt editor with it.
func (a *app) onPaste(text string) {
	switch room := a.typist(); {
	case a.palette.open:
		a.palette.paste(text)
	case room != nil:
		room.Paste(text)
	case a.noPrompt() != "":
		a.Notify("paste: " + a.noPrompt())
	default:
		if !a.editor.Open {
			a.openEditor()
		}
		a.editor.Insert(text)
	}
}

// onClick handles a click: it goes to the view of a tab or to a moment of the timeline, or the view handles it.
func (a *app) onClick(x, y int) {
	if a.palette.open {
		a.palette.click(x, y)
		return
	}
	if a.popup.Has(x, y) {
		return
	}
	if !a.clickTab(x, y) && !a.clickTrack(x, y) {
		a.views[a.view].Click(x, y)
	}
}

// hover passes the mouse position to the view and reports whether the view changed.
func (a *app) hover(x, y int) bool {
	room, ok := a.views[a.view].(view.Hoverer)
	return ok && room.Hover(x, y)
}

func (a *app) onWheel(b tea.MouseButton) {
	by := 1
	if b == tea.MouseWheelUp {
		by = -1
	}
	if a.palette.open {
		a.palette.move(by)
		return
	}
	for range wheel {
		a.views[a.view].Scroll(by)
	}
}

// clickTrack goes to the moment under the mouse on the timeline, and reports whether the mouse is on it.
func (a *app) clickTrack(x, y int) bool {
	if !a.track.Has(x, y) {
		return false
	}
	share := (float64(x-a.track.X) + 0.5) / float64(a.track.W)
	if a.cfg.Replay != nil || a.status.Paused {
		s := a.travel.to().Status()
		a.travel.seek(s, s.Begin+event.Time(share*float64(s.End-s.Begin)))
	}
	return true
}

// writeScreenshot writes the screen as a picture and as text.
func (a *app) writeScreenshot() {
	if a.w <= 0 {
		return
	}
	a.draw()
	a.dirty = true // remove the note of the last key from the frame
	path, err := a.saveScreen(a.grid.SVG(a.skin.Palette), unpadded(a.grid.Plain()))
	if err != nil {
		err = fmt.Errorf("write snapshot: %w", err)
	}
	a.report(err, "wrote "+path+" and .txt")
}

// writeReport writes the report of the moment on the screen, and the timeline up to it, on another goroutine.
func (a *app) writeReport() {
	actions, save, s := a.session.Actions, a.saveReport, a.snap
	a.later(func() tea.Msg {
		var timeline []byte
		path := ""
		json, err := actions.Report(s)
		if err == nil && actions.Timeline != nil {
			timeline, err = actions.Timeline(s)
		}
		if err == nil {
			path, err = save(json, timeline)
		}
		if err != nil {
			err = fmt.Errorf("write report: %w", err)
		}
		return appMsg(func(a *app) { a.report(err, "wrote "+sanitize.Line(path)) })
	})
}

// report shows the result of an action in the footer.
func (a *app) report(err error, note string) {
	if err != nil {
		note = sanitize.Line(err.Error())
	}
	a.Notify(note)
	a.toastBad = err != nil
}

// Notify shows a note in the footer for two seconds.
func (a *app) Notify(note string) { a.notifyFor(2, note) }

// notifyFor shows a note in the footer for some seconds.
func (a *app) notifyFor(seconds int, note string) {
	a.toast, a.toastBad, a.toastIn = note, false, seconds*a.cfg.FPS
}
