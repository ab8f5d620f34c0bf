package store

import (
	"fmt"
	"slices"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/profiler/verdict"
)

// servedEvidence adds what verdicts on a server are based on whose requests are not measured.
func (v *Snapshot) servedEvidence(e *verdict.Evidence) {
	r, served := v.Aggregates, &e.Served
	served.Running, served.Waiting, served.Ranks = r.Running, r.Waiting, r.Ranks
	if p := r.Parts(metric.Minute); p.Total > 0 && !p.Undivided() {
		largest := slices.MaxFunc(p.Parts, func(a, b Part) int { return int(a.Dur - b.Dur) })
		e.Dominant, e.DomShare = PartName(largest.Stage), largest.Share
	}
	if n := r.Number(event.CountPreemptions); n != nil && n.At == r.At {
		served.Preempted = n.Last
	}
	served.Speed, served.SpeedEvidence = v.servedSpeed()
}

// servedSpeed returns the decode speed of one request in tokens/s, and a text that names its source: the engine's own
// histograms, or else the slots that were polled.
func (v *Snapshot) servedSpeed() (speed event.Reading, source string) {
	for _, name := range [...]string{event.HistogramTPOT, event.HistogramITL, event.HistogramPerToken} {
		if sum := v.Aggregates.Summary(name, metric.Minute); sum.Count > 0 && sum.Mean > 0 {
			return event.DerivedValue(second / sum.Mean), "mean time per token " + metric.Duration(int64(sum.Mean)) + " in the last minute, as the engine counts it"
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
	return event.DerivedValue(float64(tokens) / took), fmt.Sprintf("progress of polled slots in the last minute: %d measured", n)
}
