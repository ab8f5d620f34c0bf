package report

import (
	"strings"
	"testing"

	"github.com/llmtop/llmtop/profiler/event"
)

// swept returns a benchmark of three concurrencies, a rate and a cold point.
func swept() *Report {
	stats := func(p50, p99, mean, half float64, n int) *Statistics {
		return &Statistics{Count: n, Mean: Measured(mean), Low: Measured(mean - half), High: Measured(mean + half), P50: Measured(p50), P99: Measured(p99)}
	}
	point := func(name string, concurrency int, ttft, output, met float64) Point {
		return Point{
			Name: name, Concurrency: concurrency, TTFT: stats(ttft, ttft, ttft, 0, 10), Output: stats(output, output, output, output/100, 5),
			Compliance: Compliance{All: Measured(met)}, Runs: []Run{{}},
		}
	}
	one, two, four := point("32 tokens, 1 at a time", 1, 0.1, 100, 1), point("32 tokens, 2 at a time", 2, 0.12, 180, 0.97), point("32 tokens, 4 at a time", 4, 0.5, 300, 0.2)
	one.Bandwidth, one.Compute = Measured(83e9), Measured(1e9)
	two.Parts, two.ITL = Parts{{"queue", Measured(0.06)}, {"prompt", Measured(0.06)}}, stats(0.01, 0.05, 0.01, 0, 200)
	four.Output = stats(300, 300, 300, 60, 3)
	cold := Point{Name: "32 tokens, cold", Concurrency: 1, ColdTTFT: stats(0.5, 0.5, 0.5, 0, 3)}
	slow := point("32 tokens, 10/s", 0, 0.1, 50, 1)
	slow.Rate, slow.Finished, slow.E2EL = Measured(10), stats(4, 4, 4, 0, 5), stats(1, 1, 1, 0, 50)
	slow.Runs = []Run{{Requests: make([]event.RequestID, 50)}}
	r := &Report{Bench: &Bench{Targets: "ttft=200ms", Points: []Point{one, two, four, slow, cold}}, Placement: &Placement{
		Experts: 8, Picks: 100, Curve: []PlacementBudget{{Experts: 1}, {Experts: 2, Coverage: Measured(0.5), Even: Measured(0.25)}},
	}}
	r.Host.RunUsage.MemoryPeak, r.Host.RunUsage.MemoryShare = Measured(95e9), Measured(0.95)
	r.AddLimits(Limits{Threads: 2, Read: Measured(100e9), Weights: Measured(90e9), Compute: Measured(2e9)})
	return r
}

// TestAdvice checks that each recommendation is derived from its numbers and states them.
func TestAdvice(t *testing.T) {
	r := swept()
	r.Advise()
	var all strings.Builder
	for _, v := range r.Bench.Advice {
		all.WriteString(v.Topic + ": " + v.Text + " (" + v.Evidence + ") " + v.Try + "\n")
	}
	for _, want := range []string{
		"concurrency: 32 tokens: concurrency 2 generates 180 tokens/s, 1.80 times concurrency 1 (TTFT p50 120 ms vs. 100 ms",
		"targets: 32 tokens, 4 at a time: only 20 % of the requests met ttft=200ms",
		"queue: 32 tokens, 2 at a time: 50 % of TTFT is queue time (60.0 ms of 120 ms)",
		"token gaps: 32 tokens, 2 at a time: p99 of the gaps between tokens is 5.0 times the median",
		"spread: 32 tokens, 4 at a time: output tokens/s has a margin of error of ±20 % (300 ±60.0 tokens/s over 3 runs)",
		"rate: 32 tokens, 10/s: the engine does not keep up: it finishes 40 % of the rate (4.00 requests/s finished, 10.0 requested)",
		"cold start: 32 tokens: cold TTFT is 5.0 times the warm one (p50 500 ms vs. 100 ms)",
		"bound: 32 tokens, 1 at a time: memory-bound at 83 % of read bandwidth (83.0 GB/s of 100 GB/s)",
		"experts: 2 of 8 experts get 50 % of the routing (uniform baseline 25 %) (100 picks)",
		"memory: peak memory use was 95 %",
	} {
		if !strings.Contains(all.String(), want) {
			t.Errorf("%q is missing from\n%s", want, &all)
		}
	}
	if n := len(r.Bench.Advice); n != 10 {
		t.Errorf("%d recommendations:\n%s", n, &all)
	}
}

