package store

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
)

// HostPoint is one sample of the machine, about 280 bytes. Absent readings are NaN.
type HostPoint struct {
	At       event.Time
	Interval time.Duration // time before At that rates are averaged over
	V        [event.NumGauges]float64
	ITL      float64 // ns, mean gap of all tokens generated since the previous sample; NaN without tokens
	Tokens   uint64  // tokens generated since the previous sample
}

// newHostPoint builds a point from a sample and the gaps since the previous one, which it resets.
func newHostPoint(at event.Time, h *event.Host, gaps *gapSum) HostPoint {
	p := HostPoint{At: at, Interval: time.Duration(h.Interval), ITL: math.NaN(), Tokens: gaps.tokens}
	for g := range event.NumGauges {
		p.V[g] = orNaN(g.Reading(h))
	}
	if gaps.n > 0 {
		p.ITL = gaps.sum / float64(gaps.n)
	}
	*gaps = gapSum{}
	return p
}

// gapSum sums the gaps between tokens from one machine sample to the next.
type gapSum struct {
	sum       float64 // ns
	n, tokens uint64  // number of gaps in sum; number of all tokens, first ones included
}

// SampleAt returns the sample whose interval covers t; false if absent.
func (h *Host) SampleAt(t event.Time) (p *HostPoint, ok bool) {
	i := h.indexOf(t)
	if i == len(h.Series) || h.Series[i].At-event.Time(h.Series[i].Interval) > t {
		return nil, false
	}
	return &h.Series[i], true
}

// SamplesWithin returns the samples of a window that ends now.
func (h *Host) SamplesWithin(w metric.Window, now event.Time) []HostPoint {
	if w == metric.Session {
		return h.Series
	}
	return h.Series[h.indexOf(now-event.Time(w.Span())):]
}

// indexOf returns the index of the first sample at or after t.
func (h *Host) indexOf(t event.Time) int {
	i, _ := slices.BinarySearchFunc(h.Series, t, func(p HostPoint, t event.Time) int { return cmp.Compare(p.At, t) })
	return i
}
