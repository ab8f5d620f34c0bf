package recording

import (
	"math"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
)

// turnPlan is what Run does in one turn.
type turnPlan struct {
	until  event.Time // emit events up to this time
	rewind bool       // restart from an earlier segment first
	step   Step       // advance by one step instead
	seek   bool
}

// turn emits a burst and returns how long to wait then: 0 if more is due, negative to wait for a change.
func (p *Player) turn() (time.Duration, error) {
	o, idle := p.plan()
	if idle {
		return -1, nil
	}
	if o.rewind {
		p.begin(p.rec.segmentFor(o.until, p.opt.Rebuild))
		p.sink = p.opt.Reset()
		if err := p.fetch(); err != nil {
			return 0, err
		}
	}
	if o.step != StepNone {
		return 0, p.stepOnce(o.step)
	}
	n := 0
	for ; n < burst && p.more && event.Time(p.next.Load()) <= o.until; n++ {
		if _, err := p.emitNext(); err != nil {
			return 0, err
		}
	}
	return p.settle(&o, n == burst), nil
}

// plan returns what to do now; idle if there is nothing to do.
func (p *Player) plan() (o turnPlan, idle bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.damage = p.cursor.Damage()
	switch {
	case p.seeking:
		// Rewind if the cursor or the clock is past the target: a store must not see time decrease.
		rewind := p.target < event.Time(p.emitted.Load()) || p.target < p.base
		p.base = p.target
		return turnPlan{until: p.target, rewind: rewind, seek: true}, false
	case p.step != StepNone:
		o.step, p.step = p.step, StepNone
		return o, false
	case p.paused || p.ended:
		return o, true
	case math.IsInf(p.speed, 1):
		o.until = afterEnd - 1
	default:
		o.until = p.paced(p.opt.Clock())
	}
	return o, false
}

// stepOnce advances by one step.
func (p *Player) stepOnce(by Step) error {
	for p.more {
		token, err := p.emitNext()
		if err != nil {
			return err
		}
		if token || by == StepEvent {
			break
		}
	}
	p.drain()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.base, p.ended = event.Time(p.emitted.Load()), !p.more
	return nil
}

// settle adjusts the clock after a burst and returns how long to wait for the next one.
func (p *Player) settle(o *turnPlan, full bool) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.damage = p.cursor.Damage()
	emitted, next := event.Time(p.emitted.Load()), event.Time(p.next.Load())
	now := p.opt.Clock()
	if full && (o.seek || math.IsInf(p.speed, 1)) {
		return 0
	}
	if o.seek {
		if p.seeking && p.target == o.until { // no new seek since the turn started
			p.seeking, p.base, p.anchor = false, o.until, now
		}
		p.ended = !p.more && p.base >= p.rec.End
		return 0
	}
	if p.paused {
		return 0
	}
	at := p.paced(now)
	if !p.more && (math.IsInf(p.speed, 1) || at >= p.rec.End) {
		p.ended, p.base = true, max(emitted, p.rec.End)
		return -1
	}
	if full {
		if lag := float64(at-emitted) / p.speed; lag > float64(patience) && !p.exact {
			p.base, p.anchor = emitted, now
		}
		return 0
	}
	if !p.more {
		next = p.rec.End
	}
	wait := float64(next-at) / p.speed
	return time.Duration(min(max(wait, float64(nap)), float64(time.Hour)))
}
