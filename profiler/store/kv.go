package store

import (
	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
)

// kvCache is the state of the KV cache.
type kvCache struct {
	KV        // without Residency
	residency metric.Histogram
	reported  bool // the engine sends its state
}

// apply stores the state that the engine emitted.
func (c *kvCache) apply(p *event.KV) {
	c.reported = true
	c.Used, c.Total, c.Usage = max(p.Used, 0), max(p.Total, 0), event.Absent(event.NotReported)
	if p.Total > 0 {
		c.Usage = event.DerivedValue(metric.Share(float64(c.Used), float64(p.Total)))
	}
	if p.Freed > 0 {
		c.residency.Record(p.Residency, 1)
	}
}

// report stores the state in a report of aggregate metrics.
func (c *kvCache) report(p *event.Aggregates) {
	c.Used, c.Total, c.Usage = 0, 0, p.KVUsage
	if p.KVUsed.OK() && p.KVTotal.OK() {
		c.Used, c.Total = cellCount(p.KVUsed), cellCount(p.KVTotal)
		if !c.Usage.OK() && c.Total > 0 {
			c.Usage = event.DerivedValue(metric.Share(float64(c.Used), float64(c.Total)))
		}
	}
}

// kvNow returns the state of the KV cache without Residency: as the engine reports it, or else what its running requests
// hold.
func kvNow(s *state) KV {
	v := s.kv.KV
	if held, known := held(s); known {
		v.Used, v.Derived = held, true
	}
	return v
}

// view returns what snapshots show of a state.
func (c *kvCache) view(v KV) KV {
	v.Residency = c.residency.Summary()
	return v
}
