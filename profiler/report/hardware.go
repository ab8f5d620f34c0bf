package report

import (
	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/profiler/store"
)

// Host is the last sample of the machine, null if there was none, and the use over all samples.
type Host struct {
	Sampled    bool              `json:"known"`
	CPU        Number            `json:"cpu_share"` // of the whole machine
	Cores      []Number          `json:"core_shares"`
	Frequency  Number            `json:"frequency_hz"`
	Load1      Number            `json:"load_1m"`
	MemoryUsed Number            `json:"memory_used_bytes"`
	Memory     Number            `json:"memory_bytes"`
	CPULimit   Number            `json:"cpu_limit_cores"`
	Clocks     []Number          `json:"core_frequencies_hz"`
	CPUWait    Number            `json:"cpu_pressure_share"`
	MemoryWait Number            `json:"memory_pressure_share"`
	IOWait     Number            `json:"io_pressure_share"`
	Throttled  Number            `json:"throttled_share"`
	Received   Number            `json:"received_bytes_per_s"`
	Sent       Number            `json:"sent_bytes_per_s"`
	Power      Number            `json:"power_w"`            // of the processors
	ModelFile  Number            `json:"model_bytes"`        // at the last inspection
	Cached     Number            `json:"model_cached_bytes"` // of the model file, in the page cache
	Absent     map[string]string `json:"absent,omitempty"`
	Engine     Process           `json:"engine"`
	Self       Process           `json:"llmtop"`
	GPUs       []GPU             `json:"gpus"`
	NoGPU      *string           `json:"no_gpu"` // reason if there are none
	RunUsage   RunUsage          `json:"over_run"`
}

// Process is a process in the last sample. Disk sums count from the start of the process.
type Process struct {
	PID      int               `json:"pid"`
	CPU      Number            `json:"cpu_cores"`
	Outside  Number            `json:"cpu_outside_engine_cores"`
	RunWait  Number            `json:"run_wait_share"`
	RSS      Number            `json:"rss_bytes"`
	Peak     Number            `json:"peak_rss_bytes"`
	ReadSum  Number            `json:"disk_read_bytes"`
	WriteSum Number            `json:"disk_write_bytes"`
	Read     Number            `json:"disk_read_bytes_per_s"`
	Write    Number            `json:"disk_write_bytes_per_s"`
	ReadOps  Number            `json:"disk_read_ops_per_s"`
	WriteOps Number            `json:"disk_write_ops_per_s"`
	Faults   Number            `json:"major_faults_per_s"`
	Threads  Number            `json:"threads"`
	PSS      Number            `json:"pss_bytes"` // at the last inspection
	Minor    Number            `json:"minor_faults_per_s"`
	Waiting  Number            `json:"voluntary_switches_per_s"`
	Stopped  Number            `json:"involuntary_switches_per_s"`
	Absent   map[string]string `json:"absent,omitempty"`
}

// GPU is an accelerator in the last sample.
type GPU struct {
	Name        string            `json:"name"`
	Util        Number            `json:"utilisation"`
	MemoryUsed  Number            `json:"memory_used_bytes"`
	Memory      Number            `json:"memory_bytes"`
	Power       Number            `json:"power_w"`
	Temperature Number            `json:"temperature_c"`
	Clock       Number            `json:"clock_hz"`
	Absent      map[string]string `json:"absent,omitempty"`
}

// Experts holds the router picks since the model was loaded. Layers has the picks of both phases by layer and expert.
type Experts struct {
	Experts int        `json:"experts"`
	Used    int        `json:"used"`
	EveryN  int        `json:"every_n"` // picks were counted in one of EveryN steps
	Layers  [][]uint64 `json:"layers"`
	Prompt  Picks      `json:"prompt"`
	Decode  Picks      `json:"decode"`
}

// Picks holds the picks of one phase.
type Picks struct {
	Tokens uint64     `json:"tokens"`
	Layers [][]uint64 `json:"layers"`
	Stats  []Balance  `json:"stats"`
}

// Balance describes how evenly the picks of one layer are spread; null without picks.
type Balance struct {
	Total   uint64 `json:"total"`
	MaxMean Number `json:"max_mean"`
	CV      Number `json:"cv"`
	Entropy Number `json:"entropy"`
	Dead    int    `json:"dead"`
	Hot     []int  `json:"hot"`  // the most picked experts
	Cold    []int  `json:"cold"` // the least picked
}

func host(h *store.Host) Host {
	out := Host{
		Sampled: h.Sampled, CPU: Number(h.CPU), Cores: []Number{}, Frequency: Number(h.Frequency), Load1: Number(h.Load1),
		MemoryUsed: Number(h.MemUsed), Memory: Number(h.MemTotal), CPULimit: Number(h.CPULimit),
		Clocks: []Number{}, CPUWait: Number(h.CPUPressure), MemoryWait: Number(h.MemPressure), IOWait: Number(h.IOPressure),
		Throttled: Number(h.Throttled), Received: Number(h.Received), Sent: Number(h.Sent), Power: Number(h.Power),
		ModelFile: Number(h.Inspection.ModelBytes), Cached: Number(h.Inspection.ModelCached),
		Engine: process(&h.Engine, h.Inspection.PSS), Self: process(&h.Self, event.Reading{}), GPUs: []GPU{}, NoGPU: optionalText(h.NoGPU),
	}
	for _, hz := range h.Clocks {
		out.Clocks = append(out.Clocks, Number(event.MeasuredValue(hz)))
	}
	for _, share := range h.Cores {
		out.Cores = append(out.Cores, Number(event.MeasuredValue(share)))
	}
	for _, g := range h.GPUs {
		gpu := GPU{
			Name: g.Name, Util: Number(g.Util), MemoryUsed: Number(g.MemUsed), Memory: Number(g.MemTotal),
			Power: Number(g.Power), Temperature: Number(g.Temperature), Clock: Number(g.Clock),
		}
		gpu.Absent = absences(gpu)
		out.GPUs = append(out.GPUs, gpu)
	}
	out.Absent = absences(out)
	return out
}

func process(p *event.Process, pss event.Reading) Process {
	out := Process{
		PID: p.PID, CPU: Number(p.CPU), Outside: Number(p.OutsideEngine), RunWait: Number(p.RunWait),
		RSS: Number(p.RSS), Peak: Number(p.Peak), ReadSum: Number(p.ReadSum), WriteSum: Number(p.WriteSum),
		Read: Number(p.Read), Write: Number(p.Write), ReadOps: Number(p.ReadOps), WriteOps: Number(p.WriteOps),
		Faults: Number(p.Faults), Threads: Number(p.Threads), PSS: Number(pss),
		Minor: Number(p.MinorFaults), Waiting: Number(p.Voluntary), Stopped: Number(p.Involuntary),
	}
	out.Absent = absences(out)
	return out
}

func experts(x *store.Experts) *Experts {
	if x == nil {
		return nil
	}
	out := &Experts{Experts: x.Experts, Used: x.Used, EveryN: max(x.EveryN, 1)}
	out.Layers = layerCounts(x.Hits[session][metric.Both], x.Experts)
	out.Prompt = picks(x.Hits[session][metric.Prompt], x.Experts)
	out.Decode = picks(x.Hits[session][metric.Decode], x.Experts)
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
			b.MaxMean, b.CV, b.Entropy = Number(event.DerivedValue(l.MaxMean)), Number(event.DerivedValue(l.CV)), Number(event.DerivedValue(l.Entropy))
			b.Hot, b.Cold = l.Hot, l.Cold
		}
		out.Stats = append(out.Stats, b)
	}
	return out
}
