package verdict

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/llmtop/llmtop/profiler/event"
)

func ns(millis float64) event.Reading { return event.MeasuredValue(millis * float64(milli)) }

// TestExplain plants each cause of a stall that lost 20 ms, and its near miss: half of the lost time is explained, or not
// quite.
func TestExplain(t *testing.T) {
	two := func(i *Interval) { i.Usage.Threads, i.Usage.Cores = event.MeasuredValue(2), event.MeasuredValue(2) }
	waited := func(ms float64) func(*Interval) {
		return func(i *Interval) { two(i); i.Usage.Running, i.Usage.Waiting = ns(30), ns(ms) }
	}
	read := func(i *Interval, busy float64) {
		two(i)
		i.Usage.Running, i.Usage.Waiting, i.Usage.Faults, i.Usage.Read = ns(busy), ns(0), event.MeasuredValue(8), event.MeasuredValue(1e6)
	}
	gpu := func(set func(*GPUTime)) func(*Interval) {
		return func(i *Interval) {
			i.Whole, i.GPU.Span = true, 1000*milli
			set(&i.GPU)
		}
	}
	for _, c := range []struct {
		cause      Cause
		hit, below func(*Interval)
	}{
		{Stopped, func(i *Interval) { i.Usage.Stopped = ns(10) }, func(i *Interval) { i.Usage.Stopped = ns(9.9) }},
		{GC, func(i *Interval) { i.Usage.GCPause = ns(10) }, func(i *Interval) { i.Usage.GCPause = ns(9.9) }},
		{CPUQuota, func(i *Interval) { waited(12)(i); i.Usage.Throttled = ns(1) }, func(i *Interval) { waited(9)(i); i.Usage.Throttled = ns(9.9) }},
		{DiskReads, func(i *Interval) { read(i, 60) }, func(i *Interval) { read(i, 60.2) }},
		{DiskReads, func(i *Interval) { read(i, 70); i.Usage.Blocked = ns(10) }, func(i *Interval) { read(i, 0); i.Usage.Faults = event.MeasuredValue(0) }},
		{ // the kernel accounts half of the idle time, or not quite
			MemoryLimit,
			func(i *Interval) {
				read(i, 40)
				i.ModelBytes, i.ReadTotal, i.Usage.Blocked, i.Usage.MemoryStall = 100, 126, ns(6), ns(4)
			},
			func(i *Interval) {
				read(i, 40)
				i.ModelBytes, i.ReadTotal, i.Usage.Blocked, i.Usage.MemoryStall = 100, 126, ns(6), ns(3.9)
			},
		},
		{
			MemoryLimit,
			func(i *Interval) { read(i, 60); i.ModelBytes, i.ReadTotal = 100, 126 },
			func(i *Interval) { read(i, 60.2); i.ModelBytes, i.ReadTotal = 100, 126 },
		},
		{MemoryLimit, func(i *Interval) { read(i, 60); i.Usage.MemoryStall = ns(5) }, func(i *Interval) { i.Usage.MemoryStall = ns(20) }},
		{ // a limit that was set a moment ago: what was read had been evicted
			MemoryLimit,
			func(i *Interval) {
				read(i, 40)
				i.ModelBytes, i.Usage.Blocked, i.Usage.Reread = 1e9, ns(12), event.MeasuredValue(5e5)
			},
			func(i *Interval) {
				read(i, 62)
				i.ModelBytes, i.Usage.Blocked, i.Usage.Reread = 1e9, ns(9), event.MeasuredValue(5e5)
			},
		},
		{ // most of it had not
			DiskReads,
			func(i *Interval) {
				read(i, 40)
				i.ModelBytes, i.Usage.Blocked, i.Usage.Reread = 1e9, ns(12), event.MeasuredValue(4.9e5)
			},
			func(i *Interval) {
				read(i, 62)
				i.ModelBytes, i.Usage.Blocked, i.Usage.Reread = 1e9, ns(9), event.MeasuredValue(4.9e5)
			},
		},
		{ // pressure while the process read nothing is that of others
			MemoryLimit,
			func(i *Interval) {
				read(i, 0)
				i.Usage.Blocked, i.Usage.MemoryStall, i.Usage.Faults = ns(20), ns(20), ns(0)
			},
			func(i *Interval) {
				read(i, 0)
				i.Usage.Blocked, i.Usage.MemoryStall, i.Usage.Faults, i.Usage.Read = ns(20), ns(20), ns(0), ns(0)
			},
		},
		{ThrottledClock, func(i *Interval) { i.Clock = event.DerivedValue(.49) }, func(i *Interval) { i.Clock = event.DerivedValue(.5) }},
		{OwnThreads, func(i *Interval) { waited(10)(i); i.Threads, i.Others, i.OthersSpan = 3, ns(0), 40*milli }, func(i *Interval) { waited(9.9)(i); i.Threads = 3 }},
		{OwnThreads, func(i *Interval) { two(i); i.Threads, i.Usage.Running = 3, ns(57) }, func(i *Interval) { two(i); i.Threads, i.Usage.Running = 3, ns(55) }},
		{OtherProcesses, waited(10), waited(9.9)},
		{ // the engine has more threads than cores, but these hardly ran
			OtherProcesses,
			func(i *Interval) {
				waited(60)(i)
				i.Threads, i.Usage.Running, i.Others, i.OthersSpan = 5, ns(6), ns(74), 40*milli
			},
			func(i *Interval) {
				waited(9.9)(i)
				i.Threads, i.Usage.Running, i.Others, i.OthersSpan = 5, ns(6), ns(74), 40*milli
			},
		},
		{
			OtherProcesses,
			func(i *Interval) { waited(20)(i); i.Others, i.OthersSpan = ns(10), 40*milli },
			func(i *Interval) { waited(20)(i); i.Others, i.OthersSpan = ns(9.9), 40*milli },
		},
		{
			Screen,
			func(i *Interval) { waited(10)(i); i.Usage.Outside, i.Others, i.OthersSpan = ns(15), ns(0), 40*milli },
			func(i *Interval) { waited(9.9)(i); i.Usage.Outside, i.Others, i.OthersSpan = ns(15), ns(0), 40*milli },
		},
		{ // until it is known what other processes did, llmtop's threads may not be blamed
			Screen,
			func(i *Interval) { waited(20)(i); i.Usage.Outside, i.Others, i.OthersSpan = ns(20), ns(0), 40*milli },
			func(i *Interval) { waited(20)(i); i.Usage.Outside = ns(20) },
		},
		{
			Hypervisor,
			func(i *Interval) { i.Stolen, i.OthersSpan = ns(20), 40*milli },
			func(i *Interval) { i.Stolen, i.OthersSpan = ns(19.9), 40*milli },
		},
		{GPUHeat, gpu(func(g *GPUTime) { g.Hot = 500 * milli }), gpu(func(g *GPUTime) { g.Hot = 499 * milli })},
		{GPUPower, gpu(func(g *GPUTime) { g.Capped = 500 * milli }), gpu(func(g *GPUTime) { g.Capped = 499 * milli })},
		{GPUOthers, gpu(func(g *GPUTime) { g.Others = 500 * milli }), gpu(func(g *GPUTime) { g.Others = 499 * milli })},
		{LaunchGaps, gpu(func(g *GPUTime) { g.Gaps = 500 * milli }), gpu(func(g *GPUTime) { g.Gaps = 499 * milli })},
		{
			GPUMemory,
			gpu(func(g *GPUTime) { g.DRAM, g.Measured = 600*milli, true }),
			gpu(func(g *GPUTime) { g.DRAM, g.Measured = 599*milli, true; g.Reads, g.Bandwidth = 3e12, 3.35e12 }),
		},
		{ // computed
			GPUMemory,
			gpu(func(g *GPUTime) { g.Reads, g.Bandwidth = 2.1e12, 3.35e12 }),
			gpu(func(g *GPUTime) { g.Reads, g.Bandwidth = 4e12, 3.35e12 }),
		},
		{Copies, gpu(func(g *GPUTime) { g.Copies = 500 * milli }), gpu(func(g *GPUTime) { g.Copies = 499 * milli })},
		{ // what the GPU waits for is the experts
			Copies,
			gpu(func(g *GPUTime) { g.Copies, g.Gaps, g.HostExperts = 50*milli, 450*milli, true }),
			gpu(func(g *GPUTime) { g.Gaps, g.HostExperts = 900*milli, true }),
		},
		{ // a stall in a sample of a second
			GPUPower,
			func(i *Interval) { i.GPU = GPUTime{Span: 1000 * milli, Capped: 1000 * milli} },
			func(i *Interval) { i.GPU = GPUTime{Span: 1000 * milli, Capped: 900 * milli} },
		},
		{PromptOfOther, func(i *Interval) { i.Prompt = 10 * milli }, func(i *Interval) { i.Prompt = 10*milli - 1 }},
		{Pacing, func(i *Interval) { i.Paced, i.Queued = 10*milli, 9*milli }, func(i *Interval) { i.Paced, i.Queued = 10*milli-1, 0 }},
		{Queue, func(i *Interval) { i.Queued = 10 * milli }, func(i *Interval) { i.Queued = 10*milli - 1 }},
		{OwnPrompt, func(i *Interval) { i.OwnPrompt = 10 * milli }, func(i *Interval) { i.OwnPrompt = 10*milli - 1 }},
		{ModelLoad, func(i *Interval) { i.Load = 10 * milli }, func(i *Interval) { i.Load = 10*milli - 1 }},
		{MemoryBandwidth, func(i *Interval) { i.Bandwidth = event.DerivedValue(.6) }, func(i *Interval) { i.Bandwidth = event.DerivedValue(.59) }},
	} {
		i := Interval{Lost: 20 * milli, Wall: 20 * milli, Span: 40 * milli}
		miss := i
		c.hit(&i)
		c.below(&miss)
		x := Explain(&i)
		if x.Cause != c.cause || x.Evidence == "" || x.Explains < 10*milli || x.Explains > x.Lost {
			t.Errorf("%v: %+v", c.cause, x)
		}
		if x := Explain(&miss); x.Cause != Unknown || x.Explains != 0 || x.Evidence != "" {
			t.Errorf("nearly %v: %+v", c.cause, x)
		}
		if i.Coarse = true; c.cause < PromptOfOther && x.Explains < x.Lost && Explain(&i).Cause == c.cause {
			t.Errorf("%v: samples of whole seconds explain a part", c.cause)
		}
	}
}