// TestQuietBenchmarkHasNoAdvice checks that an unremarkable benchmark has no recommendations.
func TestQuietBenchmarkHasNoAdvice(t *testing.T) {
	r := swept()
	r.Bench.Points, r.Placement = r.Bench.Points[:1], nil
	r.Host = Host{}
	r.Bench.Points[0].ReadShare = Number{}
	if r.Advise(); len(r.Bench.Advice) != 0 {
		t.Errorf("%+v", r.Bench.Advice)
	}
}

// TestLowestConcurrencyIsNotComparedWithItself checks what is advised if the lowest concurrency is the best one.
func TestLowestConcurrencyIsNotComparedWithItself(t *testing.T) {
	for name, c := range map[string]struct {
		output, met float64 // of concurrency 2
		want        string
	}{
		"no gain":        {97, 1, "32 tokens: higher concurrency does not help: concurrency 2 generates 97.0 tokens/s, 0.97 times concurrency 1"},
		"missed targets": {180, 0.5, "32 tokens: higher concurrency misses the targets: concurrency 2 generates 180 tokens/s, 1.80 times concurrency 1"},
	} {
		r := swept()
		r.Bench.Points = r.Bench.Points[:2]
		two := &r.Bench.Points[1]
		two.Output.Mean, two.Compliance.All = Measured(c.output), Measured(c.met)
		advice := adviseConcurrency(r)
		if len(advice) != 1 || advice[0].Text != c.want || !strings.HasPrefix(advice[0].Evidence, "TTFT p50 120 ms vs. 100 ms") || !strings.HasPrefix(advice[0].Try, "send 1 request at a time: ") {
			t.Errorf("%s: %+v, want %q", name, advice, c.want)
		}
		if two.Concurrency = 1; len(adviseConcurrency(r)) != 0 {
			t.Errorf("%s: advice on the only concurrency", name)
		}
	}
}

// TestAdviceOnAnswersInPieces checks that messages of several tokens, with gaps of 0 within, are not called stalls.
func TestAdviceOnAnswersInPieces(t *testing.T) {
	for _, p99 := range []float64{0, 0.1} {
		r := swept()
		p := &r.Bench.Points[0]
		p.ITL = &Statistics{Count: 200, P50: Measured(0), P99: Measured(p99)}
		for _, v := range advisePoint(r, p) {
			if v.Topic == "token gaps" {
				t.Errorf("p99 %v: %s", p99, v.Text)
			}
		}
	}
}

// TestAdviceOnRate checks that a short run whose random intervals were long is not blamed on the engine, nor are refusals,
// but that a growing queue is.
func TestAdviceOnRate(t *testing.T) {
	for name, c := range map[string]struct {
		span, duration float64 // of 20 requests at 10/s: until the last was planned, and until all had ended
		failed         int
		queued         float64 // s that the last request was late: its queue was full
		want           bool
	}{
		"long intervals": {span: 3, duration: 3.2},
		"refused":        {span: 2, duration: 2.2, failed: 10},
		"queue":          {span: 2, duration: 5, want: true},
		"full queue":     {span: 2, duration: 5, queued: 2.5, want: true},
	} {
		run := Run{Started: Measured(100), Duration: Measured(c.duration)}
		r := &Report{Bench: &Bench{Targets: "ttft=200ms"}}
		for i := range 20 {
			q := Request{ID: event.RequestID(i + 1), State: event.StateFinished.String(), Enqueued: Measured(100 + c.span*float64(i)/19)}
			if i < c.failed {
				q.State = event.StateFailed.String()
			}
			run.Requests, run.SendDelays, run.Held = append(run.Requests, q.ID), append(run.SendDelays, 0), append(run.Held, 0)
			if i == 19 {
				q.Enqueued.V, run.SendDelays[i], run.Held[i] = q.Enqueued.V+c.queued, c.queued, c.queued
			}
			r.Requests = append(r.Requests, q)
		}
		finished := float64(20-c.failed) / c.duration
		p := &Point{
			Name: "10/s", Rate: Measured(10), Runs: []Run{run}, TTFT: &Statistics{}, E2EL: &Statistics{Mean: Measured(0.2)}, Finished: &Statistics{Mean: Measured(finished)},
			Compliance: Compliance{All: Measured(1 - float64(c.failed)/20)},
		}
		got := false
		for _, v := range advisePoint(r, p) {
			got = got || v.Topic == "rate"
			if v.Topic == "targets" && (v.Text != "10/s: only 50 % of the requests met ttft=200ms: 50 % failed" || v.Try != "") {
				t.Errorf("%s: %+v", name, v)
			}
		}
		if got != c.want {
			t.Errorf("%s: the engine does not keep up: %v, want %v", name, got, c.want)
		}
	}
}
