package gather

import (
	"slices"
	"strconv"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime/source/scrape/prom"
)

// maxModels limits the number of model names kept.
const maxModels = 16

// findModels records the model names of the text.
func (g *Gatherer) findModels() {
	var sets []*labelSet
	for i := range g.metrics {
		m := &g.metrics[i]
		if m.Role != Running && m.Role != InFlight || m.round != g.round {
			continue
		}
		for _, s := range m.series {
			if s.round == g.round && s.set.model != "" {
				sets = append(sets, s.set)
			}
		}
	}
	slices.SortFunc(sets, func(a, b *labelSet) int { return a.order - b.order })
	g.models = g.models[:0]
	for _, s := range sets {
		if len(g.models) < maxModels && !slices.Contains(g.models, s.model) {
			g.models = append(g.models, s.model)
		}
	}
}

// Asleep reports whether the engine is in sleep mode.
func (g *Gatherer) Asleep() bool { return g.gauge(SleepState).V > 0 }

// Models returns the model names in the last text.
func (g *Gatherer) Models() []string { return g.models }

// configuredCells returns the size of a KV cache in cells, from its configuration; 0: unknown. Layers of hybrid models
// share the blocks: only the server knows for how many tokens they suffice.
func configuredCells(l prom.Labels) float64 {
	number := func(label string) float64 {
		n, _ := strconv.Atoi(l.Get(label))
		return max(float64(n), 0)
	}
	if tokens := number("kv_cache_size_tokens"); tokens > 0 { // since 2026-05
		return tokens
	}
	if number("mamba_page_size_padded") > 0 {
		return 0
	}
	return number("num_gpu_blocks") * number("block_size")
}

// metricOf returns the metric of a role: the first one in the last text; nil if the text has no such metric.
func (g *Gatherer) metricOf(r Role) *metric {
	for _, i := range g.roles[r] {
		if m := &g.metrics[i]; m.round == g.lastComplete && m.n > 0 {
			return m
		}
	}
	return nil
}

// gauge returns the current value of a role.
func (g *Gatherer) gauge(r Role) event.Reading {
	m := g.metricOf(r)
	switch {
	case m == nil || m.problem != "":
		return event.Reading{}
	case r.isMean():
		return event.ReportedValue(m.sum / float64(m.n))
	}
	return event.ReportedValue(m.sum)
}

// waiting returns the requests in all queues.
func (g *Gatherer) waiting() event.Reading {
	all := g.gauge(Waiting)
	for _, m := range g.queues() {
		if m.Role == Queue {
			all = event.DerivedValue(all.V + m.sum)
		}
	}
	return all
}

// queues returns the metrics of waiting requests. One of several names of a queue follows the other.
func (g *Gatherer) queues() (list []*metric) {
	if m := g.metricOf(Waiting); m != nil && m.problem == "" {
		list = append(list, m)
	}
	for _, i := range g.roles[Queue] {
		m := &g.metrics[i]
		if m.round == g.lastComplete && m.n > 0 && m.problem == "" && (len(list) == 0 || list[len(list)-1].Name != m.Name) {
			list = append(list, m)
		}
	}
	return list
}

// increaseOf returns the increase of a counter since the last report.
func (g *Gatherer) increaseOf(r Role, since int64) event.Reading {
	return g.increase(g.metricOf(r), since)
}

func (g *Gatherer) increase(m *metric, since int64) event.Reading {
	switch {
	case m == nil || m.problem != "" || m.round != g.lastComplete || m.n == 0, m.MayLack && m.sum == 0:
		return event.Reading{}
	case since <= 0:
		return event.Absent(event.NotYet)
	default:
		return event.DerivedValue(m.increase)
	}
}

// perSecond returns the increase of a counter per second. Each series counts by the time since its last sample, and one
// that is missing in the text as before.
func (g *Gatherer) perSecond(r Role, since int64) event.Reading {
	gain := g.increaseOf(r, since)
	if gain.OK() {
		m := g.metricOf(r)
		gain.V = max(gain.V-m.late+m.held, 0) / (float64(since) / 1e9)
	}
	return gain
}

// ratio returns a/b, at most 1.
func ratio(a, b event.Reading) event.Reading {
	switch {
	case !a.OK() || !b.OK():
		return event.Absent(max(min(a.Origin, b.Origin), event.NotReported))
	case b.V <= 0:
		return event.Absent(event.NotYet)
	}
	return event.DerivedValue(min(a.V/b.V, 1))
}

