package probe

import "github.com/llmtop/llmtop/profiler/event"

// speculationEvery is the time between two reports of speculation, in ns.
const speculationEvery = int64(1e9)

// speculation sums what drafts cost and bring.
type speculation struct {
	drafted, accepted, passes uint64 // tokens, tokens, passes of the draft model
	time                      int64  // ns in which drafts were computed
	last, at                  int64  // ns that the last draft took, and when it ended
	reported                  uint64 // drafted tokens in the last report
	reportedAt                int64
}

// add notes a call that worked on drafts.
func (s *speculation) add(r record, d *drafted) {
	took := max(r.at-d.began, 0)
	s.time += took
	if !d.follows {
		s.last, s.at = took, r.at
	}
}

// addDraftPass notes the begin or the end of a pass of a draft model, whose context has no requests.
func (t *tracker) addDraftPass(c *llamaContext, kind uint32) {
	for _, s := range c.sequences {
		t.end(s)
	}
	c.pass = nil
	clear(c.sequences)
	if kind == kindPassEnd {
		t.speculation.passes++
	}
}

// addDraft notes that a pass verifies n drafted tokens of a request, which waited for the draft of all requests.
func (t *tracker) addDraft(r *request, n int) {
	s := &t.speculation
	s.drafted += uint64(n)
	if s.at > r.last { // otherwise drafted earlier
		t.about(r, event.Event{Kind: event.KindStage, Text: "draft", Dur: s.last, N: int32(n)}, s.at)
	}
}

// reportSpeculation emits what drafts cost and brought, if there were any.
func (t *tracker) reportSpeculation(at int64) {
	s := &t.speculation
	if s.drafted == s.reported || at-s.reportedAt < speculationEvery {
		return
	}
	s.reported, s.reportedAt = s.drafted, at
	t.emit(event.Event{Kind: event.KindCounters, Data: &event.Counters{Values: []event.Counter{
		{Name: "draft_passes", Value: float64(s.passes)},
		{Name: "draft_us", Value: float64(s.time) / 1e3},
		{Name: "drafted_tokens", Value: float64(s.drafted)},
		{Name: "drafted_tokens_accepted", Value: float64(s.accepted)},
	}}}, at)
}
