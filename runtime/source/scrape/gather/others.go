package gather

import (
	"slices"
	"strings"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime/source/scrape/prom"
)

// fillRatios adds the ratios of which the text has both counters.
func (g *Gatherer) fillRatios(p *event.Aggregates, since int64) {
	add := func(name string, part, whole event.Reading) {
		if part.OK() && whole.OK() && part.V <= event.MaxNumber && whole.V <= event.MaxNumber &&
			!slices.ContainsFunc(p.Ratios, func(r event.Ratio) bool { return r.Name == name }) {
			p.Ratios = append(p.Ratios, event.Ratio{Name: name, Part: event.ReportedValue(part.V), Whole: event.ReportedValue(whole.V)})
		}
	}
	add(event.RatioCacheHits, g.increaseOf(CacheHits, since), g.increaseOf(CacheQueries, since))
	add(event.RatioCacheHits, p.Cached, p.Prompt)
	for _, i := range g.roles[Ratio] {
		m := &g.metrics[i]
		add(m.Name, g.increase(m, since), g.increase(m.whole, since))
	}
	slices.SortFunc(p.Ratios, func(a, b event.Ratio) int { return strings.Compare(a.Name, b.Name) })
}

// fillOthers adds the values and the counts that have a name of their own.
func (g *Gatherer) fillOthers(p *event.Aggregates, since int64) {
	p.Counts = g.otherCounts(func(m *metric) float64 { return m.increase })
	if since <= 0 {
		p.Counts = nil
	}
	for i := range g.metrics {
		m := &g.metrics[i]
		if m.round != g.lastComplete || m.n == 0 || m.problem != "" || slices.ContainsFunc(p.More, m.isNamed) {
			continue
		}
		v := m.sum / float64(m.n)
		switch m.Role {
		case OtherSum, Queue:
			v = m.sum
		case OtherMean:
		case OtherPercent:
			v /= 100
		default:
			continue
		}
		p.More = append(p.More, event.NamedReading{Name: m.Name, Reading: event.ReportedValue(v)})
	}
	slices.SortFunc(p.More, byName)
}

// otherCounts returns a number of each counter with a name of its own.
func (g *Gatherer) otherCounts(of func(*metric) float64) (out []event.NamedReading) {
	for i := range g.metrics {
		m := &g.metrics[i]
		if m.Role == OtherCount && m.round == g.lastComplete && m.n > 0 && m.problem == "" && !slices.ContainsFunc(out, m.isNamed) {
			out = append(out, event.NamedReading{Name: m.Name, Reading: event.DerivedValue(of(m))})
		}
	}
	slices.SortFunc(out, byName)
	return out
}

// isNamed reports whether a number of a metric that comes first has the same name.
func (m *metric) isNamed(n event.NamedReading) bool { return n.Name == m.Name }

func byName(a, b event.NamedReading) int { return strings.Compare(a.Name, b.Name) }

// earlier returns what the engine has counted until now.
func (g *Gatherer) earlier() *event.Earlier {
	out := &event.Earlier{
		Finished: g.gauge(Finished), Failed: g.gauge(Failed), Prompt: g.gauge(Prompt), Cached: g.gauge(PromptCached), Generated: g.gauge(Generated),
		Counts: g.otherCounts(func(m *metric) float64 { return m.sum }),
	}
	for i := range g.metrics {
		m := &g.metrics[i]
		if m.interval == nil || m.round != g.lastComplete || m.problem != "" {
			continue
		}
		if t := m.total(g.texts); t.Count > 0 && !slices.ContainsFunc(out.Histograms, func(o event.Histogram) bool { return o.Name == t.Name }) {
			out.Histograms = append(out.Histograms, t)
		}
	}
	return out
}

// total returns the histogram since the engine started, over all series of the last text.
func (m *metric) total(texts uint32) event.Histogram {
	t := new(intervalHistogram)
	for _, s := range m.series {
		if s.of != nil || s.text != texts {
			continue
		}
		h := *s.histogram
		h.nextBounds, h.nextCounts, h.nextSum, h.nextCount = h.bounds, h.counts, h.sum, h.count
		h.counts = nil
		t.add(&h, false, true)
	}
	return t.aggregate(m.Histogram)
}

// setAdapters records the names of LoRA adapters. Series of earlier names stay in the text: the latest one counts.
func (g *Gatherer) setAdapters(at float64, l prom.Labels) {
	if at <= g.adaptersAt {
		return
	}
	g.adapters, g.adaptersAt = nil, at
	for _, label := range [...]string{"running_lora_adapters", "waiting_lora_adapters"} {
		for name := range strings.SplitSeq(l.Get(label), ",") {
			if name = strings.TrimSpace(name); name != "" && len(g.adapters) < maxModels && !slices.Contains(g.adapters, name) {
				g.adapters = append(g.adapters, name)
			}
		}
	}
}

// MaxRanks limits the number of ranks, and of models.
const MaxRanks = 64

// states returns the state of each part of the engine, by the name that the labels of a series give it; nil if there is
// only one. since is the time since the last report in ns.
func (g *Gatherer) states(name func(*labelSet) string, since int64) (out []event.Rank) {
	counted := g.metricOf(Generated)
	if counted != nil && (counted.AtEnd || since <= 0 || g.texts-g.reported != 1) { // see series.last
		counted = nil
	}
	var list []*series
	for _, m := range append(append([]*metric{g.metricOf(Running)}, g.queues()...), g.metricOf(KVUsage), counted) {
		if m == nil || m.problem != "" {
			continue
		}
		list = list[:0]
		for _, s := range m.series {
			if s.of == nil && name(s.set) != "" && s.text > 0 && g.texts-s.text <= heldTexts {
				list = append(list, s)
			}
		}
		slices.SortFunc(list, func(a, b *series) int { return a.set.order - b.set.order })
		for _, s := range list {
			at := slices.IndexFunc(out, func(r event.Rank) bool { return r.Name == name(s.set) })
			if at < 0 {
				if len(out) == MaxRanks {
					continue
				}
				at = len(out)
				out = append(out, event.Rank{Name: name(s.set)})
			}
			switch r := &out[at]; m.Role {
			case Running:
				r.Running = event.ReportedValue(r.Running.V + s.value)
			case KVUsage: // of the fullest
				r.KVUsage = event.ReportedValue(max(r.KVUsage.V, s.value))
			case Generated:
				r.Decode = event.DerivedValue(r.Decode.V + s.last/(float64(since)/1e9))
			default:
				r.Waiting = event.ReportedValue(r.Waiting.V + s.value)
			}
		}
	}
	if len(out) < 2 {
		return nil
	}
	return out
}
