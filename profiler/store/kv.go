package store

import (
	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
)

// kvCache is the state of the KV cache.
type kvCache struct {
	KV        // without Residency
	residency metric.Histogram
	reported  bool       // the engine sends its state
	frees     bool       // it sends how long cells were in use: nothing is derived
	others    bool       // cells were in use that no running request held: when a request's are freed is unknown
	fitted    event.Time // the last state with no more cells in use than the running requests held
}

// apply stores the state that the engine emitted.
func (c *kvCache) apply(p *event.KV) {
	c.reported = true
	c.Used, c.Total, c.Usage = max(p.Used, 0), max(p.Total, 0), event.Absent(event.NotReported)
	switch {
	case p.Total > 0 && float64(p.Used) > event.MaxShare*float64(p.Total): // they contradict each other
		c.Used, c.Total = 0, 0
	case p.Total > 0:
		c.Usage = event.DerivedValue(metric.Share(float64(c.Used), float64(p.Total)))
	}
	if p.Freed > 0 {
		if !c.frees {
			c.frees, c.residency = true, metric.Histogram{}
		}
		c.residency.Record(p.Residency, 1)
	}
}

// applyKV stores the state of the KV cache, and compares it with what the running requests hold: the tokens of each, in
// whole pages. The state that late joiners get comes before the requests.
func applyKV(s *state, at event.Time, p *event.KV) {
	c := &s.kv
	c.apply(p)
	if at <= s.derived.met || c.frees || !reportsItself(s.engine) {
		return
	}
	cells, known, _ := held(s)
	switch most := cells + int64(s.requests.count(event.StateDispatched))*max(p.Page-1, 0); {
	case !known:
	case c.Used <= most:
		c.fitted = at
	case !c.others:
		c.others, c.residency = true, metric.Histogram{}
	}
}

// report stores the state in a report of aggregate metrics.
func (c *kvCache) report(p *event.Aggregates) {
	c.Used, c.Total, c.Usage = 0, 0, p.KVUsage
	if p.KVUsed.OK() && p.KVTotal.OK() {
		c.Used, c.Total = int64(countOf(p.KVUsed)), int64(countOf(p.KVTotal))
		if !c.Usage.OK() && c.Total > 0 {
			c.Usage = event.DerivedValue(metric.Share(float64(c.Used), float64(c.Total)))
		}
	}
}

// kvNow returns the state of the KV cache without Residency: as the engine reports it, or else what its running requests
// hold.
func kvNow(s *state) KV {
	v := s.kv.KV
	if held, _, whole := held(s); whole && derivesKV(s) {
		v.Used, v.Derived = held, true
	}
	return v
}

// view returns what snapshots show of a state.
func (c *kvCache) view(v KV) KV {
	v.Residency, v.ResidencyDerived = c.residency.Summary(), !c.frees
	return v
}
