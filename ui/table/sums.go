package table

import (
	"math"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/profiler/store"
)

// Sums are the totals of the rows of a list. Quantiles are exact, over per-request values by nearest rank; NaN without
// values. TTFT quantiles cover warm requests only. Probes of llmtop are excluded.
type Sums struct {
	Counted           int // rows included in the totals
	States            [event.NumStates]int
	AnyQueue          bool // the requests in the queued state only wait, see store.Request.AnyQueue
	Missed            int  // requests that missed at least one target
	Prompt, Generated int
	GeneratedAtLeast  bool          // Generated is a lower bound
	Cached            event.Reading // absent if a request of these did not report it
	P50, P99          [NumFields]float64
}

// sum computes the totals of the rows.
func (l *Requests) sum(now event.Time) {
	l.Sums = Sums{Cached: event.DerivedValue(0)}
	s := &l.Sums
	for _, r := range l.Rows {
		if r.Probe {
			continue
		}
		s.Counted++
		s.States[r.State]++
		s.AnyQueue = s.AnyQueue || r.Status() == store.Waiting
		s.Prompt += r.PromptTokens
		if r.PromptTokens > 0 && r.AnyCached && r.State.Final() {
			s.Cached = event.Absent(event.NotReported)
		} else if v := Cached.Value(r, now); v.OK() && s.Cached.OK() {
			s.Cached.V += v.V
		}
		s.Generated += r.Generated
		s.GeneratedAtLeast = s.GeneratedAtLeast || r.GeneratedAtLeast()
		if Missed(r, now) {
			s.Missed++
		}
	}
	for f := range NumFields {
		s.P50[f], s.P99[f] = math.NaN(), math.NaN()
		switch {
		case f.Unit() == "s" && f != Age:
			s.P50[f], s.P99[f] = l.quantiles(f, now)
		case f.Unit() == "{token}/s": // its 99th percentile would be the best value, not the worst
			s.P50[f], _ = l.quantiles(f, now)
		}
	}
}

func (l *Requests) quantiles(f Field, now event.Time) (p50, p99 float64) {
	all := l.samples[:0]
	for _, r := range l.Rows {
		if r.Probe || f == TTFT && r.Cold {
			continue
		}
		if v := f.Value(r, now); v.OK() {
			all = append(all, v.V)
		}
	}
	l.samples = all
	if len(all) == 0 {
		return math.NaN(), math.NaN()
	}
	half := rank(len(all), 50)
	p50 = metric.SelectNth(all, half)
	return p50, metric.SelectNth(all[half:], rank(len(all), 99)-half)
}

// rank returns the index of the p-th percentile of n sorted values.
func rank(n, p int) int { return (n*p+99)/100 - 1 }
