package verdict

import (
	"fmt"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
)

// Interval is the evidence about a time in which something was slow. Absent evidence supports no cause.
type Interval struct {
	Lost int64 // ns to explain
	Wall int64 // ns in which the engine's process worked on it
	Span int64 // ns that Usage covers; 0: not measured

	Usage      event.Usage   // sums over Span
	Coarse     bool          // Span is that of whole samples of the machine, not of samples around the interval
	Others     event.Reading // ns that other processes ran in OthersSpan, summed over cores
	OthersSpan int64         // ns that Others and Stolen cover
	Stolen     event.Reading // ns in OthersSpan, mean over cores
	Clock      event.Reading // frequency of the busy cores / highest frequency

	GPU   GPUTime
	Whole bool // the interval is whole seconds, as samples of GPUs are

	AbsentExperts string // experts that the token picked and that were not in memory; "": unknown, or none

	Threads float64 // that the engine is set to; 0: unknown

	ReadTotal, ModelBytes float64 // bytes read since the model was loaded; size of the model, 0: unknown

	Prompt        int64           // ns of passes with prompts of other requests
	PromptOf      event.RequestID // one of them; 0: unknown
	PromptAwaited bool            // forward passes are not reported: PromptOf waited for its first token
	Queued        int64           // ns in the queue, without Paced
	Paced         int64           // ns in the queue behind paced requests
	OwnPrompt     int64           // ns of its own prefill
	Load          int64           // ns of the model load
	Bandwidth     event.Reading   // decode bandwidth / read bandwidth
}

// GPUTime is what samples of the GPUs that the engine uses say, of the worst of them: ns of Span, shares as parts of it.
type GPUTime struct {
	Span        int64 // 0: not measured
	Capped, Hot int64 // by which the clock was lower
	Others      int64 // that a busy GPU computed for others
	Gaps        int64 // between a wait for the GPU and the next launch
	Copies      int64 // in copies between memory and the GPU
	DRAM        int64 // in which its memory was fully used, as the driver measures it
	Graphs      bool  // CUDA graphs were launched
	HostExperts bool  // experts are computed on the CPU

	Reads, Bandwidth float64 // B/s that decoding reads, computed, and that the memory can move; 0: unknown
	Measured         bool    // the driver measures DRAM
}

// memory returns the share of the bandwidth of the GPU's memory that is used, and where the number is from.
func (g *GPUTime) memory() (share float64, by string) {
	if g.Measured {
		return metric.Share(float64(g.DRAM), float64(g.Span)), "measured by the driver"
	}
	if g.Bandwidth <= 0 || g.Reads > 1.1*g.Bandwidth { // the sizes are not those of what is read
		return 0, ""
	}
	return g.Reads / g.Bandwidth, "computed: what decoding reads / the GPU's data sheet"
}

// onGPU returns a part of the time on the GPU as a part of the interval, in ns.
func (i *Interval) onGPU(part int64) int64 {
	return int64(float64(i.Wall) * metric.Share(float64(part), float64(i.GPU.Span)))
}

func (i *Interval) gpuShare(part int64) string {
	return metric.Percent(metric.Share(float64(part), float64(i.GPU.Span)))
}

// Explanation is the cause of lost time.
type Explanation struct {
	Cause    Cause
	Lost     int64           // ns
	Explains int64           // ns of Lost that the cause accounts for; 0 for Unknown
	Evidence string          // the numbers that support the cause; "" for Unknown
	By       event.RequestID // whose prompt was processed; 0: another cause, or unknown
}

// Words describes the cause: "waiting for a slot", "while #42's prompt was processed".
func (x *Explanation) Words() string {
	if x.By != 0 {
		return fmt.Sprintf("while #%d's prompt was processed", x.By)
	}
	return Causes[x.Cause].Text
}

// Explain names the cause that explains most of the lost time. It is Unknown if none explains enough of it.
func Explain(i *Interval) Explanation {
	out := Explanation{Lost: max(i.Lost, 0)}
	for c := Unknown + 1; c < NumCauses; c++ {
		if c >= OwnPrompt && out.Cause != Unknown { // those of the request's own work do not say why it was slow
			break
		}
		ns, enough := min(Causes[c].explains(i), out.Lost), leastExplained
		if c < PromptOfOther { // causes in the process and the machine
			ns = min(ns, i.Wall)
			if i.Coarse || c >= GPUHeat && !i.Whole {
				enough = 1
			}
		}
		if ns > out.Explains && float64(ns) >= enough*float64(out.Lost) {
			out.Cause, out.Explains = c, ns
		}
	}
	if out.Cause != Unknown {
		out.Evidence = Causes[out.Cause].evidence(i)
	}
	if out.Cause == PromptOfOther {
		out.By = i.PromptOf
	}
	return out
}

