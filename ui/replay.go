package ui

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/recording"
	"github.com/llmtop/llmtop/ui/view"
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
	app    *app
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

// replayKeys are the keys that control a replay.
func (r *replay) keys() []view.Key {
	do := func(f func(s recording.PlayStatus)) func() {
		return func() {
			f(r.app.cfg.Replay.Status())
			r.app.updateStatus()
		}
	}
	by := func(d event.Time) func() {
		return do(func(s recording.PlayStatus) { r.seek(s, r.position(s)+d) })
	}
	return []view.Key{
		{Keys: []string{"space"}, Show: "space", Word: "play", Name: "play or pause", Help: "play or pause the recording", Do: do(r.play)},
		{Keys: []string{"."}, Show: ".", Word: "step", Help: "pause and step to the next token, or to the next event if the engine does not report tokens", Do: do(r.step)},
		{Keys: []string{"-"}, Show: "-", Name: "speed down", Help: "play slower, down to 0.1x", Do: do(func(s recording.PlayStatus) { r.setSpeed(nextSpeed(s.Speed, false)) })},
		{Keys: []string{"+", "="}, Show: "+ -", Word: "speed", Help: "play faster, up to 1000x", Do: do(func(s recording.PlayStatus) { r.setSpeed(nextSpeed(s.Speed, true)) })},
		{Keys: []string{"left", "shift+left"}, Show: "left", Name: "back 1 s", Help: "go back 1 s", Do: by(-shortStep)},
		{Keys: []string{"right", "shift+right"}, Show: "left right", Word: "1 s", Name: "forward 1 s", Help: "go forward 1 s", Do: by(shortStep)},
		{Keys: []string{"["}, Show: "[", Name: "back 10 s", Help: "go back 10 s", Do: by(-longStep)},
		{Keys: []string{"]"}, Show: "[ ]", Name: "forward 10 s", Help: "go forward 10 s", Do: by(longStep)},
		{Keys: []string{"("}, Show: "(", Name: "previous engine", Help: "switch to the previous engine", Do: func() { r.app.switchEngine(false) }, When: r.app.canSwitch},
		{Keys: []string{")"}, Show: "( )", Word: "engine", Help: "switch to the next engine", Do: func() { r.app.switchEngine(true) }, When: r.app.canSwitch},
		{Keys: []string{"{"}, Show: "{", Name: "previous request", Help: "go back to the start of this request, or of the previous one", Do: do(r.previousRequest)},
		{Keys: []string{"}"}, Show: "{ }", Word: "request", Help: "go forward to the start of the next request", Do: do(r.nextRequest)},
		{Keys: []string{"home"}, Show: "home", Name: "start", Help: "go to the start of the recording; in the help: scroll", Do: do(func(s recording.PlayStatus) { r.seek(s, s.Begin) })},
		{Keys: []string{"end"}, Show: "end", Name: "end", Help: "go to the end of the recording; in the help: scroll", Do: do(func(s recording.PlayStatus) { r.seek(s, s.End) })},
	}
}

func (r *replay) setSpeed(times float64) {
	r.app.report(r.app.cfg.Replay.SetSpeed(times), fmt.Sprintf("speed: %vx", times))
}

// play resumes or pauses; at the end it starts over.
func (r *replay) play(s recording.PlayStatus) {
	to := r.app.cfg.Replay
	switch {
	case s.State == recording.Ended:
		r.seek(s, s.Begin)
		to.Play()
		r.paused = false
	case r.paused:
		to.Play()
		r.paused = false
	default:
		to.Pause()
		r.paused = true
	}
}

// playWord returns what the key of play does now.
func (r *replay) playWord() string {
	if r.paused || r.shown.State == recording.Ended {
		return "play"
	}
	return "pause"
}

// step goes to the next token, or to the next event if the engine does not report tokens.
func (r *replay) step(recording.PlayStatus) {
	to := recording.StepEvent
	if r.app.snap.Engine.Caps.Has(event.CapTokens) {
		to = recording.StepToken
	}
	r.app.cfg.Replay.Step(to)
}

// position returns the time of the replay, or the target of a running seek, so that repeated seek keys add up.
func (r *replay) position(s recording.PlayStatus) event.Time {
	if s.State == recording.Seeking {
		return r.target
	}
	return s.Now
}

func (r *replay) seek(s recording.PlayStatus, at event.Time) {
	at = max(min(at, s.End), s.Begin)
	r.target = at
	if err := r.app.cfg.Replay.SeekTime(at); err != nil {
		r.app.report(err, "")
	}
}

// previousRequest goes to the start of the newest request so far, or of the one before if that start was just passed.
func (r *replay) previousRequest(s recording.PlayStatus) {
	for _, q := range r.app.snap.Requests {
		if q.Enqueued+restartWithin < s.Now {
			r.app.report(r.app.cfg.Replay.SeekRequest(r.app.session.Name, q.ID), fmt.Sprintf("request %d", q.ID))
			return
		}
	}
	r.seek(s, s.Begin)
}

// nextRequest goes to the start of the request after the newest one so far. The screen does not have later requests,
// but their ids ascend: it tries the next ones.
func (r *replay) nextRequest(recording.PlayStatus) {
	var newest event.RequestID
	for _, q := range r.app.snap.Requests {
		newest = max(newest, q.ID)
	}
	for gap := range min(idGap, math.MaxUint64-newest) {
		id := newest + 1 + gap
		if r.app.cfg.Replay.SeekRequest(r.app.session.Name, id) == nil {
			r.app.Notify(fmt.Sprintf("request %d", id))
			return
		}
	}
	r.app.Notify("no later request in the recording")
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
