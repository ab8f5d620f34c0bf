package store

import (
	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
)

// Sums are the counts of a session as far as the engine tells them: what it does not tell is absent, and no 0.
type Sums struct {
	Queued, Running                    event.Reading // requests, now
	Finished, Cancelled, Failed        event.Reading // requests
	Prompt, Cached, Padding, Generated event.Reading // tokens
	Steps                              event.Reading // forward passes
	Stalls                             event.Reading
}

// InSum reports whether the engine tells of itself in sum, so that what is seen of single requests is not all of them.
func (s *Snapshot) InSum() bool { return s.Reported != nil || s.Engine.Caps.Has(event.CapReports) }

// OnlySums reports whether all that is known of requests is what the engine has told in sum: it is not one that tells single tokens besides.
func (s *Snapshot) OnlySums() bool { return s.Reported != nil && !s.Engine.Caps.Has(event.CapTokens) }

// NoSingles reports whether the engine tells of its requests in sum alone, and not of those in its slots either.
func (s *Snapshot) NoSingles() bool { return s.OnlySums() && len(s.Reported.Slots) == 0 }

// Unreached reports whether the engine at an address has never answered, so that nothing is known of it.
func (s *Snapshot) Unreached() bool {
	link := s.Engine.Remote.Link
	return (link == event.LinkDisconnected || link == event.LinkRefused) && s.Engine.State == event.EngineStarting &&
		s.Reported == nil && s.Model.Name == "" && len(s.Requests)+len(s.Load) == 0
}

// Unasked reports whether it was not even asked yet.
func (s *Snapshot) Unasked() bool { return s.Unreached() && s.Engine.Remote.Since == 0 }

// Sums are the counts of the session. Those of an engine that tells of single requests are counted by llmtop; those of one that tells of itself in sum are
// derived from its counters, where it has such. Requests that were seen in slots are no sum: others have come and gone between two looks.
func (s *Snapshot) Sums() Sums {
	c, stalls := &s.Counts, s.Latency.StallCount[metric.Session]
	not := event.Absent(event.NotYet)
	unknown := Sums{not, not, not, not, not, not, not, not, not, not, not}
	if s.Unreached() {
		return unknown
	}
	if !s.InSum() {
		of := func(n uint64) event.Reading { return event.Of(float64(n)) }
		return Sums{
			Queued: event.Of(float64(c.Queued)), Running: event.Of(float64(c.Running)),
			Finished: of(c.Finished), Cancelled: of(c.Cancelled), Failed: of(c.Failed),
			Prompt: of(c.PromptTokens), Cached: of(c.CachedTokens), Padding: of(c.PadTokens), Generated: of(c.GeneratedTokens),
			Steps: of(c.Steps), Stalls: of(stalls),
		}
	}
	r := s.Reported
	if r == nil {
		return unknown
	}
	return Sums{
		Queued: r.Waiting, Running: r.Running,
		Finished: summed(r.Finished, c.Finished), Cancelled: besides(c.Cancelled), Failed: summed(r.Failed, c.Failed),
		Prompt: summed(r.Prompt, c.PromptTokens), Cached: summed(r.Cached, c.CachedTokens), Padding: besides(c.PadTokens),
		Generated: summed(r.Generated, c.GeneratedTokens), Steps: besides(c.Steps), Stalls: besides(stalls),
	}
}

// Numbers are what the last report told or could have told: what each engine may tell, and what else this one counts.
func (r *Reported) Numbers() []event.Number {
	return append([]event.Number{
		{Name: "running", Reading: r.Running},
		{Name: "waiting", Reading: r.Waiting},
		{Name: "decode_tokens_per_s", Reading: r.Decode},
		{Name: "prefill_tokens_per_s", Reading: r.Prefill},
		{Name: "kv_usage_share", Reading: r.KVUsage},
		{Name: "kv_used_cells", Reading: r.KVUsed},
		{Name: "kv_total_cells", Reading: r.KVTotal},
		{Name: "cache_hits_share", Reading: r.CacheHits},
	}, r.More...)
}

// summed is a count of the session by what the engine told of the last interval: known if it tells it, or has told it before.
func summed(told event.Reading, n uint64) event.Reading {
	if n == 0 && !told.OK() {
		return event.Absent(min(told.Origin, event.Undefined))
	}
	return event.From(float64(n))
}

// besides is a count of what the engine may tell besides, which nothing says that it does while nothing has come.
func besides(n uint64) event.Reading {
	if n == 0 {
		return event.Absent(event.NotReported)
	}
	return event.Of(float64(n))
}
