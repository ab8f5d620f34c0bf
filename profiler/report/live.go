package report

import (
	"slices"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/store"
)

// FromSnapshot returns a report of a snapshot alone, without a collector: of a run that was not collected, or of an
// earlier moment. It has the same numbers as the report of the run. It lacks prompts and generated text, and the tokens
// that the store no longer keeps, which are counted as cut.
func FromSnapshot(meta Meta, s *store.Snapshot) *Report {
	meta.Partial = meta.Partial || s.Counts.Running+s.Counts.Queued > 0
	c := NewCollector()
	c.omittedRequests = s.Counts.OmittedRequests - min(s.Counts.OmittedRequests, uint64(len(s.Past)))
	for _, r := range s.Past {
		c.addStored(r)
	}
	for _, r := range slices.Backward(s.Requests) {
		c.addStored(r)
	}
	return Build(meta, s, c)
}

// addStored adds a request from a snapshot.
func (c *Collector) addStored(r *store.Request) {
	if _, exists := c.byID[r.ID]; exists { // a restarted engine reuses its ids
		c.omittedRequests++
		return
	}
	rec := c.record(r.ID, r.Enqueued)
	if rec == nil {
		c.omittedRequests++
		return
	}
	kept := 0
	tokens := r.Tokens.All()
	for i := range tokens {
		t := &tokens[i]
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
	rec.omitted = uint64(max(r.Generated-kept, 0))
	c.omittedTokens += rec.omitted
	c.Request(r)
}
