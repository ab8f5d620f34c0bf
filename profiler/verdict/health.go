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
	Unjudged Status = iota // not enough was measured
	Healthy
	Degraded
)

// Health is the status of an engine with the verdict that decided it, nil if Unjudged.
type Health struct {
	Status  Status
	Verdict *Verdict
}

// settling is how long a verdict must last to degrade the health of an engine, so that it does not flicker.
const settling = event.Time(3 * time.Second)

// HealthOf returns the health by the verdicts of a time, most severe first. It is Degraded if a verdict that degrades it
// has lasted for some seconds, and Healthy if there is none, but a measure within its limit.
func HealthOf(verdicts []Verdict, now event.Time) Health {
	degrades := func(v Verdict) bool { return v.Degrades && (v.Severity == Bad || now-v.Since >= settling) }
	if i := slices.IndexFunc(verdicts, degrades); i >= 0 {
		return Health{Degraded, &verdicts[i]}
	}
	if i := slices.IndexFunc(verdicts, func(v Verdict) bool { return v.Severity == Good }); i >= 0 {
		return Health{Healthy, &verdicts[i]}
	}
	return Health{}
}
