package exposition

import (
	"strconv"

	dto "github.com/prometheus/client_model/go"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/profiler/store"
)

// The limits on series of experts.
const (
	// MaxCells is the most layers x experts, of all engines together, whose picks are exported by expert: two series
	// each, some 4 MB of text per scrape. Engines that do not fit, in the order in which they were added, export picks
	// by layer only.
	MaxCells = 1 << 15
	// MaxLayers is the most layers of an engine whose picks are exported. Engines that report more export no picks.
	MaxLayers = 512
)

// Metrics of experts.
var (
	expertPicks = counter("llmtop.expert.picks", "{pick}", "Router picks of an expert", engineAttr, "layer", "expert", "phase")
	layerPicks  = counter("llmtop.expert.layer_picks", "{pick}", "Router picks of all experts of a layer", engineAttr, "layer", "phase")
	imbalance   = gauge("llmtop.expert.max_mean", "1", "Picks of the most picked expert of a layer / mean over its experts, decode, last 10 s",
		engineAttr, "layer")
	everyN = gauge("llmtop.expert.counted_passes", "{pass}", "Picks are counted in one forward pass of N; this is N", engineAttr)
)

// phases are the exported phases; the reader adds them up.
var phases = [...]struct {
	phase metric.Phase
	name  string
}{{metric.Decode, "decode"}, {metric.Prompt, "prompt"}}

// experts adds the picks of the session.
func (s *gathering) experts(v *store.Experts) {
	s.add(everyN, float64(max(v.EveryN, 1)))
	if v.Layers > MaxLayers {
		return
	}
	cells := v.Layers * v.Experts
	session := func(p metric.Phase) *store.Hits { return v.Hits(metric.Session, p) }
	created := s.countingSince(expertPicks, "", cells, session(metric.Decode).Tokens+session(metric.Prompt).Tokens)
	recent := v.Hits(metric.TenSeconds, metric.Decode)
	for l := range v.Layers {
		for _, p := range phases {
			s.count(layerPicks, float64(session(p.phase).Layers[l].Total), created, strconv.Itoa(l), p.name)
		}
		if recent.Layers[l].Total > 0 {
			s.add(imbalance, recent.Layers[l].MaxMean, strconv.Itoa(l))
		}
	}
	if cells > s.cells {
		return
	}
	s.cells -= cells
	f := s.family(expertPicks)
	for i, p := range phases {
		f.Metric = append(f.Metric, s.engine.cells.metrics(s.engine.label, v, i, session(p.phase).Counts, created)...)
	}
}

// cells are the labels of an engine's experts, created once per shape.
type cells struct {
	layers, experts int
	labels          [len(phases)][][]*dto.LabelPair // by layer*experts + expert
}

// fit creates the labels for a shape.
func (c *cells) fit(engine *dto.LabelPair, layers, experts int) {
	if c.layers == layers && c.experts == experts {
		return
	}
	c.layers, c.experts = layers, experts
	pairs := func(name string, n int) []*dto.LabelPair {
		out := make([]*dto.LabelPair, n)
		for i := range out {
			out[i] = &dto.LabelPair{Name: &name, Value: new(strconv.Itoa(i))}
		}
		return out
	}
	layer, expert := pairs(expertPicks.labels[1], layers), pairs(expertPicks.labels[2], experts)
	for i, p := range phases {
		phase := &dto.LabelPair{Name: &expertPicks.labels[3], Value: new(p.name)}
		c.labels[i] = make([][]*dto.LabelPair, 0, layers*experts)
		for _, l := range layer {
			for _, x := range expert {
				c.labels[i] = append(c.labels[i], []*dto.LabelPair{engine, l, x, phase})
			}
		}
	}
}

// metrics returns the metrics of one phase.
func (c *cells) metrics(engine *dto.LabelPair, v *store.Experts, phase int, counts []uint64, since *timestamppb.Timestamp) []*dto.Metric {
	c.fit(engine, v.Layers, v.Experts)
	made := make([]struct { // one allocation for all
		metric dto.Metric
		count  dto.Counter
		value  float64
	}, len(counts))
	out := make([]*dto.Metric, len(counts))
	for i := range made {
		m := &made[i]
		m.value = float64(counts[i])
		m.count.Value, m.count.CreatedTimestamp = &m.value, since
		m.metric.Label, m.metric.Counter = c.labels[phase][i], &m.count
		out[i] = &m.metric
	}
	return out
}
