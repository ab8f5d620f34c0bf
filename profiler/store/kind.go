package store

import "github.com/llmtop/llmtop/profiler/event"

// Traced reports whether Requests are all requests of the engine, one by one. An engine of which nothing is known yet
// counts as traced.
//
//	field           Traced                           Polled
//	Requests        all requests, with Earlier       llmtop's probes; those in slots, with their decode rate only
//	Counts          counted by llmtop                sums of the reports; Totals says which are absent
//	Latency         of all requests                  none: Distribution has what the server counts
//	Throughput      of tokens and forward passes     the last report
//	KV              of the engine's events           the last report
//	Experts, Picks  if the engine counts them        nil
//	Aggregates      nil                              the last report and histograms; nil until it has come
//	Verdicts        on requests, tokens and experts  on the reported histograms, queue and KV cache
//
// An engine may be both: one that emits events and reports aggregate metrics beside them. Its Requests, Latency,
// Experts and Verdicts are as Traced, its Throughput as Polled; Counts add up both, and KV is the latest of both.
//
// Few places need to know: ask for the number, and for the reason of its absence.
func (s *Snapshot) Traced() bool { return s.Engine.Caps.Has(event.CapTokens) || !s.Polled() }

// Polled reports whether the engine has aggregate metrics, announced or reported.
func (s *Snapshot) Polled() bool {
	return s.Aggregates != nil || s.Engine.Caps.Has(event.CapAggregates)
}

// Histograms returns the latencies that a server counts, in the order in which it first reported them; nil without any.
func (s *Snapshot) Histograms() []WindowedHistogram {
	if s.Aggregates == nil {
		return nil
	}
	return s.Aggregates.Histograms
}

// AggregateOnly reports whether the engine has reported aggregate metrics and no single tokens.
func (s *Snapshot) AggregateOnly() bool { return s.Aggregates != nil && !s.Traced() }

// ReportsTooLittle reports whether the engine has aggregate metrics only, and none of its requests.
func (s *Snapshot) ReportsTooLittle() bool {
	return s.AggregateOnly() && !s.Aggregates.Running.OK() && len(s.Histograms()) == 0 && !s.Aggregates.Decode.OK()
}

// NoPerRequest reports whether there is no per-request data at all: aggregate metrics only, and no slots.
func (s *Snapshot) NoPerRequest() bool { return s.AggregateOnly() && len(s.Aggregates.Slots) == 0 }

// Dense reports whether the model is known to have no experts. Servers do not report their number.
func (s *Snapshot) Dense() bool {
	return s.Model.Architecture != "" && s.Model.Experts == 0 && !s.Polled()
}