// TestLossesAddUp checks with any evidence that causes take no more than was lost, that a named cause has evidence, and
// that losses can be taken back.
func TestLossesAddUp(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		var s Losses
		var lost int64
		for range rapid.IntRange(1, 8).Draw(r, "n") {
			size := rapid.Int64Range(-milli, 1<<40)
			i := Interval{
				Lost: size.Draw(r, "lost"), Wall: size.Draw(r, "wall"), Span: size.Draw(r, "span"), OthersSpan: size.Draw(r, "others span"),
				Prompt: size.Draw(r, "prompt"), Queued: size.Draw(r, "queued"), Coarse: rapid.Bool().Draw(r, "coarse"),
				Threads: float64(rapid.IntRange(0, 9).Draw(r, "threads")), ModelBytes: rapid.Float64().Draw(r, "model"), ReadTotal: rapid.Float64().Draw(r, "read"),
			}
			for _, to := range []*event.Reading{&i.Others, &i.Stolen, &i.Clock, &i.Bandwidth} {
				*to = event.MeasuredValue(rapid.Float64().Draw(r, "reading"))
			}
			for f := range event.UsageFields {
				if rapid.Bool().Draw(r, "reported") {
					*event.UsageFields[f].At(&i.Usage) = event.MeasuredValue(rapid.Float64().Draw(r, "usage"))
				}
			}
			x := Explain(&i)
			if (x.Cause == Unknown) != (x.Evidence == "") || x.Explains < 0 || x.Explains > x.Lost {
				r.Fatalf("%+v of %+v", x, i)
			}
			if m := i.MeasuredLoss(); m > max(i.Span, 0) {
				r.Fatalf("%d ns of %d lost", m, i.Span)
			}
			before := s
			s.Add(&x, 1)
			back := s
			if back.Add(&x, -1); back != before {
				r.Fatalf("%+v after taking back %+v, want %+v", back, x, before)
			}
			lost += x.Lost
		}
		if s.Total() != lost {
			r.Fatalf("causes took %d ns of %d", s.Total(), lost)
		}
	})
}