// Report returns the current values and the increases since the last report, which was since ns ago; 0: there was none.
func (g *Gatherer) Report(since int64) *event.Aggregates {
	defer g.startReport()
	if g.Several() {
		return &event.Aggregates{Interval: max(since, 0), Void: g.void}
	}
	p := &event.Aggregates{
		Interval: max(since, 0), Running: g.gauge(Running), Waiting: g.waiting(),
		Finished: g.increaseOf(Finished, since), Failed: g.increaseOf(Failed, since), Cancelled: g.increaseOf(Cancelled, since),
		Prompt: g.increaseOf(Prompt, since), Cached: g.increaseOf(PromptCached, since), Generated: g.increaseOf(Generated, since),
	}
	if all := g.gauge(InFlight); all.OK() && !p.Running.OK() {
		p.Running = all
		if p.Waiting.OK() {
			p.Running = event.DerivedValue(max(all.V-p.Waiting.V, 0))
		}
	}
	g.fillCache(p)
	g.fillTokens(p, since)
	g.fillMore(p, since)
	g.fillOthers(p, since)
	g.fillRatios(p, since)
	if p.Adapters = slices.Clone(g.adapters); since <= 0 {
		p.Earlier = g.earlier()
	}
	p.Ranks, p.ByModel = g.states(func(s *labelSet) string { return s.rank }, since), g.states(func(s *labelSet) string { return s.model }, since)
	p.ExpertRanks = g.experts.report()
	p.Histograms = make([]event.Histogram, 0, 8)
	for i := range g.metrics {
		m := &g.metrics[i]
		if m.round != g.lastComplete {
			continue
		}
		if why := (event.Endpoint{Name: m.Metric, Reason: m.problem}); m.problem != "" && len(p.Endpoints) < maxProblems && !slices.Contains(p.Endpoints, why) {
			p.Endpoints = append(p.Endpoints, why)
		}
		if m.interval == nil || m.problem != "" || slices.ContainsFunc(p.Histograms, func(t event.Histogram) bool { return t.Name == m.Histogram }) {
			continue
		}
		p.Histograms = append(p.Histograms, m.interval.aggregate(m.Histogram))
	}
	if took, n := g.increaseOf(DecodeTime, since), p.Generated; took.OK() && n.OK() && took.V > 0 && n.V >= 1 {
		p.Histograms = append(p.Histograms, event.Histogram{Name: event.HistogramPerToken, Count: uint64(n.V), Sum: nanos(took.V)})
	}
	return p
}

// maxProblems limits the metrics for which a report says why they are not reported.
const maxProblems = 16

// startReport starts the interval of the next report.
func (g *Gatherer) startReport() {
	g.void, g.reported = false, g.texts
	for i := range g.metrics {
		m := &g.metrics[i]
		m.increase, m.late = 0, 0
		if m.interval != nil {
			m.interval.clear()
		}
	}
}

// fillCache sets the KV cache readings.
func (g *Gatherer) fillCache(p *event.Aggregates) {
	p.KVUsage, p.KVUsed, p.KVTotal = g.gauge(KVUsage), g.gauge(KVUsed), g.gauge(KVTotal)
	if page := g.gauge(KVBlockSize); page.OK() {
		if blocks := g.gauge(KVBlocks); blocks.OK() {
			p.KVTotal = event.DerivedValue(blocks.V * page.V)
		}
		if used := g.gauge(KVBlocksUsed); used.OK() {
			p.KVUsed = event.DerivedValue(used.V * page.V)
		}
	}
	if c := g.gauge(KVConfig); c.OK() && c.V > 0 {
		p.KVTotal = c
	}
	if !p.KVUsed.OK() && p.KVUsage.OK() && p.KVTotal.OK() {
		p.KVUsed = event.DerivedValue(p.KVUsage.V * p.KVTotal.V)
	}
}

// fillTokens sets the readings derived from token counters.
func (g *Gatherer) fillTokens(p *event.Aggregates, since int64) {
	worked, prefill := g.increaseOf(PromptComputed, since), g.perSecond(PromptComputed, since)
	hits := g.increaseOf(CacheHits, since)
	if !p.Prompt.OK() && worked.OK() && p.Cached.OK() {
		p.Prompt = event.DerivedValue(worked.V + p.Cached.V)
	}
	taken := g.perSecond(PromptCached, since)
	if !taken.OK() {
		taken = g.perSecond(CacheHits, since)
	}
	if all := g.perSecond(Prompt, since); worked.Origin == event.NotReported && all.OK() && taken.OK() {
		// Some engines count hits before the prompt: what they are ahead belongs to later prompts.
		seconds := float64(since) / 1e9
		left := (all.V-taken.V)*seconds - g.hitsAhead
		prefill, g.hitsAhead = event.DerivedValue(max(left, 0)/seconds), max(-left, 0)
	}
	p.Prefill, p.Decode = prefill, g.perSecond(Generated, since)
	if m := g.metricOf(Generated); m == nil || m.AtEnd {
		if now := g.gauge(DecodeRate); now.OK() {
			if p.Decode = now; now.V == 0 && p.Generated.V > 0 { // of requests that ended since the last report
				p.Decode = event.Reading{}
			}
		}
	}
	p.CacheHits = ratio(hits, g.increaseOf(CacheQueries, since))
	if p.CacheHits.Origin == event.NotReported {
		p.CacheHits = ratio(p.Cached, p.Prompt)
	}
	if now := g.gauge(CacheHitShare); now.OK() && !p.CacheHits.OK() {
		p.CacheHits = now
	}
}

// fillMore adds current values that only some engines have.
func (g *Gatherer) fillMore(p *event.Aggregates, since int64) {
	add := func(name string, r event.Reading) {
		if r.OK() {
			p.More = append(p.More, event.NamedReading{Name: name, Reading: r})
		}
	}
	if now := g.gauge(DraftAcceptShare); now.V > 0 { // 0 if there were no drafts
		add(event.RatioAccepted, now)
	}
	// Several devices are summed up: above 1 it is not a share.
	if worked := g.perSecond(DeviceBusy, since); worked.OK() && worked.V <= 1 {
		add("device_busy_share", worked)
	}
	if !p.Prefill.OK() { // prompt tokens, cached ones included
		add("prompt_tokens_per_s", g.perSecond(Prompt, since))
	}
}