// MeasuredLoss returns the ns of Span in which the engine's threads could not run, as far as it was measured. Of the time
// that threads waited for a core, it is the share of the time in which they were runnable.
func (i *Interval) MeasuredLoss() int64 {
	u := &i.Usage
	wait := max(whole(u.Waiting), whole(u.Throttled))
	lost := i.storage() + whole(u.Stopped) + whole(u.GCPause) + i.clockLoss() + i.stolen()
	lost += int64(float64(i.Span) * metric.Share(float64(max(i.GPU.Capped, i.GPU.Hot, i.GPU.Others)), float64(i.GPU.Span)))
	lost += max(i.crowded(), min(wait, int64(float64(i.Span)*metric.Share(float64(wait), float64(wait+whole(u.Running))))))
	return min(lost, i.Span)
}

// whole returns a reading as a whole number; 0 if it is absent.
func whole(r event.Reading) int64 {
	if !r.OK() {
		return 0
	}
	return int64(min(max(r.V, 0), maxWhole))
}

// maxWhole bounds readings, so that sums of a few do not overflow.
const maxWhole = 1 << 58

func duration(r event.Reading) string { return metric.Duration(whole(r)) }

func coreCount(n float64) string {
	if n == 1 {
		return "1 core"
	}
	return metric.Cores(n)
}

// maxFault bounds how long one page fault waits for storage, ns. A slow disk takes that long to read ahead 128 KiB.
const maxFault = 200 * time.Millisecond

// storage returns how long the engine waited for storage, in ns of the wall clock. The kernel does not account all of it:
// not the wait for a page that is already being read. So it is all of the time in which the threads neither ran nor
// waited for a core, if time blocked on storage and for memory is at least half of that, or, where these are not
// accounted, if there were major faults. A process that read nothing did not wait for reads: others may have.
func (i *Interval) storage() int64 {
	u := &i.Usage
	if u.Read.OK() && u.Faults.OK() && u.Read.V == 0 && u.Faults.V == 0 {
		return 0
	}
	blocked := min(whole(u.Blocked), i.Span)
	pressure := event.Add(blocked, whole(u.MemoryStall))
	if !u.Running.OK() || pressure == 0 && whole(u.Faults) == 0 {
		return blocked
	}
	threads := int64(1)
	if u.Threads.OK() && u.Cores.OK() {
		threads = max(1, min(whole(u.Threads), whole(u.Cores)))
	}
	idle := max(i.Span-(whole(u.Running)+whole(u.Waiting))/threads-whole(u.Stopped), 0)
	switch {
	case blocked == 0:
		return min(idle, int64(min(u.Faults.V, 1e6))*int64(maxFault))
	case 2*pressure >= idle:
		return max(blocked, idle)
	default:
		return blocked
	}
}

// readEvidence returns the numbers on reads of the model.
func (i *Interval) readEvidence() string {
	words := fmt.Sprintf("%s major faults, %s read, blocked for %s", metric.Count(i.Usage.Faults.V),
		metric.Reading(i.Usage.Read, metric.Bytes), metric.Duration(i.storage()))
	if i.ModelBytes > 0 && i.ReadTotal > i.ModelBytes {
		words += fmt.Sprintf("; %s read so far of a model of %s", metric.Bytes(i.ReadTotal), metric.Bytes(i.ModelBytes))
	}
	if n := whole(i.Usage.Reread); n > 0 {
		words += fmt.Sprintf("; %s of it again, after they had been evicted", metric.Bytes(float64(n)))
	}
	if n := i.Usage.LimitHits; n.OK() && n.V > 0 {
		words += fmt.Sprintf("; memory limit reached %s times", metric.Count(n.V))
	}
	if s := whole(i.Usage.MemoryStall); s > 0 {
		words += "; waited " + metric.Duration(s) + " for memory"
	}
	if i.AbsentExperts != "" {
		words += "; " + i.AbsentExperts
	}
	return words
}

