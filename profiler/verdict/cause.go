package verdict

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
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
	PromptOfOther
	Pacing
	Queue
	OwnPrompt
	ModelLoad
	MemoryBandwidth
	NumCauses
)

// CauseRow is all that is known of a cause: the row of the table that stalls, verdicts, reports, alerts and
// docs/causes.md share.
type CauseRow struct {
	Key      string // in reports and alerts
	Text     string // follows the lost time: "a stall of 30 ms: …"
	Remedy   string
	Supports string // the evidence, in docs/causes.md
	Excludes string // what rules it out, in docs/causes.md

	explains func(*Interval, *Limits) int64 // ns of the interval that the cause accounts for; 0: excluded
	evidence func(*Interval) string         // the numbers that say so
}

// Causes is the table of causes.
var Causes = [NumCauses]CauseRow{
	Unknown: {
		Key: "unknown", Text: "unknown cause",
		Supports: "no other cause explains half of the lost time", explains: func(*Interval, *Limits) int64 { return 0 },
	},
	Stopped: {
		Key: "stopped", Text: "the process was stopped", Remedy: "find what sends SIGSTOP: a debugger, a job control shell, a freezer",
		Supports: "time in state T, or the sampler was held up while no thread ran", Excludes: "the process was running",
		explains: func(i *Interval, _ *Limits) int64 { return whole(i.Usage.Stopped) },
		evidence: func(i *Interval) string { return "stopped for " + duration(i.Usage.Stopped) },
	},
	GC: {
		Key: "gc", Text: "llmtop's garbage collection", Remedy: "run the engine in its own process (--isolated), or set GOGC=400",
		Supports: "stop-the-world pauses", Excludes: "the engine runs in another process",
		explains: func(i *Interval, _ *Limits) int64 { return whole(i.Usage.GCPause) },
		evidence: func(i *Interval) string { return "the collector stopped the engine for " + duration(i.Usage.GCPause) },
	},
	CPUQuota: {
		Key: "cpu_quota", Text: "held at the CPU quota of its control group", Remedy: "raise the CPU quota, or give the engine as many threads as the quota has cores",
		Supports: "throttled time of the control group; with it, time waiting for a core", Excludes: "the group was not throttled",
		explains: func(i *Interval, _ *Limits) int64 {
			if t := whole(i.Usage.Throttled); t > 0 {
				return max(t, whole(i.Usage.Waiting)) // the group counts it when the quota is renewed
			}
			return 0
		},
		evidence: func(i *Interval) string {
			return fmt.Sprintf("throttled for %s, threads waited %s, at %s", duration(i.Usage.Throttled), duration(i.Usage.Waiting),
				metric.Reading(i.Usage.Cores, coreCount))
		},
	},
	MemoryLimit: {
		Key: "memory_limit", Text: "too little memory: the same pages of the model are read again",
		Remedy:   "raise the memory limit above the model's size, or use a smaller quantisation",
		Supports: "waiting for storage, with memory pressure for most of it, or with more bytes read than the model has",
		Excludes: "each page is read once, or the process read nothing", evidence: (*Interval).readEvidence,
		explains: func(i *Interval, _ *Limits) int64 {
			if ns := i.storage(); ns > 0 && i.rereads(ns) {
				return max(ns, whole(i.Usage.MemoryStall))
			}
			return 0
		},
	},
	DiskReads: {
		Key: "disk_reads", Text: "waiting for reads of the model from disk", Remedy: "repeat the run when the file is in the page cache, or use a faster disk",
		Supports: "time blocked on storage; time in which the threads neither ran nor waited for a core, if half of it is accounted as pressure",
		Excludes: "no time blocked and no major fault, the process read nothing, or threads ran all the time", evidence: (*Interval).readEvidence,
		explains: func(i *Interval, _ *Limits) int64 {
			if ns := i.storage(); !i.rereads(ns) {
				return ns
			}
			return 0
		},
	},
	ThrottledClock: {
		Key: "throttled_clock", Text: "the cores ran below their frequency", Remedy: "check cooling, power limits and the CPU governor",
		Supports: "frequency of the busy cores / highest frequency; thermal throttling",
		Excludes: "the frequency is not reported, or within its limit", explains: (*Interval).clockLoss,
		evidence: func(i *Interval) string {
			return fmt.Sprintf("busy cores at %s of their highest frequency", metric.Percent(i.Clock.V))
		},
	},
	OwnThreads: {
		Key: "own_threads", Text: "more threads than cores: the engine's threads waited for each other",
		Remedy:   "set --threads to the number of cores",
		Supports: "time waiting for a core; the part of it that goes to the engine's own threads. Or the engine is set to more threads than cores and keeps these busy",
		Excludes: "no more threads than cores",
		explains: func(i *Interval, _ *Limits) int64 { own, _, _ := i.waits(); return max(own, i.crowded()) },
		evidence: func(i *Interval) string {
			return fmt.Sprintf("%.0f threads on %s ran %s and waited %s for a core", max(i.Usage.Threads.V, i.Threads),
				coreCount(i.Usage.Cores.V), duration(i.Usage.Running), duration(i.Usage.Waiting))
		},
	},
	OtherProcesses: {
		Key: "other_processes", Text: "other processes used the cores", Remedy: "stop other programs on these cores, or reserve cores for the engine (taskset)",
		Supports: "time waiting for a core; CPU time of other processes in the same sample",
		Excludes: "other processes used less CPU time than that, or the control group was throttled",
		explains: func(i *Interval, _ *Limits) int64 { _, others, _ := i.waits(); return others },
		evidence: func(i *Interval) string {
			words := fmt.Sprintf("threads waited %s for a core", duration(i.Usage.Waiting))
			if i.Others.OK() && i.OthersSpan > 0 {
				words += "; other processes used " + coreCount(i.Others.V/float64(i.OthersSpan)) // in a longer time
			}
			return words
		},
	},
	Screen: {
		Key: "llmtop", Text: "llmtop's other threads used the cores", Remedy: "use fewer --threads than cores, or a lower --fps",
		Supports: "time waiting for a core; CPU time of llmtop without the engine's threads", Excludes: "the engine runs in another process",
		explains: func(i *Interval, _ *Limits) int64 { _, _, screen := i.waits(); return screen },
		evidence: func(i *Interval) string {
			return fmt.Sprintf("threads waited %s for a core; llmtop's other threads ran %s", duration(i.Usage.Waiting), duration(i.Usage.Outside))
		},
	},
	Hypervisor: {
		Key: "hypervisor", Text: "the hypervisor gave the cores to other machines", Remedy: "use a machine with dedicated cores",
		Supports: "stolen CPU time, mean over the cores, in proportion to the time that its sample covers", Excludes: "no time was stolen",
		explains: func(i *Interval, _ *Limits) int64 { return i.stolen() },
		evidence: func(i *Interval) string {
			return fmt.Sprintf("%s of %s stolen, mean over the cores", duration(i.Stolen), metric.Duration(i.OthersSpan))
		},
	},
	PromptOfOther: {
		Key: "prompt_of_other", Text: "while a prompt was processed", Remedy: smallerChunks + ", shorter prompts, or another replica for long ones",
		Supports: "forward passes with prompt tokens in the gap; without forward passes, a request that waited for its first token", Excludes: "no such pass or request",
		explains: func(i *Interval, _ *Limits) int64 { return i.Prompt },
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
		Supports: "paced time of running requests during the wait", Excludes: "no request is paced",
		explains: func(i *Interval, _ *Limits) int64 { return i.Paced },
		evidence: func(i *Interval) string {
			return fmt.Sprintf("running requests were paced for %s of the wait", metric.Duration(i.Paced))
		},
	},
	Queue: {
		Key: "queue", Text: "waiting for a slot", Remedy: "more slots (--parallel), or fewer requests at a time",
		Supports: "time in the queue, without pacing", Excludes: "the engine does not report when a request leaves the queue",
		explains: func(i *Interval, _ *Limits) int64 { return i.Queued },
		evidence: func(i *Interval) string { return fmt.Sprintf("%s in the queue", metric.Duration(i.Queued)) },
	},
	OwnPrompt: {
		Key: "own_prompt", Text: "its own prompt", Remedy: "a shorter prompt, a shared prefix, or a smaller quantisation",
		Supports: "prefill time", Excludes: "a cause above explains as much",
		explains: func(i *Interval, _ *Limits) int64 { return i.OwnPrompt },
		evidence: func(i *Interval) string {
			return fmt.Sprintf("its prompt was processed for %s", metric.Duration(i.OwnPrompt))
		},
	},
	ModelLoad: {
		Key: "model_load", Text: "the model was loaded", Remedy: "keep the model loaded between requests",
		Supports: "time of the model load, of a cold request", Excludes: "a cause above explains as much",
		explains: func(i *Interval, _ *Limits) int64 { return i.Load },
		evidence: func(i *Interval) string { return "the load took " + metric.Duration(i.Load) },
	},
	MemoryBandwidth: {
		Key: "memory_bandwidth", Text: "the model needs the machine's memory bandwidth", Remedy: "a smaller quantisation, or more requests in a batch",
		Supports: "decode bandwidth / read bandwidth", Excludes: "below the limit, or a cause above explains as much",
		explains: func(i *Interval, l *Limits) int64 {
			if !i.Bandwidth.OK() || i.Bandwidth.V < l.MemoryBound {
				return 0
			}
			return int64(float64(i.Lost) * min(i.Bandwidth.V, 1))
		},
		evidence: func(i *Interval) string {
			return fmt.Sprintf("decode bandwidth is %s of the read bandwidth", metric.Percent(i.Bandwidth.V))
		},
	},
}

