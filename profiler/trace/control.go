package trace

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
)

// PlayState is what a player does.
type PlayState uint8

// The states of a player.
const (
	Playing PlayState = iota
	Paused
	Seeking
	Ended
)

var playStateNames = [...]string{"playing", "paused", "seeking", "ended"}

// String is the state's name on the screen.
func (s PlayState) String() string {
	if int(s) < len(playStateNames) {
		return playStateNames[s]
	}
	return "unknown"
}

// PlayStatus is where a player stands.
type PlayStatus struct {
	State      PlayState
	Speed      float64 // times that of the recording; +Inf is Unpaced
	Now        event.Time
	Wall       time.Time // when it was recorded
	Begin, End event.Time
	From       event.Time // totals of the session count from here: later than Begin after a seek in a very long recording
	Damage     Damage     // of the recording as far as it was read
	Unread     uint64     // lines that could not be decoded
	Lost       event.Lost // events that the recorder dropped, in the whole recording
	Missing    int        // segments
}

// Status is where the player stands. Like all methods but Run it may be called from any goroutine.
func (p *Player) Status() PlayStatus {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := PlayStatus{
		State: Playing, Speed: p.speed, Now: p.position(), Begin: p.rec.Begin, End: p.rec.End, From: p.from, Damage: p.damage,
		Unread: p.unread, Lost: p.rec.Lost, Missing: p.rec.Missing,
	}
	s.Wall = p.rec.Wall(s.Now)
	switch {
	case p.seeking:
		s.State = Seeking
	case p.ended:
		s.State = Ended
	case p.paused:
		s.State = Paused
	}
	return s
}

// Now is the time of the recording that the replay has come to: never before an event that is out, never past one that is not.
func (p *Player) Now() event.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.position()
}

// Wall is when the moment that the replay has come to was recorded.
func (p *Player) Wall() time.Time { return p.rec.Wall(p.Now()) }

func (p *Player) position() event.Time {
	emitted, next := event.Time(p.emitted.Load()), event.Time(p.next.Load())
	if next == beyond {
		next = max(emitted, p.rec.End)
	}
	at := p.base
	switch {
	case p.seeking || math.IsInf(p.speed, 1) && !p.paused:
		at = emitted
	case !p.paused && !p.ended:
		at = p.paced(p.opt.Clock())
	}
	return min(max(at, emitted), max(next, emitted))
}

// paced is the position at a moment of the wall clock, whatever there is to emit.
func (p *Player) paced(now time.Time) event.Time {
	gone := float64(now.Sub(p.anchor)) * p.speed
	return p.base + event.Time(min(gone, float64(math.MaxInt64/4)))
}

// change does what is asked for from the present position on, and wakes Run up.
func (p *Player) change(do func()) {
	p.mu.Lock()
	p.base, p.anchor = p.position(), p.opt.Clock()
	do()
	p.mu.Unlock()
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// Play goes on after a pause.
func (p *Player) Play() { p.change(func() { p.paused = false }) }

// Pause stops the clock.
func (p *Player) Pause() { p.change(func() { p.paused = true }) }

// Step pauses and goes on by one event or token.
func (p *Player) Step(by Step) { p.change(func() { p.paused, p.step = true, by }) }

// SetSpeed sets how many times faster than recorded the replay is: Slowest to Fastest, or Unpaced.
func (p *Player) SetSpeed(x float64) error {
	if !math.IsInf(x, 1) && !(x >= Slowest && x <= Fastest) {
		return fmt.Errorf("set speed %v: it must be %v to %v", x, Slowest, Fastest)
	}
	p.change(func() { p.speed = x })
	return nil
}

// SeekTime goes to a time of the recording, or to its next end. All events up to it are emitted as fast as possible; for a time that
// has passed they begin anew, into what Reset gives. A player that plays goes on from there.
func (p *Player) SeekTime(at event.Time) error {
	at = min(max(at, p.rec.Begin), p.rec.End)
	if p.opt.Reset == nil && at < p.Now() {
		return errors.New("seek back: this replay only goes forward")
	}
	p.change(func() { p.seeking, p.target, p.step = true, at, StepNone })
	return nil
}

// SeekRequest goes to the moment at which a request was queued, of the source of that name where there are several. The error is one
// line: it is not in the recording.
func (p *Player) SeekRequest(source string, id event.RequestID) error {
	number := max(slices.IndexFunc(p.rec.Sources, func(s Source) bool { return s.Name == source }), 0)
	at, err := p.rec.Find(p.opt.Codec(), number, id)
	if err != nil {
		return err
	}
	return p.SeekTime(at)
}
