package exposition

import (
	"maps"
	"slices"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/profiler/store"
)

// What snapshots tell of engines and their requests.
var (
	build        = gauge("llmtop.build.info", "", "1, labelled with the version of llmtop", "version")
	pushFailures = counter("llmtop.otlp.push.failures", "{push}", "Pushes of metrics that their receiver has not taken")

	up    = gauge("llmtop.engine.up", "", "1 while the engine answers and has neither failed nor stopped", engineAttr)
	state = gauge("llmtop.engine.state", "", "1 for the state that the engine is in, 0 for all others", engineAttr, "state")
	who   = gauge("llmtop.engine.info", "", "1, labelled with what the engine is", engineAttr, "name", "version", "device", "kernels")
	which = gauge("llmtop.model.info", "", "1, labelled with the model that is loaded",
		engineAttr, "model", "architecture", "quantisation")
	parameters = gauge("llmtop.model.parameters", "{parameter}", "Parameters of the model", engineAttr)
	weights    = gauge("llmtop.model.size", "By", "Size of the model's weights", engineAttr)
	restarts   = counter("llmtop.engine.restarts", "{restart}", "Times that another run of the engine has answered at its address", engineAttr)
	lost       = counter("llmtop.lost_events", "{event}", "Events that found no room or did not come, by kind; what is told misses them", engineAttr, "kind")

	running     = gauge("llmtop.requests.running", "{request}", "Requests that are being worked on", engineAttr)
	queued      = gauge("llmtop.requests.queued", "{request}", "Requests that wait for the scheduler", engineAttr)
	slots       = gauge("llmtop.slots", "{request}", "Requests that are decoded together at most", engineAttr)
	requests    = counter("llmtop.requests", "{request}", "Requests that have ended", engineAttr, "outcome")
	prompted    = counter("llmtop.prompt_tokens", "{token}", "Prompt tokens of ended requests, cached ones included", engineAttr)
	cached      = counter("llmtop.cached_tokens", "{token}", "Prompt tokens of ended requests that were taken from a cache", engineAttr)
	padding     = counter("llmtop.padding_tokens", "{token}", "Tokens of ended requests that only filled up a batch", engineAttr)
	generated   = counter("llmtop.generated_tokens", "{token}", "Tokens that have been generated", engineAttr)
	passes      = counter("llmtop.forward_passes", "{pass}", "Forward passes of the model", engineAttr)
	stalls      = counter("llmtop.stalls", "{stall}", "Gaps between tokens that were far above the request's median", engineAttr)
	groupEnds   = counter("llmtop.group.requests", "{request}", "Requests of a group (LoRA adapter or tenant) that have ended", engineAttr, "group")
	groupTokens = counter("llmtop.group.generated_tokens", "{token}", "Tokens that ended requests of a group were given", engineAttr, "group")

	prefillRate = gauge("llmtop.prefill.tokens", "{token}/s", "Prompt tokens a second of forward passes with prompts, last 10 s", engineAttr)
	decodeRate  = gauge("llmtop.decode.tokens", "{token}/s", "Tokens a second of forward passes without prompts, last 10 s", engineAttr)
	totalRate   = gauge("llmtop.generated.tokens", "{token}/s", "Generated tokens a second of wall clock, last 10 s (TTPS)", engineAttr)
	goodput     = gauge("llmtop.goodput.requests", "{request}/s", "Finished requests a second that met every target, last minute", engineAttr)
	busy        = gauge("llmtop.engine.busy", "1", "Share of the wall clock in forward passes, last 10 s", engineAttr)
	bandwidth   = gauge("llmtop.memory.bandwidth", "By/s", "Bytes a second that decoding touched at least, last 10 s", engineAttr)
	copying     = gauge("llmtop.memory.copy_bandwidth", "By/s", "Bytes a second that the machine copies, measured once", engineAttr)

	kvUsed  = gauge("llmtop.kv_cache.used_cells", "{cell}", "Cells of the KV cache in use", engineAttr)
	kvCells = gauge("llmtop.kv_cache.cells", "{cell}", "Cells of the KV cache", engineAttr)
	kvUsage = gauge("llmtop.kv_cache.usage", "1", "Share of the KV cache in use", engineAttr)
)

