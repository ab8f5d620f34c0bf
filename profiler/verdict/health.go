package verdict

import (
	"slices"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
)

// Status says whether an engine serves as it should.
type Status uint8

// The statuses.
const (
	Unjudged Status = iota
	NoTarget
	Healthy
	Watched
	Degraded
	NumStatuses
)

// Statuses are the statuses as the screen shows them, and their rules, which help and docs share. The worst that holds is
// shown.
var Statuses = [NumStatuses]struct{ Name, Rule string }{
	Degraded: {"DEGRADED", "an insight that counts against the health has lasted for 3 s, or is red"},
	Watched:  {"WATCH", "an insight is yellow or red, but new, or does not count: a single slow request, a limit that nobody has set, dropped events"},
	Healthy:  {"HEALTHY", "no insight is yellow or red, and a measure is within its limit"},
	NoTarget: {"no target given", "TTFT was measured, but there is no target to judge it by (--slo ttft=500ms), and nothing else was judged"},
	Unjudged: {"no verdict", "nothing was measured that has a limit; the row says why"},
}

// Health is the status of an engine with the verdict that decided it, nil if there is none.
type Health struct {
	Status  Status
	Verdict *Verdict
}

// settling is how long a verdict must last to degrade the health of an engine, so that it does not flicker.
const settling = event.Time(3 * time.Second)

// HealthOf returns the health by the verdicts of a time, most severe first: see Statuses. untargeted reports that TTFT
// was measured without a target.
func HealthOf(verdicts []Verdict, now event.Time, untargeted bool) Health {
	of := func(status Status, is func(v *Verdict) bool) (Health, bool) {
		i := slices.IndexFunc(verdicts, func(v Verdict) bool { return is(&v) })
		if i < 0 {
			return Health{}, false
		}
		return Health{status, &verdicts[i]}, true
	}
	if h, ok := of(Degraded, func(v *Verdict) bool { return v.Degrades && (v.Severity == Bad || now-v.Since >= settling) }); ok {
		return h
	}
	if h, ok := of(Watched, func(v *Verdict) bool { return v.Severity >= Watch }); ok {
		return h
	}
	if h, ok := of(Healthy, func(v *Verdict) bool { return v.Severity == Good }); ok || !untargeted {
		return h
	}
	h, _ := of(NoTarget, func(*Verdict) bool { return true })
	h.Status = NoTarget
	return h
}
