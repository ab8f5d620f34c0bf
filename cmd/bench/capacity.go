package bench

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/llmtop/llmtop/cmd/exit"
	"github.com/llmtop/llmtop/cmd/local"
	"github.com/llmtop/llmtop/profiler/capacity"
	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/report"
	"github.com/llmtop/llmtop/runtime/engine/workload"
)

// The workload of a search for the capacity.
const (
	capacityLength   = 128             // default prompt length, in tokens
	capacityParallel = 4               // default requests that the own engine decodes together
	idleRequests     = 4               // requests one at a time, from which the first rate follows
	rampShare        = 0.2             // of the requests of a run: its start, which is not counted
	runTime          = 5 * time.Second // shortest run, so that a queue that grows shows
	maxRun           = 5000            // requests of a run
	lateSends        = 0.1             // of the time between two requests, at the median: the rate was not that of the run
)

// checkCapacity checks the flags that --find-capacity needs or excludes, and sets the defaults of others.
func (o *Benchmark) checkCapacity(c *cobra.Command) error {
	if !o.findCapacity {
		return nil
	}
	for _, name := range []string{"rate", "concurrency", "repeats", "cold"} {
		if c.Flags().Changed(name) {
			return exit.Usagef("--find-capacity chooses the rates and the runs by itself: remove --%s", name)
		}
	}
	if len(o.slo) != 1 {
		return exit.Usagef("--find-capacity needs one --slo, for example --slo ttft=500ms,tpot=50ms")
	}
	if !c.Flags().Changed("prompt-tokens") {
		o.lengths = []int{capacityLength}
	}
	if !c.Flags().Changed("parallel") {
		o.Parallel = capacityParallel
	}
	return nil
}

// search is a search for the capacity of an engine.
type search struct {
	*Benchmark
	engine  *local.Engine
	driver  *workload.Driver
	sources []prompts
	log     workload.Log // of all runs
	runs    int
}

// search searches the highest rate at which the engine meets the targets. It returns the log of all runs.
func (o *Benchmark) search(ctx context.Context, s *local.Engine, d *workload.Driver, sources []prompts, m *meter) (*workload.Log, *capacity.Result, error) {
	if len(sources) != 1 {
		return nil, nil, exit.Usagef("--find-capacity measures one kind of prompt: give one --prompt-tokens, --prompts, --suite or -p")
	}
	x := search{Benchmark: o, engine: s, driver: d, sources: sources}
	salt := o.target.salt
	defer func() { o.target.salt = salt }()
	idle, err := x.idle(ctx)
	if err != nil {
		return &x.log, nil, err
	}
	result, err := capacity.Search(1/(2*idle), func(rate float64) (capacity.Run, error) {
		m.line(fmt.Sprintf("run %d: %.3g requests/s", x.runs+1, rate))
		return x.run(ctx, rate)
	})
	return &x.log, &result, err
}

// drive runs a point once and returns the point of the log.
func (x *search) drive(ctx context.Context, rates []float64, concurrency []int, requests int) (*workload.PointLog, error) {
	once := *x.Benchmark
	once.rates, once.concurrency, once.requests, once.repeats = rates, concurrency, requests, 1
	if x.runs > 0 {
		once.warmup = 0
	}
	load, err := once.workload(ctx, x.engine.Scheduler, x.sources)
	if err != nil {
		return nil, err
	}
	load.Seed += uint64(x.runs) // other arrivals in each run
	x.runs++
	x.target.salt++ // and other prompts
	log, err := x.driver.Run(ctx, load)
	if log == nil {
		return nil, err
	}
	x.log.Failed += log.Failed
	if x.log.First == nil {
		x.log.First = log.First
	}
	if err == nil && len(log.Points[0].Runs) == 0 {
		err = fmt.Errorf("search capacity: no request of a run was sent")
	}
	return &log.Points[0], err
}

// idle returns the mean time of a request without others, in s.
func (x *search) idle(ctx context.Context) (float64, error) {
	p, err := x.drive(ctx, nil, []int{1}, idleRequests)
	if err != nil {
		return 0, err
	}
	run := &p.Runs[0]
	if took := float64(run.End-run.Start) / 1e9 / float64(max(len(run.Requests), 1)); took > 0 && len(run.Requests) > 0 {
		return took, nil
	}
	if x.log.First != nil {
		return 0, local.PromptError(x.log.First)
	}
	return 0, fmt.Errorf("search capacity: no request was measured")
}

// run measures a rate. The start of the run is not counted, since the queue is empty then.
func (x *search) run(ctx context.Context, rate float64) (out capacity.Run, err error) {
	n := x.requests
	if n == 0 {
		counted := max(capacity.MinRequests, int(math.Ceil(rate*runTime.Seconds())))
		n = min(int(math.Ceil(float64(counted)/(1-rampShare))), maxRun)
	}
	p, err := x.drive(ctx, []float64{rate}, nil, n)
	if err != nil {
		return out, err
	}
	run := &p.Runs[0]
	ramp := int(rampShare * float64(len(run.Requests)))
	run.Requests = run.Requests[ramp:]
	run.SendDelays = run.SendDelays[min(ramp, len(run.SendDelays)):]
	built := report.Build(x.Meta(nil), x.engine.Store.Snapshot(), x.engine.Collector)
	var first, last float64
	for _, q := range built.Requests {
		if i := slices.Index(run.Requests, q.ID); i == 0 {
			first = q.Enqueued.V
		} else if i == len(run.Requests)-1 {
			last = q.Enqueued.V
		}
	}
	if last > first {
		out.Sent = float64(len(run.Requests)-1) / (last - first)
		run.Start = x.engine.Store.Snapshot().Started + event.Time(first*1e9)
	}
	built.AddBench(points(&workload.Log{Points: []workload.PointLog{*p}}, 0), 0, x.slo)
	out.Requests = len(run.Requests)
	if all := built.Bench.Points[0].Compliance.All; all.OK() {
		out.Met = int(math.Round(all.V * float64(out.Requests)))
	}
	slices.Sort(run.SendDelays)
	late := len(run.SendDelays) > 0 && run.SendDelays[len(run.SendDelays)/2].Seconds() > lateSends/rate
	// A full queue of an engine of llmtop delays requests as well: then it is the engine that does not keep up.
	out.Late = late && (x.target.isSet() || float64(out.Met) >= capacity.Required*float64(out.Requests))
	x.merge(p)
	return out, nil
}

// merge adds a run to the log, to the point of its rate if there is one.
func (x *search) merge(p *workload.PointLog) {
	for i := range x.log.Points {
		if q := &x.log.Points[i]; q.Point.Rate == p.Point.Rate {
			q.Runs = append(q.Runs, p.Runs...)
			return
		}
	}
	x.log.Points = append(x.log.Points, *p)
	slices.SortFunc(x.log.Points, func(a, b workload.PointLog) int { return int(math.Copysign(1, a.Point.Rate-b.Point.Rate)) })
}
