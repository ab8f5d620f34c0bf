package report

import (
	"encoding/json"
	"slices"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/profiler/store"
)

// Host is the last sample of the machine, null if there was none, and the use over all samples. Its numbers and those
// of its parts are the rows of the catalogue that have a JSON name.
type Host struct {
	Sampled  bool                                    `json:"known"`
	Readings [len(event.MachineFields)]event.Reading `json:"-"`
	Cores    []event.Reading                         `json:"core_shares"`
	Clocks   []event.Reading                         `json:"core_frequencies_hz"`
	Absent   map[string]string                       `json:"absent,omitempty"`
	Engine   Process                                 `json:"engine"`
	Self     Process                                 `json:"llmtop"`
	GPUs     []GPU                                   `json:"gpus"`
	NoGPU    *string                                 `json:"no_gpu"` // reason if there are none
	RunUsage RunUsage                                `json:"over_run"`
}

// Process is a process in the last sample.
type Process struct {
	PID      int                                     `json:"pid"`
	Readings [len(event.ProcessFields)]event.Reading `json:"-"`
	Absent   map[string]string                       `json:"absent,omitempty"`
}

// GPU is an accelerator in the last sample.
type GPU struct {
	Name     string                              `json:"name"`
	Readings [len(event.GPUFields)]event.Reading `json:"-"`
	Absent   map[string]string                   `json:"absent,omitempty"`
}

// MarshalJSON writes the numbers after the other members.
func (h Host) MarshalJSON() ([]byte, error) {
	type plain Host
	return appendNumbers(plain(h), event.MachineFields[:], h.Readings[:])
}

// UnmarshalJSON reads what MarshalJSON writes.
func (h *Host) UnmarshalJSON(src []byte) error {
	type plain Host
	return readNumbers(src, (*plain)(h), &h.Absent, event.MachineFields[:], h.Readings[:])
}

// MarshalJSON writes the numbers after the other members.
func (p Process) MarshalJSON() ([]byte, error) {
	type plain Process
	return appendNumbers(plain(p), event.ProcessFields[:], p.Readings[:])
}

// UnmarshalJSON reads what MarshalJSON writes.
func (p *Process) UnmarshalJSON(src []byte) error {
	type plain Process
	return readNumbers(src, (*plain)(p), &p.Absent, event.ProcessFields[:], p.Readings[:])
}

// MarshalJSON writes the numbers after the other members.
func (g GPU) MarshalJSON() ([]byte, error) {
	type plain GPU
	return appendNumbers(plain(g), event.GPUFields[:], g.Readings[:])
}

// UnmarshalJSON reads what MarshalJSON writes.
func (g *GPU) UnmarshalJSON(src []byte) error {
	type plain GPU
	return readNumbers(src, (*plain)(g), &g.Absent, event.GPUFields[:], g.Readings[:])
}

// appendNumbers returns an object with the numbers of the catalogue's rows as further members.
func appendNumbers[T any](object any, rows []event.Field[T], numbers []event.Reading) ([]byte, error) {
	out, err := json.Marshal(object)
	if err != nil {
		return nil, err
	}
	out = out[:len(out)-1]
	for i, n := range numbers {
		if rows[i].JSON == "" {
			continue
		}
		v, err := n.MarshalJSON()
		if err != nil {
			return nil, err
		}
		out = append(out, `,"`+rows[i].JSON+`":`...)
		out = append(out, v...)
	}
	return append(out, '}'), nil
}

// readNumbers reads what appendNumbers writes. absent is the member of the object with the reasons of absent numbers.
func readNumbers[T any](src []byte, object any, absent *map[string]string, rows []event.Field[T], numbers []event.Reading) error {
	if err := json.Unmarshal(src, object); err != nil {
		return err
	}
	return eachMember(src, func(name string, v []byte) error {
		if i := slices.IndexFunc(rows, func(f event.Field[T]) bool { return f.JSON == name }); i >= 0 {
			err := numbers[i].UnmarshalJSON(v)
			explain(&numbers[i], (*absent)[name])
			return err
		}
		return nil
	})
}

// numberNamed returns the number of the row with a JSON name.
func numberNamed[T any](rows []event.Field[T], numbers []event.Reading, name string) event.Reading {
	return numbers[slices.IndexFunc(rows, func(f event.Field[T]) bool { return f.JSON == name })]
}

// readFields sets the numbers of the catalogue's rows, and returns the reasons of the absent ones by JSON name.
func readFields[T any](rows []event.Field[T], of *T, numbers []event.Reading) (absent map[string]string) {
	for i := range rows {
		numbers[i] = *rows[i].At(of)
		if rows[i].JSON != "" && !numbers[i].OK() {
			if absent == nil {
				absent = make(map[string]string)
			}
			absent[rows[i].JSON] = numbers[i].Absence()
		}
	}
	return absent
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
		Sampled: h.Sampled, Cores: []event.Reading{}, Clocks: []event.Reading{}, Engine: process(&h.Engine), Self: process(&h.Self), GPUs: []GPU{}, NoGPU: optionalText(h.NoGPU), RunUsage: runUsage(h.Usage),
	}
	for _, hz := range h.Clocks {
		out.Clocks = append(out.Clocks, event.MeasuredValue(hz))
	}
	for _, share := range h.Cores {
		out.Cores = append(out.Cores, event.MeasuredValue(share))
	}
	for i := range h.GPUs {
		gpu := GPU{Name: h.GPUs[i].Name}
		gpu.Absent = readFields(event.GPUFields[:], &h.GPUs[i], gpu.Readings[:])
		out.GPUs = append(out.GPUs, gpu)
	}
	out.Absent = readFields(event.MachineFields[:], h.Host, out.Readings[:])
	return out
}

func process(p *event.Process) Process {
	out := Process{PID: p.PID}
	out.Absent = readFields(event.ProcessFields[:], p, out.Readings[:])
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
