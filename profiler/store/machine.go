package store

import (
	"math"
	"slices"

	"github.com/llmtop/llmtop/profiler/event"
)

// machine collects the samples of the machine.
type machine struct {
	host *Host  // nil: no sample yet, as with a server on another machine
	gaps gapSum // since the last sample
}

// noHost is the sample of a machine that has sent none.
var noHost = Host{Host: new(event.Host)}

// last returns the last sample of the machine, an empty one without samples. Callers only read it.
func (m *machine) last() *Host {
	if m.host == nil {
		return &noHost
	}
	return m.host
}

// apply stores a sample of a session that began at a time. Readings that are not in every sample keep their last value.
func (m *machine) apply(began, at event.Time, p *event.Host) {
	h, now, last := *m.last(), *p, m.last().Host
	if len(p.ExpertsCached) > 0 {
		h.ExpertsAt = at
	} else {
		now.ExpertsCached = last.ExpertsCached
	}
	if p.Engine.PSS != (event.Reading{}) {
		h.PSSAt = at
	} else {
		now.Engine.PSS = last.Engine.PSS
	}
	if p.ModelBytes != (event.Reading{}) {
		h.ModelAt = at
	} else {
		now.ModelBytes, now.ModelCached = last.ModelBytes, last.ModelCached
	}
	h.Host, h.At, h.Sampled, h.Usage = &now, at, true, h.Usage.with(began, at, p)
	if h.Series == nil {
		h.Series = make([]HostPoint, 0, SeriesLen) // all snapshots share it
	}
	if n := len(h.Series); n == 0 || at >= h.Series[n-1].At { // keep the series in order
		h.Series = push(h.Series, newHostPoint(at, p, &m.gaps), SeriesLen)
	}
	m.host = &h
}

// orNaN returns a reading for a chart: NaN, a gap, if it is absent.
func orNaN(r event.Reading) float64 {
	if !r.OK() {
		return math.NaN()
	}
	return r.V
}

// view returns what snapshots show.
func (m *machine) view() Host {
	v := *m.last()
	v.Series = slices.Clip(v.Series)
	return v
}
