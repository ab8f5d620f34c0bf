package store

import (
	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
)

// kvCache is the state of the KV cache.
type kvCache struct {
	KV        // without Residency
	residency metric.Histogram
}

// apply stores the state that the engine emitted.
func (c *kvCache) apply(p *event.KV) {
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

// view returns what snapshots show.
func (c *kvCache) view() KV {
	v := c.KV
	v.Residency = c.residency.Summary()
	return v
}