// rereads reports whether memory is short: most of what was read had been evicted before, or there was memory pressure for
// most of the time, or more was read than the model has.
func (i *Interval) rereads(blocked int64) bool {
	u := &i.Usage
	again, stall := whole(u.Reread), whole(u.MemoryStall)
	return again > 0 && u.Read.OK() && 2*again >= whole(u.Read) || stall > 0 && 2*stall >= blocked || i.ModelBytes > 0 && i.ReadTotal > 1.25*i.ModelBytes
}

// stolen returns the ns that the hypervisor took, as far as the interval is part of the sample.
func (i *Interval) stolen() int64 {
	return int64(float64(whole(i.Stolen)) * metric.Share(float64(i.Wall), float64(i.OthersSpan)))
}

// clockLoss returns the ns that slow cores took longer.
func (i *Interval) clockLoss() int64 {
	if !i.Clock.OK() || i.Clock.V >= slowClock {
		return 0
	}
	return int64(float64(i.Span) * (1 - i.Clock.V))
}

// waits divides the time that the engine's threads waited for a core, in ns: among the engine's own threads if it has more
// than cores, other processes, and llmtop's other threads, in proportion to the CPU time that each took. Threads of a
// throttled group wait for its quota.
func (i *Interval) waits() (own, others, screen int64) {
	u := &i.Usage
	wait := float64(whole(u.Waiting))
	if wait <= 0 || i.Span <= 0 || whole(u.Throttled) > 0 {
		return 0, 0, 0
	}
	outside, other, most, ran := float64(whole(u.Outside)), 0., float64(whole(i.Others)), 0.
	if i.Others.OK() {
		other = most * metric.Share(float64(i.Span), float64(i.OthersSpan))
	}
	if i.oversubscribed() {
		ran = float64(whole(u.Running))
	}
	if !i.Others.OK() { // llmtop's threads may or may not have been in the way, others were for what is left
		mine := wait * metric.Share(ran, u.Cores.V*float64(i.Span))
		return int64(mine), int64(max(wait-mine-outside, 0)), 0
	}
	part := func(of, most float64) int64 { return int64(min(wait*metric.Share(of, ran+other+outside), most)) }
	return part(ran, ran), part(other, most), part(outside, outside)
}

// waited returns how long threads waited for a core, with the time of the samples: it can be longer than what was slow.
func (i *Interval) waited() string {
	return fmt.Sprintf("threads together waited %s for a core in %s", duration(i.Usage.Waiting), metric.Duration(i.Span))
}

// oversubscribed reports whether the engine has more threads than cores.
func (i *Interval) oversubscribed() bool {
	threads := i.Threads
	if threads == 0 && i.Usage.Threads.OK() {
		threads = i.Usage.Threads.V
	}
	return i.Usage.Cores.OK() && threads > max(i.Usage.Cores.V, 1)
}

// crowded returns the part of Span in which threads of the engine had no core because it has more threads than cores,
// and keeps the cores busy. The system does not see the wait if the engine's own scheduler divides the cores.
func (i *Interval) crowded() int64 {
	cores := i.Usage.Cores.V
	if i.Threads == 0 || !i.oversubscribed() || whole(i.Usage.Throttled) > 0 || float64(whole(i.Usage.Running)) < busyCores*cores*float64(i.Span) {
		return 0
	}
	return int64(float64(i.Span) * (1 - cores/i.Threads))
}

// limit returns what limits passes that are not limited by memory, as the engine's threads show it: "limited by compute, …".
func (i *Interval) limit() string {
	if i == nil || i.Span == 0 || !i.Usage.Running.OK() {
		return "what limits it is not measured"
	}
	threads := i.Threads
	if threads == 0 {
		threads = i.Usage.Threads.V
	}
	if c := i.Usage.Cores; c.OK() {
		threads = min(threads, c.V)
	}
	ran := metric.Share(i.Usage.Running.V, max(threads, 1)*float64(i.Span))
	words := fmt.Sprintf("its threads ran %s of the time", metric.Percent(ran))
	switch storage := metric.Share(float64(i.storage()), float64(i.Span)); {
	case storage >= LostShare:
		return fmt.Sprintf("limited by the disk, which took %s of the time", metric.Percent(storage))
	case ran < busyCores:
		return "limited by threads that wait: " + words
	}
	return "limited by compute, or by threads that spin: " + words
}

// busyCores is the share of the time of its cores that an engine uses to keep them busy.
const busyCores = 0.7
