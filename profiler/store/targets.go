package store

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
)

// Targets are the latency limits that requests are checked against; 0: no target. ITL applies to the 99th percentile of
// a request's gaps.
type Targets struct {
	TTFT, Answer, TPOT, ITL, E2EL time.Duration
	DefaultTTFT                   bool // nobody has set TTFT: aggregates, of prompts of any length, are not judged by it
}

// NoTargets is for engines that somebody else runs, until a target is set.
var NoTargets = Targets{DefaultTTFT: true}

// targetNames are the names of the targets, in the order in which they are written.
var targetNames = []string{"ttft", "answer", "tpot", "itl", "e2el"}

// inOrder lists the targets in the order of targetNames.
func (t *Targets) inOrder() []*time.Duration {
	return []*time.Duration{&t.TTFT, &t.Answer, &t.TPOT, &t.ITL, &t.E2EL}
}

// ParseTargets parses targets such as "ttft=100ms,tpot=50ms,e2el=2s".
func ParseTargets(text string) (t Targets, err error) {
	t.DefaultTTFT = true
	for part := range strings.SplitSeq(text, ",") {
		c, found, err := metric.ParseCondition(part)
		i := slices.Index(targetNames, c.Name)
		switch {
		case !found || err != nil || c.Op[0] == '>' || c.Op == "!=" || c.Resolve(&metric.Column{Name: c.Name, Unit: "s"}) != nil:
			return t, fmt.Errorf("%.60q: must be targets like ttft=100ms,tpot=50ms,e2el=2s", part)
		case i < 0:
			return t, fmt.Errorf("%.40q: must be ttft, answer, tpot, itl or e2el", c.Name)
		case !(c.Limit >= 1e-9 && c.Limit <= maxTarget.Seconds()):
			return t, fmt.Errorf("%.60q: must be above 0 and at most %v", part, maxTarget)
		}
		*t.inOrder()[i] = time.Duration(math.Round(c.Limit * 1e9))
	}
	t.DefaultTTFT = t.TTFT == 0
	return t, nil
}

// maxTarget is the longest latency target.
const maxTarget = 24 * time.Hour

// String returns the targets as ParseTargets reads them, "" without any.
func (t Targets) String() string {
	var out []string
	for i, target := range t.inOrder() {
		if v := target.Seconds(); v >= 1 {
			out = append(out, fmt.Sprintf("%s=%gs", targetNames[i], v))
		} else if v > 0 {
			out = append(out, fmt.Sprintf("%s=%gms", targetNames[i], float64(*target)/1e6))
		}
	}
	return strings.Join(out, ",")
}

// Or returns the targets, with those of others for the ones that are not set.
func (t Targets) Or(others Targets) Targets {
	t.DefaultTTFT = t.DefaultTTFT && others.DefaultTTFT
	for i, target := range t.inOrder() {
		*target = cmp.Or(*target, *others.inOrder()[i])
	}
	return t
}

// Any reports whether there is a target.
func (t Targets) Any() bool { return t.TTFT > 0 || t.BeyondTTFT() }

// BeyondTTFT reports whether any target other than TTFT is set.
func (t Targets) BeyondTTFT() bool { return t.Answer > 0 || t.TPOT > 0 || t.ITL > 0 || t.E2EL > 0 }

// Misses is a set of missed targets.
type Misses uint8

// The targets that a request can miss.
const (
	MissedTTFT Misses = 1 << iota
	MissedTPOT
	MissedITL
	MissedE2EL
	MissedAnswer
)

// Has reports whether the sets have a common target.
func (m Misses) Has(other Misses) bool { return m&other != 0 }

// Misses returns the targets that a request has missed, or can no longer meet because it has run for too long. The
// targets of TTFT and E2EL do not apply to cold requests, which wait for the model load.
func (r *Request) Misses(now event.Time) (m Misses) {
	t := &r.Targets
	over := func(v event.Reading, target time.Duration) bool {
		return target > 0 && v.OK() && v.V > target.Seconds()
	}
	open := !r.State.Final() && !r.MissedStart && !r.Polled
	waited := time.Duration(now - r.Enqueued)
	worked := waited - time.Duration(r.Paced.V*second)
	late := open && r.First == 0 && r.TTFT.Origin == event.NotYet && waited > t.TTFT
	if !r.Cold && t.TTFT > 0 && (late || r.TTFT.OK() && !r.HitTarget) {
		m |= MissedTTFT
	}
	if answer := r.AnswerBy(); !r.Cold && t.Answer > 0 && (over(answer, t.Answer) || open && r.Answered == 0 && worked > t.Answer) {
		m |= MissedAnswer
	}
	tpot := r.TPOT
	if r.State.Final() {
		tpot = JudgedTPOT(r.TPOT, r.Decode, r.E2EL, r.Generated, r.Cold)
	}
	if over(tpot, t.TPOT) {
		m |= MissedTPOT
	}
	if t.ITL > 0 && r.ITL.Count > 0 && r.ITL.P99 > int64(t.ITL) {
		m |= MissedITL
	}
	if !r.Cold && (over(r.E2EL, t.E2EL) || t.E2EL > 0 && open && worked > t.E2EL) {
		m |= MissedE2EL
	}
	return m
}

// JudgedTPOT returns the time per token by which an ended request is judged: its TPOT, or E2EL / generated if its tokens
// have no gaps because they came in one piece. One token has no TPOT to miss, and neither has such an answer of a cold
// request, whose E2EL holds the model load, nor one that was streamed with tokens that were not: 0. Absent if nothing was
// generated or the times are unknown.
func JudgedTPOT(tpot, decode, e2el event.Reading, generated int, cold bool) event.Reading {
	switch {
	case tpot.OK() || generated < 1:
		return tpot
	case generated == 1 || cold || decode.OK():
		return event.DerivedValue(0)
	case e2el.OK():
		return event.DerivedValue(e2el.V / float64(generated))
	}
	return tpot
}

// met reports whether a finished request met every target. Without gaps, ITL is judged like TPOT; without TTFT, because
// the answer was not streamed, its text came with its end.
func (r *Request) met() bool {
	t := &r.Targets
	within := func(v event.Reading, target time.Duration) bool {
		return target <= 0 || v.OK() && v.V <= target.Seconds()
	}
	if t.TTFT > 0 && !r.HitTarget && (r.TTFT.OK() || !within(r.E2EL, t.TTFT)) || !within(r.E2EL, t.E2EL) {
		return false
	}
	answer := r.AnswerBy()
	if !answer.OK() && r.First == 0 {
		answer = r.E2EL
	}
	if !within(answer, t.Answer) {
		return false
	}
	if r.Generated == 0 {
		return true
	}
	tpot := JudgedTPOT(r.TPOT, r.Decode, r.E2EL, r.Generated, r.Cold)
	if r.ITL.Count > 0 {
		return within(tpot, t.TPOT) && (t.ITL <= 0 || r.ITL.P99 <= int64(t.ITL))
	}
	return within(tpot, t.TPOT) && within(tpot, t.ITL)
}
