package ui

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/recording"
)

// Replay controls a recording on the screen; *recording.Player implements it. No method may wait for the events of a
// seek.
type Replay interface {
	Status() recording.PlayStatus
	Play()
	Pause()
	Step(by recording.Step)
	SetSpeed(times float64) error
	SeekTime(at event.Time) error
	SeekRequest(engine string, id event.RequestID) error // engine: the name of its Session
}

const (
	// restartWithin is how far into a request the previous-request key returns to the start of that request rather than to
	// the one before.
	restartWithin = event.Time(500 * time.Millisecond)
	// idGap is the maximum gap between the ids of consecutive requests in a recording.
	idGap = 16
	// replayFrame is the replay time between two frames that only move the clock.
	replayFrame = event.Time(100 * time.Millisecond)
)

// speeds are the steps of the speed keys.
var speeds = []float64{recording.Slowest, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500, recording.Fastest}

// replay is the state of a replay on the screen.
type replay struct {
	shown  recording.PlayStatus
	paused bool       // a replay does not report this while it seeks
	target event.Time // of the last seek
}

// update takes the status of the replay and reports whether it needs a frame.
func (r *replay) update(player Replay) bool {
	s := player.Status()
	if s.State != recording.Seeking {
		r.paused = s.State == recording.Paused
	}
	before := r.shown
	if before.Now/replayFrame == s.Now/replayFrame {
		before.Now, before.Wall = s.Now, s.Wall
	}
	r.shown = s
	return before != s
}

// doReplay performs a key action of a replay and reports whether the action is one.
func (a *app) doReplay(act action) bool {
	to := a.cfg.Replay
	if to == nil {
		return false
	}
	s := to.Status()
	switch act {
	case actPlay:
		a.play(s)
	case actStep:
		to.Step(a.step())
	case actBackward:
		a.seek(s, a.position(s)-shortStep)
	case actForward:
		a.seek(s, a.position(s)+shortStep)
	case actFarBack:
		a.seek(s, a.position(s)-longStep)
	case actFarOn:
		a.seek(s, a.position(s)+longStep)
	case actToBegin:
		a.seek(s, s.Begin)
	case actToEnd:
		a.seek(s, s.End)
	case actPreviousRequest:
		a.previousRequest(s)
	case actNextRequest:
		a.nextRequest()
	case actSpeedUp, actSpeedDown:
		x := nextSpeed(s.Speed, act == actSpeedUp)
		a.report(to.SetSpeed(x), fmt.Sprintf("speed: %vx", x))
	default:
		return false
	}
	a.updateStatus()
	return true
}

// play resumes or pauses; at the end it starts over.
func (a *app) play(s recording.PlayStatus) {
	to := a.cfg.Replay
	switch {
	case s.State == recording.Ended:
		a.seek(s, s.Begin)
		to.Play()
		a.replay.paused = false
	case a.replay.paused:
		to.Play()
		a.replay.paused = false
	default:
		to.Pause()
		a.replay.paused = true
	}
}

// step returns the length of a step: to the next token, or to the next event if the engine does not report tokens.
func (a *app) step() recording.Step {
	if a.snap.Engine.Caps.Has(event.CapTokens) {
		return recording.StepToken
	}
	return recording.StepEvent
}

// position returns the time of the replay, or the target of a running seek, so that repeated seek keys add up.
func (a *app) position(s recording.PlayStatus) event.Time {
	if s.State == recording.Seeking {
		return a.replay.target
	}
	return s.Now
}

func (a *app) seek(s recording.PlayStatus, at event.Time) {
	at = max(min(at, s.End), s.Begin)
	a.replay.target = at
	if err := a.cfg.Replay.SeekTime(at); err != nil {
		a.report(err, "")
	}
}

// previousRequest goes to the start of the newest request so far, or of the one before if that start was just passed.
func (a *app) previousRequest(s recording.PlayStatus) {
	for _, r := range a.snap.Requests {
		if r.Enqueued+restartWithin < s.Now {
			a.report(a.cfg.Replay.SeekRequest(a.session.Name, r.ID), fmt.Sprintf("request %d", r.ID))
			return
		}
	}
	a.seek(s, s.Begin)
}

// nextRequest goes to the start of the request after the newest one so far. The screen does not have later requests,
// but their ids ascend: it tries the next ones.
func (a *app) nextRequest() {
	var newest event.RequestID
	for _, r := range a.snap.Requests {
		newest = max(newest, r.ID)
	}
	for gap := range min(idGap, math.MaxUint64-newest) {
		id := newest + 1 + gap
		if a.cfg.Replay.SeekRequest(a.session.Name, id) == nil {
			a.notify(fmt.Sprintf("request %d", id))
			return
		}
	}
	a.notify("no later request in the recording")
}

// nextSpeed returns the next faster or slower step; the ends stay.
func nextSpeed(now float64, up bool) float64 {
	if up {
		if i := slices.IndexFunc(speeds, func(x float64) bool { return x > now }); i >= 0 {
			return speeds[i]
		}
		return recording.Fastest
	}
	for _, x := range slices.Backward(speeds) {
		if x < now {
			return x
		}
	}
	return recording.Slowest
}
