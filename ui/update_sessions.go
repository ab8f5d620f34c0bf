package ui

import (
	"slices"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/llmtop/llmtop/profiler/alert"
	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/profiler/recording"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/ui/chrome"
	"github.com/llmtop/llmtop/ui/grid"
	"github.com/llmtop/llmtop/ui/pane"
	"github.com/llmtop/llmtop/ui/sanitize"
	"github.com/llmtop/llmtop/ui/view"
	"github.com/llmtop/llmtop/ui/view/engines"
	"github.com/llmtop/llmtop/ui/view/overview"
)

// tickMsg requests the next frame.
type tickMsg struct{}

// blurredEvery is the time between frames while another window has the focus: the screen may still be visible, for
// example next to an editor.
const blurredEvery = time.Second

// maxRest bounds the time between frames while nothing happens, because the clock in the header shows seconds.
const maxRest = time.Second

// tick returns the command that waits for the next frame and, while no request is running, for a change.
func (a *app) tick() tea.Cmd {
	every := time.Second / time.Duration(a.cfg.FPS)
	if a.blurred {
		every = blurredEvery
	}
	if changed := a.session.Changed; changed != nil && a.idle && a.toastIn == 0 && a.view != viewEngines {
		start := time.Now()
		return func() tea.Msg {
			select {
			case <-changed:
				time.Sleep(every - time.Since(start))
			case <-time.After(maxRest):
			}
			return tickMsg{}
		}
	}
	return tea.Tick(every, func(time.Time) tea.Msg { return tickMsg{} })
}

// onTick updates the state for a frame and marks the frame as dirty if it would differ.
func (a *app) onTick() tea.Cmd {
	if a.toastIn > 0 {
		if a.toastIn--; a.toastIn == 0 {
			a.toast, a.dirty = "", true
		}
	}
	a.idle = true
	if !a.status.Paused {
		a.updateSessions()
		a.takeSnapshot()
		a.updateEngines()
	} else {
		a.history.update()
	}
	shown := a.view == viewSystem || a.view == viewExperts || a.view == viewPane && a.overview.Focus == overview.Machine
	a.watched.update(watched{watch: a.session.Actions.Watch, model: a.snap.Model.Path, name: a.session.Name}, shown)
	a.updateStatus()
	a.updateAlerts()
	if a.palette.open { // what can be done may have changed
		a.palette.find()
	}
	if note := a.throttle.note(a.cfg.LowBandwidth); note != a.status.Output {
		a.status.Output, a.dirty = note, true
	}
	if a.views[a.view].Working() {
		a.dirty, a.idle = true, false
	}
	return a.tick()
}

// updateStatus takes the status of the recording and of the replay.
func (a *app) updateStatus() {
	if a.cfg.Recording != nil {
		note := recordNote(a.cfg.Recording())
		a.dirty = a.dirty || note != a.status.Record
		a.status.Record = note
	}
	if a.cfg.Replay != nil {
		a.dirty = a.travel.update() || a.dirty
		a.status.Replay = &a.travel.shown
	}
}

// recordNote returns the header note of a recording.
func recordNote(s recording.RecordStatus, on bool) chrome.Note {
	switch dropped := s.Dropped.Total(); {
	case !on:
		return chrome.Note{}
	case s.Err != nil:
		return chrome.Note{Words: "REC failed", Why: sanitize.Line(s.Err.Error()), Style: pane.Bad.With(grid.Bold)}
	case dropped > 0:
		return chrome.Note{Words: "REC " + metric.Bytes(float64(s.Bytes)) + " dropped " + metric.Count(float64(dropped)), Style: pane.Bad.With(grid.Bold)}
	default:
		return chrome.Note{Words: "REC " + metric.Bytes(float64(s.Bytes)), Style: pane.Plain}
	}
}

// takeSnapshot takes the current snapshot. It needs a frame if the snapshot is new, or if the spinner runs.
func (a *app) takeSnapshot() {
	if a.session.Snapshots == nil {
		return
	}
	s := a.session.Snapshots()
	spins := s.Engine.State <= event.EngineLoading || s.Throughput.Queued > 0
	if s == a.snap && !spins {
		return
	}
	if spins {
		a.panes.Spin++
	}
	a.snap, a.idle, a.dirty = s, s.Throughput.Running == 0 && !spins, true
	a.updateOffers()
}

