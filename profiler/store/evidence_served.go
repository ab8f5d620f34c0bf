package store

import (
	"fmt"
	"slices"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/profiler/verdict"
)

// servedEvidence gathers what verdicts on a server rest on that tells of its requests in sum; nil where single tokens are known.
func (v *Snapshot) servedEvidence() *verdict.Served {
	r := v.Reported
	if !v.OnlySums() {
		return nil
	}
	e := &verdict.Served{Running: r.Running, Waiting: r.Waiting, Slots: v.Throughput.Slots}
	if t := r.Over(event.TimesTTFT, metric.Minute); t != nil {
		e.TTFT = *t
	}
	if t := r.Over(event.TimesITL, metric.Minute); t != nil {
		e.ITL = *t
	}
	if parts, total := r.Parts(metric.Minute); total > 0 {
		most := slices.MaxFunc(parts, func(a, b Part) int { return int(a.Dur - b.Dur) })
		e.Dominant, e.DomShare = PartName(most.Stage), most.Share
		if len(parts) == 1 { // only what nobody accounts for
			e.Dominant = ""
		}
	}
	if i := slices.IndexFunc(r.More, func(n event.Number) bool { return n.Name == "preemptions" }); i >= 0 {
		e.Preempted = r.More[i].Reading
	}
	e.Speed, e.SpeedOf = v.servedSpeed()
	return e
}

// servedSpeed is how many tokens/s a request gets once it decodes, and what that rests on: what the engine counts, or what was seen of the requests
// in its slots.
func (v *Snapshot) servedSpeed() (speed event.Reading, of string) {
	for _, name := range [...]string{event.TimesTPOT, event.TimesITL, event.TimesPerToken} {
		if t := v.Reported.Over(name, metric.Minute); t != nil && t.Count > 0 && t.Mean > 0 {
			return event.From(second / t.Mean), fmt.Sprintf("mean time per token %s in the last minute, as the engine counts it", metric.Duration(int64(t.Mean)))
		}
	}
	took, tokens, n := 0.0, 0, 0
	for _, r := range v.Requests {
		if r.Polled && r.TPOT.OK() && v.Now-r.Last <= event.Time(metric.Minute.Span()) {
			took, tokens, n = took+r.TPOT.V*float64(r.Generated), tokens+r.Generated, n+1
		}
	}
	if took <= 0 {
		return event.Reading{}, ""
	}
	return event.From(float64(tokens) / took), fmt.Sprintf("by how far requests in slots were at two looks: %d of the last minute", n)
}
