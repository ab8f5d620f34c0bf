package recording

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
)

// PlayState is the state of a player.
type PlayState uint8

// The states of a player.
const (
	Playing PlayState = iota
	Paused
	Seeking
	Ended
)

var playStateNames = [...]string{"playing", "paused", "seeking", "ended"}

// String returns the state's name on the screen.
func (s PlayState) String() string {
	if int(s) < len(playStateNames) {
		return playStateNames[s]
	}
	return "unknown"
}

// PlayStatus is the progress of a player.
type PlayStatus struct {
	State           PlayState
	Speed           float64 // multiple of the recorded speed; +Inf is Unpaced
	Now             event.Time
	Wall            time.Time // wall clock of Now when it was recorded
	Begin, End      event.Time
	TotalsSince     event.Time  // start of the session totals: later than Begin after a seek in a very long recording
	Damage          Damage      // damage found so far
	Undecoded       uint64      // lines that could not be decoded
	Dropped         event.Drops // events dropped by the recorder in the whole recording
	MissingSegments int         // segments
	Unended         bool        // the recording has no end: see Recording.EndReason
}

// Problems describes what the recording lacks, as far as it has been read.
func (s PlayStatus) Problems() (out []string) {
	var damage []string
	for _, d := range [...]struct {
		of    string
		count uint64
	}{{"unreadable frames", uint64(s.Damage.Frames)}, {"unreadable lines", uint64(s.Damage.Lines) + s.Undecoded}, {"foreign bytes", uint64(s.Damage.Bytes)}} {
		if d.count > 0 {
			damage = append(damage, fmt.Sprintf("%s: %d", d.of, d.count))
		}
	}
	if damage != nil {
		out = append(out, "the recording is damaged: "+strings.Join(damage, ", "))
	}
	if s.MissingSegments > 0 {
		out = append(out, fmt.Sprintf("the recording lacks segments: %d", s.MissingSegments))
	}
	if s.Unended {
		out = append(out, "the recording has no end: it was cut off, or is still being written")
	}
	return out
}

// Status returns the progress of the player. Like all methods except Run it is safe for concurrent use.
func (p *Player) Status() PlayStatus {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := PlayStatus{
		State: Playing, Speed: p.speed, Now: p.position(), Begin: p.rec.Begin, End: p.rec.End, TotalsSince: p.totalsSince, Damage: p.damage,
		Undecoded: p.undecoded, Dropped: p.rec.Dropped, MissingSegments: p.rec.MissingSegments, Unended: p.rec.EndReason == "",
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

// Now returns the current time of the recording: never before an event that was emitted, never after one that was not.
func (p *Player) Now() event.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.position()
}

// Wall returns the wall clock at which Now was recorded.
func (p *Player) Wall() time.Time { return p.rec.Wall(p.Now()) }

// position returns Now. The caller holds the lock.
func (p *Player) position() event.Time {
	emitted, next := event.Time(p.emitted.Load()), event.Time(p.next.Load())
	if next == afterEnd {
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

// paced returns the position at a moment of the wall clock by speed alone. The caller holds the lock.
func (p *Player) paced(now time.Time) event.Time {
	elapsed := float64(now.Sub(p.anchor)) * p.speed
	return p.base + event.Time(min(elapsed, float64(math.MaxInt64/4)))
}

// change applies a change at the current position and wakes Run up.
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

// Play resumes after a pause.
func (p *Player) Play() { p.change(func() { p.paused = false }) }

// Pause stops the clock.
func (p *Player) Pause() { p.change(func() { p.paused = true }) }

// Step pauses and advances by one event or token.
func (p *Player) Step(by Step) { p.change(func() { p.paused, p.step = true, by }) }

// SetSpeed sets the speed as a multiple of the recorded speed: Slowest to Fastest, or Unpaced.
func (p *Player) SetSpeed(x float64) error {
	if !math.IsInf(x, 1) && !(x >= Slowest && x <= Fastest) {
		return fmt.Errorf("set speed %v: must be %v to %v", x, Slowest, Fastest)
	}
	p.change(func() { p.speed = x })
	return nil
}

// SeekTime moves to a time of the recording, limited to its range. All events up to it are emitted as fast as possible;
// for an earlier time they are emitted from the start, into the sink from Reset. A playing player continues from there.
func (p *Player) SeekTime(at event.Time) error {
	at = min(max(at, p.rec.Begin), p.rec.End)
	if p.opt.Reset == nil && at < p.Now() {
		return errors.New("seek back: this replay can only go forward")
	}
	p.change(func() { p.seeking, p.target, p.step = true, at, StepNone })
	return nil
}

// SeekRequest moves to the time at which a request was queued; engine is the name of its engine in a recording of
// several. It returns a one-line error if the recording does not have the request.
func (p *Player) SeekRequest(engine string, id event.RequestID) error {
	number := max(slices.IndexFunc(p.rec.Engines, func(s EngineEntry) bool { return s.Name == engine }), 0)
	at, err := p.rec.FindRequest(number, id)
	if err != nil {
		return err
	}
	return p.SeekTime(at)
}
