package gather

import (
	"slices"
	"strconv"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime/scrape/prom"
)

// maxModels bounds the models that are told apart.
const maxModels = 16

// model notes the model that a sample is about.
func (g *Gatherer) model(l prom.Labels) {
	for _, label := range [...]string{"model_name", "model"} {
		if raw := l.Raw(label); raw != nil {
			if len(g.models) < maxModels && !slices.ContainsFunc(g.models, func(m string) bool { return m == string(raw) }) {
				g.models = append(g.models, l.Get(label))
			}
			return
		}
	}
}

// Sleeps reports whether the engine works on nothing until it is woken.
func (g *Gatherer) Sleeps() bool { return g.gauge(sleeps).V > 0 }

// Models are those that the last text was about.
func (g *Gatherer) Models() []string { return g.models }

// cells is the size of a KV cache as its configuration tells it.
func cells(l prom.Labels) float64 {
	blocks, _ := strconv.Atoi(l.Get("num_gpu_blocks"))
	size, _ := strconv.Atoi(l.Get("block_size"))
	return max(float64(blocks)*float64(size), 0)
}

// settle ends a text that was read whole: histograms are taken in, and what was not in it is forgotten.
func (g *Gatherer) settle() {
	for i := range g.metrics {
		m := &g.metrics[i]
		for key, s := range m.series {
			switch {
			case s.round != g.round:
				delete(m.series, key)
			case m.times != nil && s.counted == g.round && m.times.take(&s.histogram):
				g.restarted()
			}
		}
	}
	g.whole = g.round
}

// of is the metric that tells a role, the first one that was in the last text; nil if none was.
func (g *Gatherer) role(r role) *metric {
	for i := range g.metrics {
		if m := &g.metrics[i]; m.role == r && m.round == g.whole && m.n > 0 {
			return m
		}
	}
	return nil
}

// gauge is where a role stands.
func (g *Gatherer) gauge(r role) event.Reading {
	m := g.role(r)
	switch {
	case m == nil:
		return event.Reading{}
	case r.mean():
		return event.Told(m.sum / float64(m.n))
	}
	return event.Told(m.sum)
}

// gain is what has come of a role since the last report.
func (g *Gatherer) gain(r role, since int64) event.Reading {
	switch m := g.role(r); {
	case m == nil:
		return event.Reading{}
	case since <= 0:
		return event.Absent(event.NotYet)
	default:
		return event.From(m.gained)
	}
}

// per is a gain a second.
func per(gain event.Reading, since int64) event.Reading {
	if gain.OK() {
		gain.V /= float64(since) / 1e9
	}
	return gain
}

// share is a of b.
func share(a, b event.Reading) event.Reading {
	switch {
	case !a.OK() || !b.OK():
		return event.Absent(max(min(a.Origin, b.Origin), event.NotReported))
	case b.V <= 0:
		return event.Absent(event.NotYet)
	}
	return event.From(min(a.V/b.V, 1))
}

// Report tells where the server stands, and what has come since the last report, which is so many ns ago; 0: there was none.
func (g *Gatherer) Report(since int64) *event.Report {
	p := &event.Report{
		Interval: max(since, 0), Running: g.gauge(running), Waiting: g.gauge(waiting),
		Finished: g.gain(finished, since), Failed: g.gain(failed, since),
		Prompt: g.gain(prompt, since), Cached: g.gain(cached, since), Generated: g.gain(generated, since),
	}
	if all := g.gauge(atWork); all.OK() && !p.Running.OK() {
		p.Running = all
		if p.Waiting.OK() {
			p.Running = event.From(max(all.V-p.Waiting.V, 0))
		}
	}
	g.cache(p)
	g.tokens(p, since)
	g.more(p, since)
	p.Times = make([]event.Times, 0, 8)
	for i := range g.metrics {
		m := &g.metrics[i]
		if m.times == nil || m.round != g.whole {
			continue
		}
		if !slices.ContainsFunc(p.Times, func(t event.Times) bool { return t.Name == m.hist }) {
			p.Times = append(p.Times, m.times.tell(m.hist))
		}
		m.times.clear()
	}
	if took, n := g.gain(decoded, since), p.Generated; took.OK() && n.OK() && took.V > 0 && n.V >= 1 {
		p.Times = append(p.Times, event.Times{Name: event.TimesPerToken, Count: uint64(n.V), Sum: int64(took.V * 1e9)})
	}
	for i := range g.metrics {
		g.metrics[i].gained = 0
	}
	return p
}

// cache fills in the KV cache.
func (g *Gatherer) cache(p *event.Report) {
	p.KVUsage, p.KVUsed, p.KVTotal = g.gauge(kvUsage), g.gauge(kvUsed), g.gauge(kvTotal)
	if page := g.gauge(kvPage); page.OK() {
		if blocks := g.gauge(kvBlocks); blocks.OK() {
			p.KVTotal = event.From(blocks.V * page.V)
		}
		if used := g.gauge(kvBlocksUsed); used.OK() {
			p.KVUsed = event.From(used.V * page.V)
		}
	}
	if c := g.gauge(kvConfig); c.OK() && c.V > 0 {
		p.KVTotal = c
	}
	if !p.KVUsed.OK() && p.KVUsage.OK() && p.KVTotal.OK() {
		p.KVUsed = event.From(p.KVUsage.V * p.KVTotal.V)
	}
}

// tokens fills in what is made of counters of tokens.
func (g *Gatherer) tokens(p *event.Report, since int64) {
	worked := g.gain(computed, since)
	hits := g.gain(hit, since)
	if !p.Prompt.OK() && worked.OK() && p.Cached.OK() {
		p.Prompt = event.From(worked.V + p.Cached.V)
	}
	taken := p.Cached
	if !taken.OK() {
		taken = hits
	}
	if worked.Origin == event.NotReported && p.Prompt.OK() && taken.OK() {
		worked = event.From(max(p.Prompt.V-taken.V, 0))
	}
	p.Prefill, p.Decode = per(worked, since), per(p.Generated, since)
	if m := g.role(generated); m == nil || m.late {
		if now := g.gauge(decodeRate); now.OK() {
			p.Decode = now
		}
	}
	p.CacheHits = share(hits, g.gain(looked, since))
	if p.CacheHits.Origin == event.NotReported {
		p.CacheHits = share(p.Cached, p.Prompt)
	}
	if now := g.gauge(hitShare); now.OK() && !p.CacheHits.OK() {
		p.CacheHits = now
	}
}

// more fills in what only some engines tell.
func (g *Gatherer) more(p *event.Report, since int64) {
	add := func(name string, r event.Reading) {
		if r.OK() {
			p.More = append(p.More, event.Number{Name: name, Reading: r})
		}
	}
	drafts := share(g.gain(accepted, since), g.gain(drafted, since))
	if now := g.gauge(draftShare); !drafts.OK() && now.V > 0 { // without drafts it is 0
		drafts = now
	}
	add("accepted_draft_share", drafts)
	if worked := per(g.gain(busy, since), since); worked.OK() && worked.V <= 1 { // of several devices it would be a sum
		add("device_busy_share", worked)
	}
	add("preemptions", g.gain(preempted, since))
}
