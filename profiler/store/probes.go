package store

import (
	"slices"

	"github.com/llmtop/llmtop/profiler/event"
)

// aside is Snapshot.Aside while events come. The engine's own counts have such a request in them already.
func (s *state) aside(l *live) bool {
	return l.view.Probe && s.engine.Caps.Has(event.CapReports)
}

// Aside reports whether a request is no part of the engine's statistics: llmtop's own probe of an engine that tells of itself in sum.
func (s *Snapshot) Aside(r *Request) bool { return r.Probe && s.Engine.Caps.Has(event.CapReports) }

// recentProbes is how many probes a summary is made of at most.
const recentProbes = 32

// Probes sums up the last probes of an engine.
type Probes struct {
	Count, Failed    int           // that have ended
	TTFT, TPOT, E2EL event.Reading // s, medians of those that finished
	Last             *Request      // the newest one; nil: there is none
}

// Probes sums up llmtop's own requests, at most recentProbes of them.
func (s *Snapshot) Probes() (p Probes) {
	var ttft, tpot, e2el []float64
	add := func(to *[]float64, r event.Reading) {
		if r.OK() {
			*to = append(*to, r.V)
		}
	}
	each := func(r *Request) {
		if !r.Probe || p.Count >= recentProbes {
			return
		}
		if p.Last == nil {
			p.Last = r
		}
		switch {
		case !r.State.Final():
			return
		case r.State != event.StateFinished:
			p.Failed++
		default:
			add(&ttft, r.TTFT)
			add(&tpot, r.TPOT)
			add(&e2el, r.E2EL)
		}
		p.Count++
	}
	for _, r := range s.Requests {
		each(r)
	}
	for _, r := range slices.Backward(s.Past) {
		each(r)
	}
	p.TTFT, p.TPOT, p.E2EL = medianOf(ttft), medianOf(tpot), medianOf(e2el)
	return p
}

// medianOf is the lower median, absent of nothing.
func medianOf(v []float64) event.Reading {
	if len(v) == 0 {
		return event.Absent(event.NotYet)
	}
	slices.Sort(v)
	return event.From(v[(len(v)-1)/2])
}
