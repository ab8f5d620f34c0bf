package trace

import (
	"math"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
)

// order is what Run is to do in one turn.
type order struct {
	until event.Time // emit what is not later
	back  bool       // begin anew first
	step  Step       // instead of until
	seek  bool
}

// turn emits a burst and returns how long there is nothing to do then: 0 if there is more, negative until something is asked for.
func (p *Player) turn() (time.Duration, error) {
	o, idle := p.plan()
	if idle {
		return -1, nil
	}
	if o.back {
		p.begin(p.rec.segmentFor(o.until, p.opt.Rebuild))
		p.sink = p.opt.Reset()
		if err := p.fetch(); err != nil {
			return 0, err
		}
	}
	if o.step != StepNone {
		return 0, p.walk(o.step)
	}
	n := 0
	for ; n < burst && p.more && event.Time(p.next.Load()) <= o.until; n++ {
		if _, err := p.play(); err != nil {
			return 0, err
		}
	}
	return p.settle(&o, n == burst), nil
}

// plan says what is to do now; idle if there is nothing.
func (p *Player) plan() (o order, idle bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.damage = p.cursor.Damage()
	switch {
	case p.seeking:
		// The cursor has gone past the target, or the clock has: a store must not see it go back.
		back := p.target < event.Time(p.emitted.Load()) || p.target < p.base
		p.base = p.target
		return order{until: p.target, back: back, seek: true}, false
	case p.step != StepNone:
		o.step, p.step = p.step, StepNone
		return o, false
	case p.paused || p.ended:
		return o, true
	case math.IsInf(p.speed, 1):
		o.until = beyond - 1
	default:
		o.until = p.paced(p.opt.Clock())
	}
	return o, false
}

// walk goes on by one step.
func (p *Player) walk(by Step) error {
	for p.more {
		token, err := p.play()
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

// settle keeps the clock after a burst and returns how long to wait for the next one.
func (p *Player) settle(o *order, full bool) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	emitted, next := event.Time(p.emitted.Load()), event.Time(p.next.Load())
	now := p.opt.Clock()
	if full && (o.seek || math.IsInf(p.speed, 1)) {
		return 0
	}
	if o.seek {
		if p.seeking && p.target == o.until { // no other seek has been asked for meanwhile
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
