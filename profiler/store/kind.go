package store

import "github.com/llmtop/llmtop/profiler/event"

// Kind is the set of data that a snapshot carries. Ask it, or its shorthands Traced, Polled and Reported, instead of
// testing capabilities and Aggregates.
//
//	field           Traced                           Polled
//	Requests, Past  all requests                     llmtop's probes; those in Slots, with their decode rate only
//	Counts          counted by llmtop                sums of the reports; Totals says which are absent
//	Latency         of all requests                  none: Aggregates has the histograms
//	Throughput      of tokens and forward passes     the last report
//	KV              of the engine's events           the last report
//	Experts, Picks  if the engine counts them        nil
//	Aggregates      nil                              the last report and histograms; nil until Reported
//	Verdicts        on requests, tokens and experts  on the reported histograms, queue and KV cache
//
// An engine may be both: one that emits events and reports aggregate metrics beside them. Its Requests, Latency,
// Experts and Verdicts are as Traced, its Throughput as Polled; Counts add up both, and KV is the latest of both. A server
// whose slots are polled, such as llama.cpp, is Polled with Slots.
type Kind uint8

// The kinds of data.
const (
	Traced   Kind = 1 << iota // requests, one by one; an engine of which nothing is known yet counts as traced
	Polled                    // aggregate metrics of a server, announced or reported
	Reported                  // Polled, and the first report has arrived: Aggregates is not nil
	Slots                     // Reported, and the last report shows the requests in the server's slots
)

// Has reports whether the set includes all of other.
func (k Kind) Has(other Kind) bool { return k&other == other }

// Kind returns the data that the snapshot carries.
func (s *Snapshot) Kind() (k Kind) {
	caps := s.Engine.Caps
	if r := s.Aggregates; r != nil {
		k = Polled | Reported
		if len(r.Slots) > 0 {
			k |= Slots
		}
	} else if caps.Has(event.CapAggregates) {
		k = Polled
	}
	if k == 0 || caps.Has(event.CapTokens) {
		k |= Traced
	}
	return k
}

// Traced reports whether Requests are all requests of the engine.
func (s *Snapshot) Traced() bool { return s.Kind().Has(Traced) }

// Polled reports whether the engine has aggregate metrics, so that Counts and Throughput are its own. Before the first
// report Aggregates is nil: see Reported.
func (s *Snapshot) Polled() bool { return s.Kind().Has(Polled) }

// Reported reports whether Aggregates is set.
func (s *Snapshot) Reported() bool { return s.Kind().Has(Reported) }

// AggregateOnly reports whether the engine has reported aggregate metrics and no single tokens.
func (s *Snapshot) AggregateOnly() bool { return s.Kind()&(Reported|Traced) == Reported }

// ReportsTooLittle reports whether the engine has aggregate metrics only, and none of its requests.
func (s *Snapshot) ReportsTooLittle() bool {
	return s.AggregateOnly() && !s.Aggregates.Running.OK() && len(s.Aggregates.Histograms) == 0 && !s.Aggregates.Decode.OK()
}

// NoPerRequest reports whether there is no per-request data at all: aggregate metrics only, and no slots.
func (s *Snapshot) NoPerRequest() bool { return s.Kind()&(Reported|Traced|Slots) == Reported }
