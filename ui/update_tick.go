package ui

import (
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/profiler/recording"
	"github.com/llmtop/llmtop/ui/chrome"
	"github.com/llmtop/llmtop/ui/sanitize"
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
		a.updateTimeline()
		a.catchUp()
	}
	a.watch()
	a.updateStatus()
	a.updateAlerts()
	a.updateThrottle()
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
		a.dirty = a.replay.update(a.cfg.Replay) || a.dirty
		a.status.Replay = &a.replay.shown
	}
}

// recordNote returns the header note of a recording.
func recordNote(s recording.RecordStatus, on bool) chrome.RecordNote {
	switch dropped := s.Dropped.Total(); {
	case !on:
		return chrome.RecordNote{}
	case s.Err != nil:
		return chrome.RecordNote{Words: "REC failed", Why: sanitize.Line(s.Err.Error()), Bad: true}
	case dropped > 0:
		return chrome.RecordNote{Words: "REC " + metric.Bytes(float64(s.Bytes)) + " dropped " + metric.Count(float64(dropped)), Bad: true}
	default:
		return chrome.RecordNote{Words: "REC " + metric.Bytes(float64(s.Bytes))}
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
