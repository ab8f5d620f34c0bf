package report

import (
	"slices"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/profiler/store"
)

// Host is the last sample of the machine, and the use over all samples. Its numbers are those of the catalogue of events
// that have a JSON name.
type Host struct {
	Sampled  bool
	Machine  Numbers
	Cores    []event.Reading
	Clocks   []event.Reading
	Engine   Numbers
	Self     Numbers
	GPUs     []Numbers
	NoGPU    *string // reason if there are none
	RunUsage RunUsage
}

// Experts holds the router picks since the model was loaded. Layers has the picks of both phases by layer and expert.
type Experts struct {
	Experts int        `json:"experts"`
	Used    int        `json:"used"`
	EveryN  int        `json:"every_n"` // picks were counted in one of EveryN steps
	Layers  [][]uint64 `json:"layers"`
	Prompt  Picks      `json:"prompt"`
	Decode  Picks      `json:"decode"`
	// Imbalance is max/mean of the most imbalanced layer while decoding. Trend has it by second of the last minute and
	// layer, of the 10 s before.
	Imbalance event.Reading     `json:"imbalance"`
	Trend     [][]event.Reading `json:"imbalance_trend"`
	// InMemory is how much of the experts was in the page cache in the last sweep; nil if it was not measured.
	InMemory *ExpertsInMemory `json:"in_memory,omitempty"`
}

// ExpertsInMemory holds the share of each expert's bytes in the page cache.
type ExpertsInMemory struct {
	Layers         [][]event.Reading `json:"layers"`           // by layer and expert, 0..1
	Picks          event.Reading     `json:"picks_share"`      // picks while decoding x share of their expert in memory / picks
	HotNotResident []Expert          `json:"hot_not_resident"` // picked more often than evenly, and less than half in memory
}

// Expert names an expert of a layer.
type Expert struct {
	Layer  int `json:"layer"`
	Expert int `json:"expert"`
}

// Picks holds the picks of one phase.
type Picks struct {
	Tokens uint64     `json:"tokens"`
	Layers [][]uint64 `json:"layers"`
	Stats  []Balance  `json:"stats"`
}

// Balance describes how evenly the picks of one layer are spread; null without picks.
type Balance struct {
	Total   uint64        `json:"total"`
	MaxMean event.Reading `json:"max_mean"`
	CV      event.Reading `json:"cv"`
	Entropy event.Reading `json:"entropy"`
	Dead    int           `json:"dead"`
	Hot     []int         `json:"hot"`  // the most picked experts
	Cold    []int         `json:"cold"` // the least picked
}

func host(h *store.Host) Host {
	out := Host{
		Sampled: h.Sampled, Machine: sampled(event.MachineFields[:], h.Host), Cores: []event.Reading{}, Clocks: []event.Reading{},
		Engine: process(&h.Engine), Self: process(&h.Self), GPUs: []Numbers{}, NoGPU: optionalText(h.NoGPU), RunUsage: runUsage(h.Usage),
	}
	for _, hz := range h.Clocks {
		out.Clocks = append(out.Clocks, event.MeasuredValue(hz))
	}
	for _, share := range h.Cores {
		out.Cores = append(out.Cores, event.MeasuredValue(share))
	}
	for i := range h.GPUs {
		gpu := sampled(event.GPUFields[:], &h.GPUs[i])
		gpu.Name = h.GPUs[i].Name
		out.GPUs = append(out.GPUs, gpu)
	}
	return out
}

func process(p *event.Process) Numbers {
	out := sampled(event.ProcessFields[:], p)
	out.set("pid", event.MeasuredValue(float64(p.PID)))
	return out
}

func experts(s *store.Snapshot) *Experts {
	x := s.Experts
	if x == nil {
		return nil
	}
	out := &Experts{Experts: x.Experts, Used: x.Used, EveryN: max(x.EveryN, 1)}
	out.Layers = layerCounts(x.Hits(session, metric.Both), x.Experts)
	out.Prompt = picks(x.Hits(session, metric.Prompt), x.Experts)
	out.Decode = picks(x.Hits(session, metric.Decode), x.Experts)
	_, imbalance := store.Imbalance(s, session)
	out.InMemory = expertsInMemory(s)
	out.Imbalance, out.Trend = imbalance, [][]event.Reading{}
	for _, p := range x.Balance {
		layers := make([]event.Reading, len(p.MaxMean))
		for l, v := range p.MaxMean {
			if layers[l] = event.Absent(event.NotYet); v == v { // not NaN
				layers[l] = event.DerivedValue(float64(v))
			}
		}
		out.Trend = append(out.Trend, layers)
	}
	return out
}

// expertsInMemory returns what the last sweep of the page cache found; nil without one.
func expertsInMemory(s *store.Snapshot) *ExpertsInMemory {
	list := store.Residency(s)
	if list == nil {
		return nil
	}
	decode := s.Experts.Hits(session, metric.Decode)
	out := &ExpertsInMemory{Picks: store.ResidentPicks(s, decode), HotNotResident: []Expert{}}
	for row := range slices.Chunk(list, s.Experts.Experts) {
		shares := make([]event.Reading, len(row))
		for e, share := range row {
			if shares[e] = event.Absent(event.NotReported); share != event.UnknownShare {
				shares[e] = event.MeasuredValue(float64(share) / 100)
			}
		}
		out.Layers = append(out.Layers, shares)
	}
	for _, i := range store.HotNotResident(s, decode) {
		out.HotNotResident = append(out.HotNotResident, Expert{i / s.Experts.Experts, i % s.Experts.Experts})
	}
	return out
}

// layerCounts splits the counts into one slice per layer.
func layerCounts(h *store.Hits, experts int) [][]uint64 {
	out := make([][]uint64, 0, len(h.Layers))
	for l := range h.Layers {
		out = append(out, h.Counts[l*experts:(l+1)*experts])
	}
	return out
}

func picks(h *store.Hits, experts int) Picks {
	out := Picks{Tokens: h.Tokens, Layers: layerCounts(h, experts), Stats: []Balance{}}
	for _, l := range h.Layers {
		b := Balance{Total: l.Total, Dead: l.Dead, Hot: []int{}, Cold: []int{}}
		if l.Total > 0 {
			b.MaxMean, b.CV, b.Entropy = event.DerivedValue(l.MaxMean), event.DerivedValue(l.CV), event.DerivedValue(l.Entropy)
			b.Hot, b.Cold = l.Hot, l.Cold
		}
		out.Stats = append(out.Stats, b)
	}
	return out
}