// snapshot tells what a snapshot holds; of an engine that nothing has been heard of, that it is not up.
func (s *scrape) snapshot(v *store.Snapshot) {
	if v == nil || v.Engine.Name == "" {
		s.add(up, 0)
		return
	}
	s.identity(v)
	s.requests(v)
	if v.Reported == nil || reached(v) { // of a server that has gone it is not known what it does now
		s.throughput(v)
	}
	s.times()
	if v.Host.Known && v.Now-v.Host.At <= event.Time(staleAfter) {
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

func (s *scrape) identity(v *store.Snapshot) {
	e, m := &v.Engine, &v.Model
	s.add(up, flag(reached(v) && e.State != event.EngineFailed && e.State != event.EngineStopped))
	for at := event.EngineStarting; at <= event.EnginePaused; at++ {
		s.add(state, flag(at == e.State), at.String())
	}
	s.add(who, 1, word(e.Name), word(e.Version), word(e.Device.Name), word(e.Device.Kernels))
	if m.Architecture != "" {
		s.add(which, 1, word(m.Name), word(m.Architecture), word(m.Quantisation))
	}
	s.known(parameters, float64(m.Parameters))
	s.known(weights, float64(m.Bytes))
	s.known(slots, float64(e.Slots))
	if e.Remote.Link != event.LinkNone {
		s.add(restarts, float64(max(e.Remote.Restarts, 0)))
	}
	created := s.since(lost, "", 0, v.Lost.Total())
	for kind, n := range v.Lost {
		s.count(lost, float64(n), created, event.Kind(kind).String())
	}
}

// known tells a number of which 0 or less stands for unknown.
func (s *scrape) known(i *instrument, v float64) {
	if v > 0 {
		s.add(i, v)
	}
}

func (s *scrape) requests(v *store.Snapshot) {
	c := &v.Counts
	if v.Reported != nil {
		s.reported(v)
		return
	}
	s.add(running, float64(c.Running))
	if v.Engine.Caps.Has(event.CapQueue) {
		s.add(queued, float64(c.Queued))
	}
	s.add(requests, float64(c.Finished), event.StateFinished.String())
	s.add(requests, float64(c.Cancelled), event.StateCancelled.String())
	s.add(requests, float64(c.Failed), event.StateFailed.String())
	s.add(prompted, float64(c.PromptTokens))
	s.add(cached, float64(c.CachedTokens))
	s.add(padding, float64(c.PadTokens))
	s.add(generated, float64(c.GeneratedTokens))
	s.add(stalls, float64(v.Latency.StallCount[metric.Session]))
	if v.Engine.Caps.Has(event.CapSteps) {
		s.add(passes, float64(c.Steps))
	}
	type sums struct{ requests, tokens uint64 }
	groups := make(map[string]sums) // names may become equal when they are cleaned
	for _, g := range c.Groups {
		sum := groups[word(g.Name)]
		groups[word(g.Name)] = sums{sum.requests + g.Requests, sum.tokens + g.Generated}
	}
	for _, name := range slices.Sorted(maps.Keys(groups)) {
		s.add(groupEnds, float64(groups[name].requests), name)
		s.add(groupTokens, float64(groups[name].tokens), name)
	}
}

func (s *scrape) throughput(v *store.Snapshot) {
	t := &v.Throughput
	s.reading(prefillRate, t.Prefill)
	s.reading(decodeRate, t.Decode)
	s.reading(totalRate, t.TTPS)
	s.reading(goodput, v.Latency.Goodput)
	s.reading(busy, t.BusyShare)
	s.reading(bandwidth, t.Bandwidth)
	s.reading(copying, t.CopyBandwidth)
	s.reading(kvUsage, v.KV.Usage)
	if v.KV.Total > 0 { // some servers tell the share alone
		s.add(kvUsed, float64(v.KV.Used))
		s.add(kvCells, float64(v.KV.Total))
	}
}
