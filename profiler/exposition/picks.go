package exposition

import (
	"slices"
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
	if cells > s.room {
		return
	}
	s.room -= cells
	for _, p := range phases {
		s.cells(v, p.name, session(p.phase).Counts, created)
	}
}

// cells adds the picks of each expert in one phase. All of them share the labels of their layer and expert.
func (s *gathering) cells(v *store.Experts, phase string, counts []uint64, since *timestamppb.Timestamp) {
	pairs := func(name string, n int) []*dto.LabelPair {
		out := make([]*dto.LabelPair, n)
		for i := range out {
			out[i] = &dto.LabelPair{Name: &name, Value: new(strconv.Itoa(i))}
		}
		return out
	}
	labels := expertPicks.labels
	layer, expert, of := pairs(labels[1], v.Layers), pairs(labels[2], v.Experts), &dto.LabelPair{Name: &labels[3], Value: &phase}
	f := s.family(expertPicks)
	f.Metric = slices.Grow(f.Metric, len(counts))
	for i, n := range counts {
		f.Metric = append(f.Metric, &dto.Metric{
			Label:   []*dto.LabelPair{s.engine.label, layer[i/v.Experts], expert[i%v.Experts], of},
			Counter: &dto.Counter{Value: new(float64(n)), CreatedTimestamp: since},
		})
	}
}
