package report

import (
	"slices"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/store"
)

// Live makes the report of what a store shows at one moment: that of a run which nobody collects, or of a moment that has passed. It has the numbers
// of the run's own report, but the tokens that the store no longer keeps, which are counted as cut, and no texts: neither prompts nor what was
// generated.
func Live(meta Meta, s *store.Snapshot) *Report {
	meta.Partial = meta.Partial || s.Counts.Running+s.Counts.Queued > 0
	c := NewCollector()
	c.requests = s.Counts.MoreRequests - min(s.Counts.MoreRequests, uint64(len(s.Past)))
	for _, r := range s.Past {
		c.take(r)
	}
	for _, r := range slices.Backward(s.Requests) {
		c.take(r)
	}
	return Build(meta, s, c)
}

// take keeps a request as a store shows it.
func (c *Collector) take(r *store.Request) {
	if _, twice := c.byID[r.ID]; twice { // an engine that began anew uses its ids again
		c.requests++
		return
	}
	rec := c.record(r.ID, r.Enqueued)
	if rec == nil {
		c.requests++
		return
	}
	kept := 0
	for i := range r.Tokens {
		t := &r.Tokens[i]
		kept += t.N
		gap := t.Gap
		if t.Nth == 0 {
			gap = -1
		}
		out := token{at: int64(t.At - r.Enqueued), gap: gap, id: t.ID, index: int32(t.Index), n: int32(t.N), logP: t.LogP, hasLogP: t.HasLP, picks: t.Picks}
		for _, top := range t.Top {
			out.top = append(out.top, event.TopProb{ID: top.ID, LogP: top.LogP})
		}
		rec.tokens = append(rec.tokens, out)
	}
	rec.cut = uint64(max(r.Generated-kept, 0))
	c.tokens += rec.cut
	c.Request(r)
}
