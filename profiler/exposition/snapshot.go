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
	pushFailures = counter("llmtop.otlp.push.failures", "{push}", "Failed pushes of metrics")

	up         = gauge("llmtop.engine.up", "", "1 while the engine answers and has neither failed nor stopped", engineAttr)
	state      = gauge("llmtop.engine.state", "", "1 for the current state of the engine, 0 for all others", engineAttr, "state")
	engineInfo = gauge("llmtop.engine.info", "", "1; the properties of the engine are labels", engineAttr, "name", "version", "device", "kernels")
	modelInfo  = gauge("llmtop.model.info", "", "1; the properties of the loaded model are labels",
		engineAttr, "model", "architecture", "quantisation")
	parameters    = gauge("llmtop.model.parameters", "{parameter}", "Parameters of the model", engineAttr)
	weights       = gauge("llmtop.model.size", "By", "Size of the model's weights", engineAttr)
	restarts      = counter("llmtop.engine.restarts", "{restart}", "Restarts of an attached engine", engineAttr)
	droppedEvents = counter("llmtop.lost_events", "{event}", "Dropped events by kind; the other metrics miss them", engineAttr, "kind")

	running         = gauge("llmtop.requests.running", "{request}", "Requests that are running", engineAttr)
	queued          = gauge("llmtop.requests.queued", "{request}", "Requests that wait in the queue", engineAttr)
	slots           = gauge("llmtop.slots", "{request}", "Slots: most requests that are decoded together", engineAttr)
	requests        = counter("llmtop.requests", "{request}", "Requests that have ended", engineAttr, "outcome")
	unmeasured      = counter("llmtop.requests.unmeasured", "{request}", "Requests that began while 10,000 were running: counted, but in no latency metric", engineAttr)
	promptTokens    = counter("llmtop.prompt_tokens", "{token}", "Prompt tokens of ended requests, cached ones included", engineAttr)
	cachedTokens    = counter("llmtop.cached_tokens", "{token}", "Prompt tokens of ended requests that came from the prefix cache", engineAttr)
	paddingTokens   = counter("llmtop.padding_tokens", "{token}", "Padding tokens of ended requests", engineAttr)
	generatedTokens = counter("llmtop.generated_tokens", "{token}", "Generated tokens of all requests", engineAttr)
	passes          = counter("llmtop.forward_passes", "{pass}", "Forward passes of the model", engineAttr)
	stalls          = counter("llmtop.stalls", "{stall}", "Gaps between tokens far above the request's median", engineAttr)
	groupEnds       = counter("llmtop.group.requests", "{request}", "Requests of a group (LoRA adapter or tenant) that have ended", engineAttr, "group")
	groupTokens     = counter("llmtop.group.generated_tokens", "{token}", "Generated tokens of ended requests of a group", engineAttr, "group")

	prefillRate = gauge("llmtop.prefill.tokens", "{token}/s", "Prompt tokens per second of forward passes with prompts, last 10 s", engineAttr)
	decodeRate  = gauge("llmtop.decode.tokens", "{token}/s", "Tokens per second of forward passes without prompts, last 10 s", engineAttr)
	totalRate   = gauge("llmtop.generated.tokens", "{token}/s", "Generated tokens per second of wall clock, last 10 s (TTPS)", engineAttr)
	goodput     = gauge("llmtop.goodput.requests", "{request}/s", "Finished requests per second that met every target, last minute", engineAttr)
	busy        = gauge("llmtop.engine.busy", "1", "Share of the time in forward passes, last 10 s", engineAttr)
	bandwidth   = gauge("llmtop.memory.bandwidth", "By/s", "Decode bandwidth, last 10 s: bytes per second that decoding reads at least", engineAttr)
	copying     = gauge("llmtop.memory.copy_bandwidth", "By/s", "Copy bandwidth of the machine, measured once", engineAttr)

	kvUsed  = gauge("llmtop.kv_cache.used_cells", "{cell}", "KV cache cells in use", engineAttr)
	kvCells = gauge("llmtop.kv_cache.cells", "{cell}", "KV cache cells", engineAttr)
	kvUsage = gauge("llmtop.kv_cache.usage", "1", "Share of the KV cache in use", engineAttr)
)

// snapshot adds the metrics of a snapshot. An engine without data is exported as not up.
func (s *gathering) snapshot(v *store.Snapshot) {
	if v == nil || v.Engine.Name == "" {
		s.add(up, 0)
		return
	}
	s.identity(v)
	if v.Reported() {
		s.aggregates(v)
	} else {
		s.requests(v)
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
	if m.Architecture != "" {
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

func (s *gathering) requests(v *store.Snapshot) {
	c := &v.Counts
	s.add(running, float64(c.Running))
	if v.Engine.Caps.Has(event.CapQueue) {
		s.add(queued, float64(c.Queued))
	}
	s.add(unmeasured, float64(c.Unmeasured))
	s.add(requests, float64(c.Finished), event.StateFinished.String())
	s.add(requests, float64(c.Cancelled), event.StateCancelled.String())
	s.add(requests, float64(c.Failed), event.StateFailed.String())
	s.add(promptTokens, float64(c.PromptTokens))
	s.add(cachedTokens, float64(c.CachedTokens))
	s.add(paddingTokens, float64(c.PadTokens))
	s.add(generatedTokens, float64(c.GeneratedTokens))
	s.add(stalls, float64(v.Latency.StallCount[metric.Session]))
	if v.Engine.Caps.Has(event.CapSteps) {
		s.add(passes, float64(c.Steps))
	}
	type sums struct{ requests, tokens uint64 }
	groups := make(map[string]sums) // different names may be equal after cleaning
	for _, g := range c.Groups {
		sum := groups[cleanLabel(g.Name)]
		groups[cleanLabel(g.Name)] = sums{sum.requests + g.Requests, sum.tokens + g.Generated}
	}
	for _, name := range slices.Sorted(maps.Keys(groups)) {
		s.add(groupEnds, float64(groups[name].requests), name)
		s.add(groupTokens, float64(groups[name].tokens), name)
	}
}

func (s *gathering) throughput(v *store.Snapshot) {
	t := &v.Throughput
	s.reading(prefillRate, t.Prefill)
	s.reading(decodeRate, t.Decode)
	s.reading(totalRate, t.TTPS)
	s.reading(goodput, v.Latency.Goodput)
	s.reading(busy, t.BusyShare)
	s.reading(bandwidth, t.Bandwidth)
	s.reading(copying, t.CopyBandwidth)
	s.reading(kvUsage, v.KV.Usage)
	if v.KV.Total > 0 { // some servers report only the share
		s.add(kvUsed, float64(v.KV.Used))
		s.add(kvCells, float64(v.KV.Total))
	}
}
