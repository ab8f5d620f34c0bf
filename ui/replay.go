package ui

import (
	"fmt"
	"slices"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/trace"
)

// Replay steers a recording on the screen; a *trace.Player is one. No method may wait for the events of a seek.
type Replay interface {
	Status() trace.PlayStatus
	Play()
	Pause()
	Step(by trace.Step)
	SetSpeed(times float64) error
	SeekTime(at event.Time) error
	SeekRequest(engine string, id event.RequestID) error // engine: the name of its Session
}

const (
	// restart is how far into a request the key for the one before goes to the request's own beginning.
	restart = event.Time(500 * time.Millisecond)
	// idGap is how many ids there may be between two requests that follow each other in a recording.
	idGap = 16
	// moves is how far a replay goes on at least between two frames of its clock.
	moves = event.Time(100 * time.Millisecond)
)

// speeds are the steps of the speed keys.
var speeds = []float64{trace.Slowest, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500, trace.Fastest}

// replay is what the screen remembers of a replay.
type replay struct {
	shown  trace.PlayStatus
	paused bool       // while it seeks a replay does not tell
	target event.Time // of the last seek
}

// look takes how the replay goes and reports whether that is worth a frame.
func (r *replay) look(of Replay) bool {
	s := of.Status()
	if s.State != trace.Seeking {
		r.paused = s.State == trace.Paused
	}
	was := r.shown
	if was.Now/moves == s.Now/moves {
		was.Now, was.Wall = s.Now, s.Wall
	}
	r.shown = s
	return was != s
}

// steer does what a key of the replay says, and reports whether it is one.
func (a *app) steer(act action) bool {
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
		a.seek(s, a.position(s)-nearBy)
	case actForward:
		a.seek(s, a.position(s)+nearBy)
	case actFarBack:
		a.seek(s, a.position(s)-farBy)
	case actFarOn:
		a.seek(s, a.position(s)+farBy)
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
		a.report(to.SetSpeed(x), fmt.Sprintf("speed: %v times", x))
	default:
		return false
	}
	a.status()
	return true
}

// play goes on or pauses; at the end it begins again.
func (a *app) play(s trace.PlayStatus) {
	to := a.cfg.Replay
	switch {
	case s.State == trace.Ended:
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

// step is how far the step key goes: to the next token, or the next event of an engine that does not tell of tokens.
func (a *app) step() trace.Step {
	if a.snap.Engine.Caps.Has(event.CapTokens) {
		return trace.StepToken
	}
	return trace.StepEvent
}

// position is where the replay is, or is going to, so that seek keys add up while it seeks.
func (a *app) position(s trace.PlayStatus) event.Time {
	if s.State == trace.Seeking {
		return a.replay.target
	}
	return s.Now
}

func (a *app) seek(s trace.PlayStatus, at event.Time) {
	at = max(min(at, s.End), s.Begin)
	a.replay.target = at
	if err := a.cfg.Replay.SeekTime(at); err != nil {
		a.report(err, "")
	}
}

// previousRequest goes to where the newest request that has been seen began, or, if that has only just been, the one before it.
func (a *app) previousRequest(s trace.PlayStatus) {
	for _, r := range a.snap.Requests {
		if r.Enqueued+restart < s.Now {
			a.report(a.cfg.Replay.SeekRequest(a.session.Name, r.ID), fmt.Sprintf("request %d", r.ID))
			return
		}
	}
	a.seek(s, s.Begin)
}

// nextRequest goes to where the request after the newest one that has been seen begins. Requests to come are known to the recording
// alone, and only by their ids, which ascend.
func (a *app) nextRequest() {
	var newest event.RequestID
	for _, r := range a.snap.Requests {
		newest = max(newest, r.ID)
	}
	for id := newest + 1; id <= newest+idGap; id++ {
		if a.cfg.Replay.SeekRequest(a.session.Name, id) == nil {
			a.say(fmt.Sprintf("request %d", id))
			return
		}
	}
	a.say("no later request in the recording")
}

// nextSpeed is the step beyond a speed, in either direction; the ends stay.
func nextSpeed(now float64, up bool) float64 {
	if up {
		if i := slices.IndexFunc(speeds, func(x float64) bool { return x > now }); i >= 0 {
			return speeds[i]
		}
		return trace.Fastest
	}
	for _, x := range slices.Backward(speeds) {
		if x < now {
			return x
		}
	}
	return trace.Slowest
}
