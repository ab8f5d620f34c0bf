package ui

import (
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/profiler/trace"
	"github.com/llmtop/llmtop/ui/panes"
	"github.com/llmtop/llmtop/ui/sanitize"
)

// tickMsg asks for the next frame.
type tickMsg struct{}

// blurredEvery is the time between frames while the terminal has told that another window has the focus: the screen may
// still be seen, beside an editor for example.
const blurredEvery = time.Second

// restAtMost is how long the screen stays as it is while nothing happens: the clock in the header moves by the second.
const restAtMost = time.Second

// tick waits for the time of the next frame and, while nothing is under way, for something to happen.
func (a *app) tick() tea.Cmd {
	every := time.Second / time.Duration(a.cfg.FPS)
	if a.blurred {
		every = blurredEvery
	}
	if changed := a.session.Changed; changed != nil && a.still && a.toastIn == 0 && a.view != viewEngines {
		looked := time.Now()
		return func() tea.Msg {
			select {
			case <-changed:
				time.Sleep(every - time.Since(looked))
			case <-time.After(restAtMost):
			}
			return tickMsg{}
		}
	}
	return tea.Tick(every, func(time.Time) tea.Msg { return tickMsg{} })
}

// onTick takes the frame's snapshot and marks the frame for drawing if it would differ.
func (a *app) onTick() tea.Cmd {
	if a.toastIn > 0 {
		if a.toastIn--; a.toastIn == 0 {
			a.toast, a.dirty = "", true
		}
	}
	a.still = true
	if !a.panes.Paused {
		a.meet()
		a.look()
		a.survey()
	} else {
		a.lookBack()
		a.catchUp()
	}
	a.watch()
	a.status()
	a.watchAlerts()
	a.pay()
	return a.tick()
}

// status takes how the recording and the replay go.
func (a *app) status() {
	if a.cfg.Recording != nil {
		note := recordNote(a.cfg.Recording())
		a.dirty = a.dirty || note != a.panes.Record
		a.panes.Record = note
	}
	if a.cfg.Replay != nil {
		a.dirty = a.replay.look(a.cfg.Replay) || a.dirty
		a.panes.Replay = &a.replay.shown
	}
}

// recordNote is what the header says of a recording.
func recordNote(s trace.RecordStatus, on bool) panes.RecordNote {
	switch lost := s.Lost.Total(); {
	case !on:
		return panes.RecordNote{}
	case s.Err != nil:
		return panes.RecordNote{Words: "REC failed", Why: sanitize.Line(s.Err.Error()), Bad: true}
	case lost > 0:
		return panes.RecordNote{Words: "REC " + metric.Bytes(float64(s.Bytes)) + " lost " + metric.Count(float64(lost)), Bad: true}
	default:
		return panes.RecordNote{Words: "REC " + metric.Bytes(float64(s.Bytes))}
	}
}

// look takes a snapshot. It is worth a frame if it is another one than before, or if a spinner turns.
func (a *app) look() {
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
	a.snap, a.still, a.dirty = s, s.Throughput.Running == 0 && !spins, true
}
