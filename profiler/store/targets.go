package store

import (
	"time"

	"github.com/llmtop/llmtop/profiler/event"
)

// Targets are what a request is held against; 0 is no target. That of ITL is for the 99th percentile of a request's gaps.
type Targets struct{ TTFT, TPOT, ITL, E2EL time.Duration }

// Several reports whether there is any target besides that of TTFT.
func (t Targets) Several() bool { return t.TPOT > 0 || t.ITL > 0 || t.E2EL > 0 }

// Misses are targets that were missed.
type Misses uint8

// The targets.
const (
	MissedTTFT Misses = 1 << iota
	MissedTPOT
	MissedITL
	MissedE2EL
)

// Has reports whether one of some targets is among them.
func (m Misses) Has(some Misses) bool { return m&some != 0 }

// Misses are the targets that a request has missed, or must miss because it has been at it for longer already. Those of TTFT and E2EL do
// not apply to a cold request, which waits for the model load.
func (r *Request) Misses(now event.Time) (m Misses) {
	t := &r.Targets
	over := func(v event.Reading, target time.Duration) bool {
		return target > 0 && v.OK() && v.V > target.Seconds()
	}
	open := !r.State.Final() && !r.Late && !r.Polled
	waited := time.Duration(now - r.Enqueued)
	if !r.Cold && t.TTFT > 0 && (r.TTFT.OK() && !r.HitTarget || open && r.First == 0 && r.TTFT.Origin == event.NotYet && waited > t.TTFT) {
		m |= MissedTTFT
	}
	if over(r.TPOT, t.TPOT) {
		m |= MissedTPOT
	}
	if t.ITL > 0 && r.ITL.Count > 0 && r.ITL.P99 > int64(t.ITL) {
		m |= MissedITL
	}
	if !r.Cold && (over(r.E2EL, t.E2EL) || t.E2EL > 0 && open && waited-r.pacing() > t.E2EL) {
		m |= MissedE2EL
	}
	return m
}

// pacing is the time that was waited on purpose so far.
func (r *Request) pacing() time.Duration { return time.Duration(r.Paced.V * second) }

// met reports whether a request that has finished met every target. One of a single token has no TPOT and ITL to miss.
func (r *Request) met() bool {
	t := &r.Targets
	within := func(v event.Reading, target time.Duration) bool {
		return target <= 0 || v.OK() && v.V <= target.Seconds()
	}
	if t.TTFT > 0 && !r.HitTarget || !within(r.E2EL, t.E2EL) {
		return false
	}
	if r.Generated < 2 {
		return true
	}
	return within(r.TPOT, t.TPOT) && (t.ITL <= 0 || r.ITL.Count > 0 && r.ITL.P99 <= int64(t.ITL))
}
