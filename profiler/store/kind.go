package store

import (
	"net/netip"
	"net/url"

	"github.com/llmtop/llmtop/profiler/event"
)

// AggregateOnly reports whether the engine has reported aggregate metrics and no single tokens. Its snapshot has the same
// numbers as that of any other engine, from other sources:
//
//	field           of single tokens                 of aggregate metrics
//	Requests        all requests, with Earlier       those in slots, with their decode rate only
//	Counts          counted by llmtop                sums of the reports; Totals says which are absent
//	Latency         of all requests                  none: Distribution has what the server counts
//	Throughput      of tokens and forward passes     the last report
//	KV              of the engine's events           the last report
//	Experts, Picks  if the engine counts them        nil
//	Aggregates      zero                             the last report and histograms
//	Verdicts        on requests, tokens and experts  on the reported histograms, queue and KV cache
//
// An engine may have both: one that emits events and reports aggregate metrics beside them. Its Requests, Latency,
// Experts and Verdicts are of tokens, its Throughput is of the reports; Counts add up both, and KV is the latest of both.
//
// Few places need to know: ask for the number, and for the reason of its absence.
func (s *Snapshot) AggregateOnly() bool {
	return s.Aggregates.At != 0 && !s.Engine.Caps.Has(event.CapTokens)
}

// RequestsUnseen is why a process of which only calls of CUDA are seen has no requests.
const RequestsUnseen = "requests are not seen, only calls of CUDA: this process does not link llama.cpp"

// CallsOnly reports whether all that is seen of an engine is its process, and what it calls of CUDA.
func (s *Snapshot) CallsOnly() bool {
	return s.Engine.Caps == event.CapHost && s.Host.Engine.Counted.Origin != event.NotReported
}

// Polled reports whether the engine has aggregate metrics, announced or reported.
func (s *Snapshot) Polled() bool {
	return s.Aggregates.At != 0 || s.Engine.Caps.Has(event.CapAggregates)
}

// ReportsTooLittle reports whether nothing is known of the engine's requests: no number, no latency and no rate.
func (s *Snapshot) ReportsTooLittle() bool {
	return s.Totals().Running.Origin == event.NotReported && len(s.Aggregates.Histograms) == 0 && !s.Throughput.Decode.OK()
}

// NoPerRequest reports whether there is no per-request data at all: no requests, aggregate metrics only, and no slots.
func (s *Snapshot) NoPerRequest() bool {
	return s.AggregateOnly() && len(s.Aggregates.Slots)+len(s.Requests)+len(s.Earlier) == 0
}

// MeasuredBy returns the command that measures the single requests of a server: a tap of its packets if it is on this
// machine, without encryption, otherwise a proxy in front of it.
func (s *Snapshot) MeasuredBy() string {
	if u, err := url.Parse(s.Engine.Remote.Address); err == nil && u.Scheme == "http" && u.Port() != "" {
		at, err := netip.ParseAddr(u.Hostname())
		if u.Hostname() == "localhost" || err == nil && at.IsLoopback() {
			return "sudo llmtop tap " + u.Port()
		}
	}
	return "llmtop proxy"
}

// Dense reports whether the model is known to have no experts. Servers do not report their number.
func (s *Snapshot) Dense() bool {
	return s.Model.Architecture != "" && s.Model.Experts == 0 && !s.Polled()
}
