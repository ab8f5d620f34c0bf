package store

import (
	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
)

// Totals are the totals of a session. A number that the engine does not report is absent, not 0.
type Totals struct {
	Queued, Running                    event.Reading // requests, now
	Finished, Cancelled, Failed        event.Reading // requests
	Unseen                             event.Reading // requests whose ends were not received; absent: none
	FinishedSeen                       event.Reading // requests that polls saw until they finished, if nothing counts all: see MissedByPolls
	Prompt, Cached, Padding, Generated event.Reading // tokens
	AtLeast                            bool          // Generated is a lower bound
	PromptAtLeast, CachedAtLeast       bool          // some requests did not report theirs
	Steps                              event.Reading // forward passes
	Stalls, Unmeasured                 event.Reading // see Counts.Unmeasured
}

// NeverReached reports whether an attached engine has never responded, so that there is no data about it.
func (s *Snapshot) NeverReached() bool {
	return s.Engine.Remote.Link.Down() && s.Engine.State == event.EngineStarting &&
		s.Aggregates.At == 0 && s.Model.Name == "" && len(s.Requests)+len(s.Load) == 0
}

// NeverPolled reports whether the engine has not even been polled yet.
func (s *Snapshot) NeverPolled() bool { return s.NeverReached() && s.Engine.Remote.Since == 0 }

// Totals returns the totals of the session: counted by llmtop if the engine reports single requests, derived from the
// engine's counters if it reports aggregates. Polled requests are not totalled: others may have run between two polls.
func (s *Snapshot) Totals() Totals {
	c, stalls := &s.Counts, s.Latency.StallCount[metric.Session]
	notYet := event.Absent(event.NotYet)
	unknown := Totals{
		Queued: notYet, Running: notYet, Finished: notYet, Cancelled: notYet, Failed: notYet,
		Prompt: notYet, Cached: notYet, Padding: notYet, Generated: notYet, Steps: notYet, Stalls: notYet, Unmeasured: notYet,
	}
	if s.NeverReached() || s.Engine.Name == "" && s.Engine.State == event.EngineStarting && len(s.Requests) == 0 { // an engine of which nothing is known yet
		return unknown
	}
	if !s.Polled() {
		return s.ownTotals()
	}
	r := &s.Aggregates
	if seesAll(&s.Engine) { // and only the server knows which of its requests wait
		own := s.ownTotals()
		if r.Waiting.OK() && r.Running.OK() {
			own.Queued, own.Running = r.Waiting, r.Running
		}
		return own
	}
	if r.At == 0 {
		return unknown
	}
	out := Totals{
		Queued: r.Waiting, Running: r.Running,
		Finished: sessionTotal(r.Finished, c.Finished), Cancelled: sessionTotal(r.Cancelled, c.Cancelled), Failed: sessionTotal(r.Failed, c.Failed),
		Prompt: sessionTotal(r.Prompt, c.PromptTokens), Cached: sessionTotal(r.Cached, c.CachedTokens), Padding: optionalCount(c.PadTokens),
		Generated: sessionTotal(r.Generated, c.GeneratedTokens), AtLeast: c.AtLeast, Steps: optionalCount(c.Steps), Stalls: optionalCount(stalls), Unmeasured: optionalCount(c.Unmeasured),
	}
	if !out.Finished.OK() && c.Polled > c.PolledCut {
		out.FinishedSeen = event.DerivedValue(float64(c.Polled - c.PolledCut))
	}
	return out
}

// seesAll reports whether the requests of a server are seen on their way to it, by a proxy or a tap, and counted one by one.
func seesAll(e *event.EngineInfo) bool {
	return e != nil && e.Provider != "" && e.Caps.Has(event.CapTokens)
}

// ownTotals are the totals that llmtop counted itself, of single requests.
func (s *Snapshot) ownTotals() Totals {
	c := &s.Counts
	count := func(n uint64) event.Reading { return event.MeasuredValue(float64(n)) }
	ofPasses := optionalCount // what engines know that report their passes
	if s.Engine.Caps.Has(event.CapSteps) {
		ofPasses = count
	}
	queued := event.Absent(event.NotReported)
	if s.Engine.Caps.Has(event.CapQueue) {
		queued = event.MeasuredValue(float64(c.Queued))
	}
	running := event.MeasuredValue(float64(c.Running))
	if c.Derived {
		running = event.DerivedValue(running.V)
		if !c.AnyQueued {
			queued = event.DerivedValue(float64(c.Queued))
		}
	}
	cached := event.Absent(event.NotYet)
	if c.Ends.total() > 0 { // it comes with the end of a request
		cached = endedTotal(c.CachedTokens, c.AnyPrompt+c.AnyCached)
	}
	return Totals{
		Queued: queued, Running: running,
		Finished: count(c.Finished), Cancelled: count(c.Cancelled), Failed: count(c.Failed), Unseen: optionalCount(c.Unseen),
		Prompt: endedTotal(c.PromptTokens, c.AnyPrompt), Cached: cached, Padding: ofPasses(c.PadTokens),
		Generated: count(c.GeneratedTokens), Steps: ofPasses(c.Steps), Stalls: count(s.Latency.StallCount[metric.Session]), Unmeasured: count(c.Unmeasured),
		AtLeast: c.AtLeast, PromptAtLeast: c.AnyPrompt > 0, CachedAtLeast: c.AnyPrompt+c.AnyCached > 0,
	}
}

// MissedByPolls is why counts and distributions of requests in polled slots are lower bounds or absent.
const MissedByPolls = "polls miss requests that come and go between two of them"

// Distribution returns the distribution of a latency over a window: of the requests that llmtop measured, or else as the
// engine counts it.
func (s *Snapshot) Distribution(id LatencyID, w metric.Window) metric.Distribution {
	own, row := &s.Latency.Of[id][w], id.Row()
	if own.Count > 0 || !s.AggregateOnly() && s.Aggregates.Histogram(row.Server) == nil {
		return own.Distribution()
	}
	return s.Aggregates.Summary(row.Server, w)
}

// sessionTotal returns n, the total of a count over the session. If n is 0 and the last report lacks the count, it is
// absent.
func sessionTotal(reported event.Reading, n uint64) event.Reading {
	if n == 0 && !reported.OK() {
		return event.Absent(min(reported.Origin, event.Undefined))
	}
	return event.DerivedValue(float64(n))
}

// optionalCount returns n, or "not reported" if it is 0: nothing says whether the engine counts it.
func optionalCount(n uint64) event.Reading {
	if n == 0 {
		return event.Absent(event.NotReported)
	}
	return event.MeasuredValue(float64(n))
}
