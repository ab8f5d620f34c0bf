package exposition

import (
	"strconv"

	dto "github.com/prometheus/client_model/go"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/profiler/store"
)

// The bounds of what is told of experts.
const (
	// MaxCells bounds layers x experts of all engines together whose picks are told expert by expert, two series each, some 4 MB of text as
	// they are fetched. Engines whose cells find no room, in the order in which they came, are told layer by layer only.
	MaxCells = 1 << 15
	// MaxLayers bounds the layers of an engine. One that claims more is told nothing of.
	MaxLayers = 512
)

// What is told of experts.
var (
	expertPicks = counter("llmtop.expert.picks", "{pick}", "Picks of an expert by the router", engineAttr, "layer", "expert", "phase")
	layerPicks  = counter("llmtop.expert.layer_picks", "{pick}", "Picks of all experts of a layer by the router", engineAttr, "layer", "phase")
	imbalance   = gauge("llmtop.expert.max_mean", "1", "Picks of the most picked expert of a layer / mean of its experts, decoding, last 10 s",
		engineAttr, "layer")
	everyN = gauge("llmtop.expert.counted_passes", "{pass}", "One forward pass in so many has its picks counted", engineAttr)
)

// phases are those whose picks are told; their sum is the reader's to make.
var phases = [...]struct {
	phase metric.Phase
	name  string
}{{metric.Decode, "decode"}, {metric.Prompt, "prompt"}}

// experts tells the picks of the session.
func (s *scrape) experts(v *store.Experts) {
	s.add(everyN, float64(max(v.EveryN, 1)))
	if v.Layers > MaxLayers {
		return
	}
	cells := v.Layers * v.Experts
	session := &v.Hits[metric.Session]
	created := s.since(expertPicks, "", cells, session[metric.Decode].Tokens+session[metric.Prompt].Tokens)
	recent := v.Hits[metric.TenSeconds][metric.Decode]
	for l := range v.Layers {
		for _, p := range phases {
			s.count(layerPicks, float64(session[p.phase].Layers[l].Total), created, strconv.Itoa(l), p.name)
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
		f.Metric = append(f.Metric, s.engine.cells.tell(s.engine.label, v, i, session[p.phase].Counts, created)...)
	}
}

// cells are the labels of an engine's experts, which are made once.
type cells struct {
	layers, experts int
	labels          [len(phases)][][]*dto.LabelPair // by layer*experts + expert
}

// fit makes the labels for a shape.
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

// tell is the metrics of one phase.
func (c *cells) tell(engine *dto.LabelPair, v *store.Experts, phase int, counts []uint64, since *timestamppb.Timestamp) []*dto.Metric {
	c.fit(engine, v.Layers, v.Experts)
	made := make([]struct { // one piece of memory for all
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
