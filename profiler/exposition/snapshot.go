package exposition

import (
	"maps"
	"slices"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/profiler/store"
)

// Metrics that are read from snapshots.
var (
	build        = gauge("llmtop.build.info", "", "1; the version of llmtop is a label", "version")
	pushFailures = counter("llmtop.otlp.push.failures", "{push}", "Failed pushes of metrics or spans")
	droppedSpans = counter("llmtop.otlp.dropped_spans", "{span}", "Spans of requests that were not pushed, because too many waited")

	up         = gauge("llmtop.engine.up", "", "1 while the engine answers and has neither failed nor stopped", engineAttr)
	state      = gauge("llmtop.engine.state", "", "1 for the current state of the engine, 0 for all others", engineAttr, "state")
	engineInfo = gauge("llmtop.engine.info", "", "1; the properties of the engine are labels", engineAttr, "name", "version", "device", "kernels")
	modelInfo  = gauge("llmtop.model.info", "", "1; the properties of the loaded model are labels",
		engineAttr, "model", "architecture", "quantisation")
	parameters    = gauge("llmtop.model.parameters", "{parameter}", "Parameters of the model", engineAttr)
	weights       = gauge("llmtop.model.size", "By", "Size of the model's weights", engineAttr)
	restarts      = counter("llmtop.engine.restarts", "{restart}", "Restarts of an attached engine", engineAttr)
	droppedEvents = number("llmtop.lost_events")

	running         = number("llmtop.requests.running")
	queued          = number("llmtop.requests.queued")
	slots           = gauge("llmtop.slots", "{request}", "Slots: most requests that are decoded together", engineAttr)
	requests        = number("llmtop.requests")
	unmeasured      = number("llmtop.requests.unmeasured")
	promptTokens    = number("llmtop.prompt_tokens")
	cachedTokens    = number("llmtop.cached_tokens")
	paddingTokens   = number("llmtop.padding_tokens")
	generatedTokens = number("llmtop.generated_tokens")
	passes          = number("llmtop.forward_passes")
	stalls          = number("llmtop.stalls")
	groupEnds       = counter("llmtop.group.requests", "{request}", "Requests of a group (LoRA adapter or tenant) that have ended", engineAttr, "group")
	groupTokens     = counter("llmtop.group.generated_tokens", "{token}", "Generated tokens of ended requests of a group", engineAttr, "group")
)

// rateMetrics are the metrics of the rates of all requests.
var rateMetrics = func() []*instrument {
	out := make([]*instrument, len(store.Rates))
	for i := range store.Rates {
		out[i] = number(store.Rates[i].Metric)
	}
	return out
}()

// number defines the metric of the number of the catalogue with an OpenTelemetry name.
func number(name string) *instrument {
	all := slices.Concat(store.Rates, store.Totalled)
	n := all[slices.IndexFunc(all, func(n store.Number) bool { return n.Metric == name })]
	kind, attrs := gauge, []string{engineAttr}
	if n.Sum {
		kind = counter
	}
	if n.Label != "" {
		attrs = append(attrs, n.Label)
	}
	return kind(n.Metric, string(n.Unit), sentence(n.Help), attrs...)
}

// snapshot adds the metrics of a snapshot. An engine without data is exported as not up.
func (s *gathering) snapshot(v *store.Snapshot) {
	if v == nil || v.Engine.Name == "" {
		s.add(up, 0)
		return
	}
	s.identity(v)
	s.requests(v)
	s.reportedCounts(&v.Aggregates)
	if reached(v) {
		s.throughput(v)
	}
	s.histograms()
	if v.Host.Sampled && v.Now-v.Host.At <= event.Time(staleAfter) {
		s.machine(&v.Host)
	}
	if v.Experts != nil {
		s.experts(v.Experts)
	}
}

func flag(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

func (s *gathering) identity(v *store.Snapshot) {
	e, m := &v.Engine, &v.Model
	s.add(up, flag(reached(v) && e.State != event.EngineFailed && e.State != event.EngineStopped))
	for at := event.EngineStarting; at <= event.EnginePaused; at++ {
		s.add(state, flag(at == e.State), at.String())
	}
	s.add(engineInfo, 1, cleanLabel(e.Name), cleanLabel(e.Version), cleanLabel(e.Device.Name), cleanLabel(e.Device.Kernels))
	if m.Name != "" || m.Architecture != "" {
		s.add(modelInfo, 1, cleanLabel(m.Name), cleanLabel(m.Architecture), cleanLabel(m.Quantisation))
	}
	s.positive(parameters, float64(m.Parameters))
	s.positive(weights, float64(m.Bytes))
	s.positive(slots, float64(e.Slots))
	if e.Remote.Link != event.LinkNone {
		s.add(restarts, float64(max(e.Remote.Restarts, 0)))
	}
	created := s.countingSince(droppedEvents, "", 0, v.Drops.Total())
	for kind, n := range v.Drops {
		s.count(droppedEvents, float64(n), created, event.Kind(kind).String())
	}
}

// positive adds a number that is unknown if it is 0 or less.
func (s *gathering) positive(i *instrument, v float64) {
	if v > 0 {
		s.add(i, v)
	}
}

// requests adds the counts of requests and tokens. It omits what the engine does not report, instead of exporting 0.
func (s *gathering) requests(v *store.Snapshot) {
	c, t := &v.Counts, v.Totals()
	s.reading(unmeasured, t.Unmeasured)
	s.reading(requests, t.Finished, event.StateFinished.String())
	s.reading(requests, t.Cancelled, event.StateCancelled.String())
	s.reading(requests, t.Failed, event.StateFailed.String())
	s.reading(requests, t.Unseen, event.StateUnseen.String())
	s.reading(promptTokens, t.Prompt)
	s.reading(cachedTokens, t.Cached)
	s.reading(paddingTokens, t.Padding)
	s.reading(generatedTokens, t.Generated)
	s.reading(stalls, t.Stalls)
	s.reading(passes, t.Steps)
	groups := make(map[string][2]uint64) // requests and tokens; different names may be equal after cleaning
	for _, g := range c.Groups {
		sum := groups[cleanLabel(g.Name)]
		groups[cleanLabel(g.Name)] = [...]uint64{sum[0] + g.Requests, sum[1] + g.Generated}
	}
	for _, name := range slices.Sorted(maps.Keys(groups)) {
		s.add(groupEnds, float64(groups[name][0]), name)
		s.add(groupTokens, float64(groups[name][1]), name)
	}
}

// throughput adds the current values, which a server that is not connected does not have.
func (s *gathering) throughput(v *store.Snapshot) {
	t := v.Totals()
	s.reading(running, t.Running)
	s.reading(queued, t.Queued)
	s.reportedNumbers(&v.Aggregates)
	for i, m := range rateMetrics {
		s.reading(m, store.Rates[i].Of(v, metric.Session))
	}
}
