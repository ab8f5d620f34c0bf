package store

import (
	"math"
	"slices"

	"github.com/llmtop/llmtop/profiler/event"
)

// machine collects the samples of the machine.
type machine struct {
	Host
	gaps gapSum // since the last sample
}

// apply stores a sample. Readings that are not in every sample keep their last value.
func (h *machine) apply(at event.Time, p *event.Host) {
	cached := h.ExpertsCached
	h.Host.Host, h.At, h.Sampled = *p, at, true
	if len(p.ExpertsCached) > 0 {
		h.ExpertsAt = at
	} else {
		h.ExpertsCached = cached
	}
	if p.Engine.PSS != (event.Reading{}) {
		h.Inspection.PSS, h.Inspection.PSSAt = p.Engine.PSS, at
	}
	if p.ModelBytes != (event.Reading{}) {
		h.Inspection.ModelBytes, h.Inspection.ModelCached, h.Inspection.ModelAt = p.ModelBytes, p.ModelCached, at
	}
	h.Host.Engine.PSS, h.Host.ModelBytes, h.Host.ModelCached = h.Inspection.PSS, h.Inspection.ModelBytes, h.Inspection.ModelCached
	if n := len(h.Series); n > 0 && at < h.Series[n-1].At { // keep the series in order
		return
	}
	h.Series = push(h.Series, newHostPoint(at, p, &h.gaps), SeriesLen)
}

// orNaN returns a reading for a chart: NaN, a gap, if it is absent.
func orNaN(r event.Reading) float64 {
	if !r.OK() {
		return math.NaN()
	}
	return r.V
}

// view returns what snapshots show.
func (h *machine) view() Host {
	v := h.Host
	v.Series = slices.Clip(v.Series)
	return v
}
