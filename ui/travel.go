package ui

import (
	"fmt"
	"math"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/profiler/recording"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/ui/view"
)

// Travel moves the screen in time: *recording.Player through a recording, history through what a live session keeps. No
// method may wait for the events of a seek.
type Travel interface {
	Status() recording.PlayStatus
	Play()
	Pause()
	Step(by recording.Step)
	SetSpeed(times float64) error
	SeekTime(at event.Time) error
	SeekRequest(engine string, id event.RequestID) error // engine: the name of its Session
}

// How far one key press moves.
const (
	shortStep = event.Time(time.Second)
	longStep  = event.Time(10 * time.Second)
)

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

// traveller is the state of a recording, or of a paused live session, on the screen.
type traveller struct {
	app    *app
	shown  recording.PlayStatus
	paused bool       // a replay does not report this while it seeks
	target event.Time // of the last seek
}

// live reports whether it moves through what a live session keeps.
func (r *traveller) live() bool { return r.app.cfg.Replay == nil }

// to returns what it moves through.
func (r *traveller) to() Travel {
	if r.live() {
		return &r.app.history
	}
	return r.app.cfg.Replay
}

// update takes the status of the replay and reports whether it needs a frame.
func (r *traveller) update() bool {
	s := r.to().Status()
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

// keys are the keys that move in time. Those of steps and of speed are of recordings alone.
func (r *traveller) keys() []view.Key {
	do := func(f func(s recording.PlayStatus)) func() {
		return func() {
			f(r.to().Status())
			r.app.updateStatus()
		}
	}
	by := func(d event.Time) func() {
		return do(func(s recording.PlayStatus) { r.seek(s, r.position(s)+d) })
	}
	play, start, end, endWord := "play or pause the recording", "go to the start of the recording; in the help: scroll", "go to the end of the recording; in the help: scroll", ""
	if r.live() {
		play, start, end, endWord = "return to live", "go to the oldest kept moment", "return to live", "live"
	}
	keys := []view.Key{{Keys: []string{"space"}, Show: "space", Word: "play", Name: "play or pause", Help: play, Do: do(r.play)}}
	if !r.live() {
		keys = append(keys,
			view.Key{Keys: []string{"."}, Show: ".", Word: "step", Help: "pause and step to the next token, or to the next event if the engine does not report tokens", Do: do(r.step)},
			view.Key{Keys: []string{"-"}, Show: "-", Name: "speed down", Help: "play slower, down to 0.1x", Do: do(func(s recording.PlayStatus) { r.setSpeed(nextStep(speeds, s.Speed, false)) })},
			view.Key{Keys: []string{"+", "="}, Show: "+ -", Word: "speed", Help: "play faster, up to 1000x", Do: do(func(s recording.PlayStatus) { r.setSpeed(nextStep(speeds, s.Speed, true)) })})
	}
	return append(keys, []view.Key{
		{Keys: []string{"left", "shift+left"}, Show: "left", Name: "back 1 s", Help: "go back 1 s: all views show that moment", Do: by(-shortStep)},
		{Keys: []string{"right", "shift+right"}, Show: "left right", Word: "1 s", Name: "forward 1 s", Help: "go forward 1 s", Do: by(shortStep)},
		{Keys: []string{"["}, Show: "[", Name: "back 10 s", Help: "go back 10 s", Do: by(-longStep)},
		{Keys: []string{"]"}, Show: "[ ]", Word: "10 s", Name: "forward 10 s", Help: "go forward 10 s", Do: by(longStep)},
		{Keys: []string{"("}, Show: "(", Name: "previous engine", Help: "switch to the previous engine, at the same moment", Do: func() { r.app.switchEngine(false) }, Why: r.app.noOther},
		{Keys: []string{")"}, Show: "( )", Word: "engine", Help: "switch to the next engine", Do: func() { r.app.switchEngine(true) }, Why: r.app.noOther},
		{Keys: []string{"{"}, Show: "{", Name: "previous request", Help: "go back to the start of this request, or of the previous one", Do: do(r.previousRequest)},
		{Keys: []string{"}"}, Show: "{ }", Word: "request", Help: "go forward to the start of the next request", Do: do(r.nextRequest)},
		{Keys: []string{"home"}, Show: "home", Name: "start", Help: start, Do: do(func(s recording.PlayStatus) { r.seek(s, s.Begin) })},
		{Keys: []string{"end"}, Show: "end", Word: endWord, Name: "end", Help: end, Do: do(r.end)},
	}...)
}

// end goes to the end of a recording, or back to live.
func (r *traveller) end(s recording.PlayStatus) {
	if r.live() {
		r.to().Play()
		return
	}
	r.seek(s, s.End)
}

func (r *traveller) setSpeed(times float64) {
	r.app.report(r.to().SetSpeed(times), fmt.Sprintf("speed: %vx", times))
}

// play resumes or pauses; at the end it starts over.
func (r *traveller) play(s recording.PlayStatus) {
	to := r.to()
	switch {
	case r.live():
		to.Play()
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
func (r *traveller) playWord() string {
	if r.live() {
		return "resume"
	}
	if r.paused || r.shown.State == recording.Ended {
		return "play"
	}
	return "pause"
}

// step goes to the next token, or to the next event if the engine does not report tokens.
func (r *traveller) step(recording.PlayStatus) {
	to := recording.StepEvent
	if r.app.snap.Engine.Caps.Has(event.CapTokens) {
		to = recording.StepToken
	}
	r.to().Step(to)
}

// position returns the time of the replay, or the target of a running seek, so that repeated seek keys add up.
func (r *traveller) position(s recording.PlayStatus) event.Time {
	if s.State == recording.Seeking {
		return r.target
	}
	return s.Now
}

func (r *traveller) seek(s recording.PlayStatus, at event.Time) {
	r.target = max(min(at, s.End), s.Begin)
	if at < s.Begin && r.live() {
		r.app.Notify("the history reaches back " + metric.Duration(int64(s.End-s.Begin)))
	}
	if err := r.to().SeekTime(r.target); err != nil {
		r.app.report(err, "")
	}
}

// previousRequest goes to the start of the newest request so far, or of the one before if that start was just passed.
func (r *traveller) previousRequest(s recording.PlayStatus) {
	for _, q := range r.app.snap.Requests {
		if r.startOf(q)+restartWithin < s.Now {
			r.app.report(r.to().SeekRequest(r.app.session.Name, q.ID), fmt.Sprintf("request %d", q.ID))
			return
		}
	}
	r.seek(s, s.Begin)
}

// startOf returns the first moment that has a request.
func (r *traveller) startOf(q *store.Request) event.Time {
	if r.live() {
		if first := r.app.history.firstOf(q); first != nil {
			return first.Now
		}
	}
	return q.Enqueued
}

// nextRequest goes to the start of the request after the newest one so far. The screen does not have later requests,
// but their ids ascend: it tries the next ones.
func (r *traveller) nextRequest(recording.PlayStatus) {
	var newest event.RequestID
	for _, q := range r.app.snap.Requests {
		newest = max(newest, q.ID)
	}
	for gap := range min(idGap, math.MaxUint64-newest) {
		id := newest + 1 + gap
		if r.to().SeekRequest(r.app.session.Name, id) == nil {
			r.app.Notify(fmt.Sprintf("request %d", id))
			return
		}
	}
	r.app.Notify("no later request")
}