// TestRankNeedsEffect checks that a cause below a tenth of the observed time, or of 100 ms, is not named.
func TestRankNeedsEffect(t *testing.T) {
	for _, c := range []struct {
		lost, observed int64
		named          int
	}{{100, 1000, 1}, {99, 990, 0}, {100, 1001, 0}} {
		s := Losses{Observed: c.observed * milli}
		for range 10 {
			s.Add(&Explanation{Cause: OtherProcesses, Lost: c.lost * milli / 10, Explains: c.lost * milli / 10}, 1)
		}
		if got := s.Rank(); len(got) != c.named {
			t.Errorf("%d of %d ms: %+v", c.lost, c.observed, got)
		}
	}
}

func TestCountsNameTheLargestLossFirst(t *testing.T) {
	var s Losses
	s.Add(&Explanation{Cause: MemoryLimit, Lost: 50e6, Explains: 48e6}, 1)
	s.Add(&Explanation{Cause: OtherProcesses, Lost: 240e6, Explains: 240e6}, 2)
	if got, want := s.counts(), "other processes 480 ms (2) · memory limit 48.0 ms (1) · unknown 2.00 ms"; got != want {
		t.Errorf("counts are %q, want %q", got, want)
	}
}

// Samples are longer than a gap: the evidence says how long they are, and gives other processes in cores.
func TestOtherProcessesAreEvidencedInCores(t *testing.T) {
	i := Interval{Span: 51e6, Others: event.MeasuredValue(1.64e9), OthersSpan: 1e9}
	i.Usage.Waiting = event.MeasuredValue(31.5e6)
	if got, want := Causes[OtherProcesses].evidence(&i), "threads together waited 31.5 ms for a core in 51.0 ms; other processes used 1.64 cores"; got != want {
		t.Errorf("evidence is %q, want %q", got, want)
	}
}