// String returns the key.
func (c Cause) String() string { return Causes[min(c, NumCauses-1)].Key }

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
func Explain(i *Interval, l *Limits) Explanation {
	out := Explanation{Lost: max(i.Lost, 0)}
	for c := Unknown + 1; c < NumCauses; c++ {
		if c >= OwnPrompt && out.Cause != Unknown { // those of the request's own work do not say why it was slow
			break
		}
		ns, enough := min(Causes[c].explains(i, l), out.Lost), l.Explains
		if c < PromptOfOther { // causes in the process and the machine
			ns = min(ns, i.Wall)
			if i.Coarse {
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
func (i *Interval) MeasuredLoss(l *Limits) int64 {
	u := &i.Usage
	wait := max(whole(u.Waiting), whole(u.Throttled))
	lost := i.storage() + whole(u.Stopped) + whole(u.GCPause) + i.clockLoss(l) + i.stolen()
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

// rereads reports whether memory is short: pressure for most of the time, or more was read than the model has.
func (i *Interval) rereads(blocked int64) bool {
	return i.ModelBytes > 0 && i.ReadTotal > 1.25*i.ModelBytes || whole(i.Usage.MemoryStall) > 0 && 2*whole(i.Usage.MemoryStall) >= blocked
}

// stolen returns the ns that the hypervisor took, as far as the interval is part of the sample.
func (i *Interval) stolen() int64 {
	return int64(float64(whole(i.Stolen)) * metric.Share(float64(i.Wall), float64(i.OthersSpan)))
}

// clockLoss returns the ns that slow cores took longer.
func (i *Interval) clockLoss(l *Limits) int64 {
	if !i.Clock.OK() || i.Clock.V >= l.SlowClock {
		return 0
	}
	return int64(float64(i.Span) * (1 - i.Clock.V))
}

// waits divides the time that the engine's threads waited for a core, in ns: among the engine's own threads, other
// processes, and llmtop's other threads, in proportion to the CPU time that each took or wanted. Threads of a throttled
// group wait for its quota.
func (i *Interval) waits() (own, others, screen int64) {
	u := &i.Usage
	wait := float64(whole(u.Waiting))
	if wait <= 0 || i.Span <= 0 || whole(u.Throttled) > 0 {
		return 0, 0, 0
	}
	outside, other, most := float64(whole(u.Outside)), 0., float64(whole(i.Others))
	if i.Others.OK() {
		other = most * metric.Share(float64(i.Span), float64(i.OthersSpan))
	}
	excess := 0. // what the engine's threads wanted above the cores
	if i.oversubscribed() {
		excess = max(wait+float64(whole(u.Running))-u.Cores.V*float64(i.Span), wait-other-outside, 0)
	}
	if !i.Others.OK() { // llmtop's threads may or may not have been in the way, others were for what is left
		return int64(min(wait, excess)), int64(max(wait-excess-outside, 0)), 0
	}
	part := func(of, most float64) int64 { return int64(min(wait*metric.Share(of, excess+other+outside), most)) }
	return part(excess, excess), part(other, most), part(outside, outside)
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
func (i *Interval) limit(l *Limits) string {
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
	case storage >= l.Lost:
		return fmt.Sprintf("limited by the disk, which took %s of the time", metric.Percent(storage))
	case ran < busyCores:
		return "limited by threads that wait: " + words
	}
	return "limited by compute, or by threads that spin: " + words
}

// busyCores is the share of the time of its cores that an engine uses to keep them busy.
const busyCores = 0.7

// Losses sums what was lost by cause, in ns and in stalls, slow seconds and slow requests.
type Losses struct {
	N        [NumCauses]uint64
	NS       [NumCauses]int64
	Observed int64 // ns of decoding, pacing and TTFT in which it was lost
}

// Add counts an explanation n times: -1 takes it back.
func (s *Losses) Add(e *Explanation, n int) {
	s.N[e.Cause] += uint64(n) // wraps around for -1, as intended
	s.NS[e.Cause] += int64(n) * e.Explains
	s.NS[Unknown] += int64(n) * (e.Lost - e.Explains)
}

// Merge adds the losses of o.
func (s *Losses) Merge(o *Losses) {
	for c := range NumCauses {
		s.N[c] += o.N[c]
		s.NS[c] = event.Add(s.NS[c], o.NS[c])
	}
	s.Observed = event.Add(s.Observed, o.Observed)
}

// Total returns the lost time in ns.
func (s *Losses) Total() (ns int64) {
	for _, n := range s.NS {
		ns = event.Add(ns, n)
	}
	return ns
}

// Share returns the share of the observed time that was lost to a cause; NotYet without observed time.
func (s *Losses) Share(c Cause) event.Reading { return s.ShareOf(s.NS[c]) }

// ShareOf returns ns as a share of the observed time; NotYet without observed time.
func (s *Losses) ShareOf(ns int64) event.Reading {
	if s.Observed <= 0 {
		return event.Absent(event.NotYet)
	}
	return event.DerivedValue(metric.Share(float64(ns), float64(s.Observed)))
}

// Loss is what one cause took, a row of a ranking.
type Loss struct {
	Cause    Cause
	N        uint64  // stalls, slow seconds and slow requests
	NS       int64   // lost ns
	Share    float64 // of the lost time
	Observed float64 // of the observed time
}

// Rank returns the significant losses, the largest first.
func (s *Losses) Rank(l *Limits) (out []Loss) {
	total := s.Total()
	for c := range NumCauses {
		share := s.Share(c)
		if !share.OK() || share.V < l.Lost || s.NS[c] < int64(l.LeastLoss) {
			continue
		}
		out = append(out, Loss{c, s.N[c], s.NS[c], metric.Share(float64(s.NS[c]), float64(total)), share.V})
	}
	slices.SortStableFunc(out, func(a, b Loss) int { return cmp.Compare(b.NS, a.NS) })
	return out
}

// largest returns the known cause that took most of the lost time; Unknown if no time has one.
func (s *Losses) largest() (top Cause) {
	for c, ns := Unknown+1, int64(0); c < NumCauses; c++ {
		if s.NS[c] > ns {
			top, ns = c, s.NS[c]
		}
	}
	return top
}

// counts lists the lost time by cause, the largest first, with the number of stalls and slow seconds if there are any:
// "other processes 3.20 s (12) · unknown 7.08 ms".
func (s *Losses) counts() string {
	var causes []Cause
	for c := range NumCauses {
		if s.NS[c] > 0 {
			causes = append(causes, c)
		}
	}
	slices.SortStableFunc(causes, func(a, b Cause) int { return cmp.Compare(s.NS[b], s.NS[a]) })
	words := make([]string, len(causes))
	for i, c := range causes {
		words[i] = strings.ReplaceAll(c.String(), "_", " ") + " " + metric.Duration(s.NS[c])
		if s.N[c] > 0 {
			words[i] += fmt.Sprintf(" (%d)", s.N[c])
		}
	}
	return strings.Join(words, " · ")
}

func plural(n uint64, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