// updateAlerts takes the current alert states and shows a note when an alert begins to fire or resolves. It marks the
// frame as dirty if the screen shows something that changed.
func (a *app) updateAlerts() {
	if a.cfg.Alerts == nil {
		return
	}
	now := a.cfg.Alerts()
	before := a.status.Alerts
	if slices.Equal(now, before) {
		return
	}
	for i := range now {
		if i >= len(before) || before[i].State == now[i].State || a.toastIn > 0 {
			continue
		}
		switch name := sanitize.Line(now[i].Name); now[i].State {
		case alert.Firing:
			a.Notify("alert " + name + ": " + now[i].Value + " (a lists alerts)")
		case alert.Resolved:
			a.Notify("alert " + name + " resolved")
		}
		a.dirty = true
	}
	a.dirty = a.dirty || a.alertsOpen || len(now) != len(before)
	a.status.Alerts = now
}

// Session is an engine on the screen.
type Session struct {
	Name      string                 // unique and constant, for example the address; "" if there is never another one
	Snapshots func() *store.Snapshot // called once per frame; never returns nil
	Changed   <-chan struct{}        // receives when Snapshots may have new data; nil: check on every tick
	Past      Past                   // its history; nil: none
	Actions   view.Actions
}

// One returns the Sessions of a screen with one engine.
func One(s Session) func() []Session {
	all := []Session{s}
	return func() []Session { return all }
}

// updateSessions takes the current sessions. The one on the screen stays there as long as it exists.
func (a *app) updateSessions() {
	a.sessions = a.cfg.Sessions()
	i := slices.IndexFunc(a.sessions, func(s Session) bool { return s.Name == a.session.Name })
	switch {
	case len(a.sessions) == 0:
		a.session, a.snap, a.status.Engine = Session{}, store.Empty(), ""
		a.updateOffers()
	case i < 0 && a.session.Name != "": // other sessions replaced it
		a.showSession(0)
		a.show(viewEngines)
	case i < 0 || a.session.Snapshots == nil:
		a.showSession(max(i, 0))
		if a.view == viewEngines && len(a.sessions) == 1 && !a.startsWithList() { // the list was empty
			a.show(viewOverview)
		}
	default:
		a.session = a.sessions[i]
		a.updateEngineName(i)
	}
	a.engines.Select(a.engines.Selected, len(a.sessions))
}

// startsWithList reports whether the list of engines is shown even while there is only one.
func (a *app) startsWithList() bool { return a.cfg.StartWithList != nil && a.cfg.StartWithList() }

// showSession shows a session and resets the state of the one before.
func (a *app) showSession(i int) {
	if i >= len(a.sessions) {
		return
	}
	a.session = a.sessions[i]
	a.offered = 0 // a view of another engine does not stay
	if a.snap = a.history.snapshotOf(a.session); a.snap == chrome.NotKept {
		a.Notify("no history of this engine at this time")
	}
	a.updateOffers()
	a.marks.show()
	for _, room := range a.views {
		if room != nil {
			room.Reset()
		}
	}
	a.engines.SelectEngine(i, sanitize.Line(a.session.Name))
	a.updateEngineName(i)
	a.dirty = true
}

// showEngine shows an engine of the list.
func (a *app) showEngine(i int) {
	a.show(viewOverview)
	a.showSession(i)
}

// updateEngineName sets which of several engines the header shows.
func (a *app) updateEngineName(i int) {
	name := ""
	if len(a.sessions) > 1 {
		name = engines.Ordinal(i, len(a.sessions)) + " " + sanitize.Line(a.session.Name)
	}
	a.dirty = a.dirty || name != a.status.Engine
	a.status.Engine = name
}

// noOther returns why there is no other engine to show, "" if there is one.
func (a *app) noOther() string {
	switch {
	case len(a.sessions) < 2:
		return "there is no other engine"
	case a.view == viewEngines:
		return toShow
	}
	return ""
}

// switchEngine shows the next engine or the previous one.
func (a *app) switchEngine(forward bool) {
	step := 1
	if !forward {
		step = len(a.sessions) - 1
	}
	i := slices.IndexFunc(a.sessions, func(s Session) bool { return s.Name == a.session.Name })
	a.showSession((max(i, 0) + step) % len(a.sessions))
}

// updateEngines updates the list of engines while it is open. It needs a frame if an engine has new data.
func (a *app) updateEngines() {
	if a.view != viewEngines {
		return
	}
	rows := a.engines.Engines
	changed := len(rows) != len(a.sessions)
	rows = slices.Grow(rows, len(a.sessions))[:len(a.sessions)]
	for i, s := range a.sessions {
		row := engines.Row{Name: sanitize.Line(s.Name), Snapshot: a.history.snapshotOf(s), Shown: s.Name == a.session.Name}
		if s.Name == "" { // the only one
			row.Name, row.Snapshot = sanitize.Line(a.snap.Engine.Name), a.snap
		}
		changed = changed || row != rows[i]
		rows[i] = row
	}
	a.dirty = a.dirty || changed
	a.engines.Update(&a.panes, rows)
}
