package verdict

import (
	"fmt"

	"github.com/llmtop/llmtop/profiler/metric"
)

// Cause is why time was lost.
type Cause uint8

// The causes. Of two that explain the same time, the first is named.
const (
	Unknown Cause = iota
	Stopped
	GC
	CPUQuota
	MemoryLimit
	DiskReads
	ThrottledClock
	OwnThreads
	OtherProcesses
	Screen
	Hypervisor
	GPUHeat
	GPUPower
	GPUOthers
	LaunchGaps
	Copies
	PromptOfOther
	Pacing
	Queue
	OwnPrompt
	ModelLoad
	MemoryBandwidth
	GPUMemory
	NumCauses
)

// CauseRow is all that is known of a cause: the row of the table that stalls, verdicts, reports, alerts and
// docs/causes.md share.
type CauseRow struct {
	Key    string // in reports and alerts
	Text   string // follows the lost time: "a stall of 30 ms: …"
	Remedy string

	explains func(*Interval) int64  // ns of the interval that the cause accounts for; 0: excluded
	evidence func(*Interval) string // the numbers that say so
}

// Causes is the table of causes.
var Causes = [NumCauses]CauseRow{
	Unknown: {
		Key: "unknown", Text: "unknown cause",
		explains: func(*Interval) int64 { return 0 },
	},
	Stopped: {
		Key: "stopped", Text: "the process was stopped", Remedy: "find what sends SIGSTOP: a debugger, a job control shell, a freezer",
		explains: func(i *Interval) int64 { return whole(i.Usage.Stopped) },
		evidence: func(i *Interval) string { return "stopped for " + duration(i.Usage.Stopped) },
	},
	GC: {
		Key: "gc", Text: "llmtop's garbage collection", Remedy: "run the engine in its own process (--isolated), or set GOGC=400",
		explains: func(i *Interval) int64 { return whole(i.Usage.GCPause) },
		evidence: func(i *Interval) string { return "the collector stopped the engine for " + duration(i.Usage.GCPause) },
	},
	CPUQuota: {
		Key: "cpu_quota", Text: "held at the CPU quota of its control group", Remedy: "raise the CPU quota, or give the engine as many threads as the quota has cores",
		explains: func(i *Interval) int64 {
			if t := whole(i.Usage.Throttled); t > 0 {
				return max(t, whole(i.Usage.Waiting)) // the group counts it when the quota is renewed
			}
			return 0
		},
		evidence: func(i *Interval) string {
			return fmt.Sprintf("throttled for %s, %s, at %s", duration(i.Usage.Throttled), i.waited(), metric.Reading(i.Usage.Cores, coreCount))
		},
	},
	MemoryLimit: {
		Key: "memory_limit", Text: "too little memory: the same pages of the model are read again",
		Remedy:   "raise the memory limit above the model's size, or use a smaller quantisation",
		evidence: (*Interval).readEvidence,
		explains: func(i *Interval) int64 {
			if ns := i.storage(); ns > 0 && i.rereads(ns) {
				return max(ns, whole(i.Usage.MemoryStall))
			}
			return 0
		},
	},
	DiskReads: {
		Key: "disk_reads", Text: "waiting for reads of the model from disk", Remedy: "repeat the run when the file is in the page cache, or use a faster disk",
		evidence: (*Interval).readEvidence,
		explains: func(i *Interval) int64 {
			if ns := i.storage(); !i.rereads(ns) {
				return ns
			}
			return 0
		},
	},
	ThrottledClock: {
		Key: "throttled_clock", Text: "the cores ran below their frequency", Remedy: "check cooling, power limits and the CPU governor",
		explains: (*Interval).clockLoss,
		evidence: func(i *Interval) string {
			return fmt.Sprintf("busy cores at %s of their highest frequency", metric.Percent(i.Clock.V))
		},
	},
	OwnThreads: {
		Key: "own_threads", Text: "more threads than cores: the engine's threads waited for each other",
		Remedy:   "set --threads to the number of cores",
		explains: func(i *Interval) int64 { own, _, _ := i.waits(); return max(own, i.crowded()) },
		evidence: func(i *Interval) string {
			return fmt.Sprintf("%.0f threads on %s; together they ran %s; %s", max(i.Usage.Threads.V, i.Threads), coreCount(i.Usage.Cores.V),
				duration(i.Usage.Running), i.waited())
		},
	},
	OtherProcesses: {
		Key: "other_processes", Text: "other processes used the cores", Remedy: "stop other programs on these cores, or reserve cores for the engine (taskset)",
		explains: func(i *Interval) int64 { _, others, _ := i.waits(); return others },
		evidence: func(i *Interval) string {
			words := i.waited()
			if i.Others.OK() && i.OthersSpan > 0 {
				words += "; other processes used " + coreCount(i.Others.V/float64(i.OthersSpan)) // in a longer time
			}
			return words
		},
	},
	Screen: {
		Key: "llmtop", Text: "llmtop's other threads used the cores", Remedy: "use fewer --threads than cores, or a lower --fps",
		explains: func(i *Interval) int64 { _, _, screen := i.waits(); return screen },
		evidence: func(i *Interval) string {
			return i.waited() + "; llmtop's other threads ran " + duration(i.Usage.Outside)
		},
	},
	Hypervisor: {
		Key: "hypervisor", Text: "the hypervisor gave the cores to other machines", Remedy: "use a machine with dedicated cores",
		explains: func(i *Interval) int64 { return i.stolen() },
		evidence: func(i *Interval) string {
			return fmt.Sprintf("%s of %s stolen, mean over the cores", duration(i.Stolen), metric.Duration(i.OthersSpan))
		},
	},
	GPUHeat: {
		Key: "gpu_heat", Text: "the GPU lowered its clock because of its temperature", Remedy: "check the cooling of the GPU",
		explains: func(i *Interval) int64 { return i.onGPU(i.GPU.Hot) },
		evidence: func(i *Interval) string { return "its clock was " + i.gpuShare(i.GPU.Hot) + " below its highest" },
	},
	GPUPower: {
		Key: "gpu_power", Text: "the GPU lowered its clock because of its power limit", Remedy: "raise the power limit of the GPU (nvidia-smi -pl)",
		explains: func(i *Interval) int64 { return i.onGPU(i.GPU.Capped) },
		evidence: func(i *Interval) string { return "its clock was " + i.gpuShare(i.GPU.Capped) + " below its highest" },
	},
	GPUOthers: {
		Key: "gpu_others", Text: "other processes used the GPU", Remedy: "stop other programs on this GPU, or use another one (CUDA_VISIBLE_DEVICES)",
		explains: func(i *Interval) int64 { return i.onGPU(i.GPU.Others) },
		evidence: func(i *Interval) string {
			return "others kept the GPU busy for " + i.gpuShare(i.GPU.Others) + " of the time"
		},
	},
	LaunchGaps: {
		Key: "launch_gaps", Text: "the GPU waited for the CPU", Remedy: "use CUDA graphs, or larger batches",
		explains: func(i *Interval) int64 {
			if i.GPU.HostExperts {
				return 0
			}
			return i.onGPU(i.GPU.Gaps)
		},
		evidence: func(i *Interval) string {
			words := i.gpuShare(i.GPU.Gaps) + " of the time from the end of a wait for the GPU to the next launch"
			if !i.GPU.Graphs {
				words += "; CUDA graphs are off"
			}
			return words
		},
	},
	Copies: {
		Key: "gpu_copies", Text: "copies between memory and the GPU", Remedy: "keep on the GPU what is copied: all layers, and the experts that are picked most (llmtop experts plan)",
		explains: func(i *Interval) int64 {
			if i.GPU.Copies == 0 {
				return 0
			}
			handed := i.GPU.Copies
			if i.GPU.HostExperts {
				handed += i.GPU.Gaps
			}
			return i.onGPU(handed)
		},
		evidence: func(i *Interval) string {
			words := "copies took " + i.gpuShare(i.GPU.Copies) + " of the time"
			if i.GPU.HostExperts {
				words += "; the experts are on the CPU, for which the GPU waited " + i.gpuShare(i.GPU.Gaps)
			}
			return words
		},
	},
	PromptOfOther: {
		Key: "prompt_of_other", Text: "while a prompt was processed", Remedy: smallerChunks + ", shorter prompts, or another replica for long ones",
		explains: func(i *Interval) int64 { return i.Prompt },
		evidence: func(i *Interval) string {
			if i.PromptAwaited {
				return fmt.Sprintf("#%d waited for its first token for %s", i.PromptOf, metric.Duration(i.Prompt))
			}
			whose := "prompts were"
			if i.PromptOf != 0 {
				whose = fmt.Sprintf("#%d's prompt was", i.PromptOf)
			}
			return whose + " processed for " + metric.Duration(i.Prompt)
		},
	},
	Pacing: {
		Key: "pacing", Text: "waiting behind requests that are paced", Remedy: "a higher --pace, or none: the requests that hold the slots wait on purpose",
		explains: func(i *Interval) int64 { return i.Paced },
		evidence: func(i *Interval) string {
			return fmt.Sprintf("running requests were paced for %s of the wait", metric.Duration(i.Paced))
		},
	},
	Queue: {
		Key: "queue", Text: "waiting for a slot", Remedy: "more slots (--parallel), or fewer requests at a time",
		explains: func(i *Interval) int64 { return i.Queued },
		evidence: func(i *Interval) string { return fmt.Sprintf("%s in the queue", metric.Duration(i.Queued)) },
	},
	OwnPrompt: {
		Key: "own_prompt", Text: "its own prompt", Remedy: "a shorter prompt, or a prefix that requests share",
		explains: func(i *Interval) int64 { return i.OwnPrompt },
		evidence: func(i *Interval) string {
			return fmt.Sprintf("its prompt was processed for %s", metric.Duration(i.OwnPrompt))
		},
	},
	ModelLoad: {
		Key: "model_load", Text: "the model was loaded", Remedy: "keep the model loaded between requests",
		explains: func(i *Interval) int64 { return i.Load },
		evidence: func(i *Interval) string { return "the load took " + metric.Duration(i.Load) },
	},
	MemoryBandwidth: {
		Key: "memory_bandwidth", Text: "the model needs the machine's memory bandwidth", Remedy: "a smaller quantisation, or more requests in a batch",
		explains: func(i *Interval) int64 {
			if !i.Bandwidth.OK() || i.Bandwidth.V < MemoryBound {
				return 0
			}
			return int64(float64(i.Lost) * min(i.Bandwidth.V, 1))
		},
		evidence: func(i *Interval) string {
			return fmt.Sprintf("decode bandwidth is %s of the read bandwidth", metric.Percent(i.Bandwidth.V))
		},
	},
	GPUMemory: {
		Key: "gpu_memory_bandwidth", Text: "the model needs the bandwidth of the GPU's memory", Remedy: "a smaller quantisation, or more requests in a batch",
		explains: func(i *Interval) int64 {
			if share, _ := i.GPU.memory(); i.Whole && share >= MemoryBound {
				return int64(float64(i.Lost) * min(share, 1))
			}
			return 0
		},
		evidence: func(i *Interval) string {
			share, by := i.GPU.memory()
			words := metric.Percent(share)
			if all := i.GPU.Bandwidth; all > 0 {
				words = metric.BytesPerSecond(share*all) + " of " + metric.BytesPerSecond(all)
			}
			return "its memory moved " + words + ", " + by
		},
	},
}

// String returns the key.
func (c Cause) String() string { return Causes[min(c, NumCauses-1)].Key }
