package bench

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/spf13/cobra"

	"github.com/llmtop/llmtop/cmd/console"
	"github.com/llmtop/llmtop/cmd/exit"
	"github.com/llmtop/llmtop/cmd/local"
	"github.com/llmtop/llmtop/profiler/capacity"
	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/profiler/report"
	"github.com/llmtop/llmtop/runtime/engine/workload"
)

// The workload of a search for the capacity.
const (
	capacityLength   = 128 // default prompt length, in tokens
	capacityParallel = 4   // default requests that the own engine decodes together
	idleRequests     = 4   // requests one at a time, from which the first rate follows
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
	if len(o.SLO) != 1 {
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
func (o *Benchmark) search(ctx context.Context, s *local.Engine, d *workload.Driver, sources []prompts, m *console.Progress) (*workload.Log, *capacity.Result, error) {
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
	result, err := capacity.Search(idle, o.requests, func(rate float64, requests int) (capacity.Run, error) {
		m.Line(fmt.Sprintf("run %d: %.3g requests/s, %s", x.runs+1, rate, metric.Plural(requests, "request")))
		return x.run(ctx, rate, requests)
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

// finished returns the requests of a run in the order of sending, nil for those without data.
func (x *search) finished(run *workload.Run) []*report.Request {
	built := report.Build(x.Meta(nil), x.engine.Store.Snapshot())
	byID := map[event.RequestID]*report.Request{}
	for i := range built.Requests {
		byID[built.Requests[i].ID] = &built.Requests[i]
	}
	out := make([]*report.Request, len(run.Requests))
	for i, id := range run.Requests {
		out[i] = byID[id]
	}
	return out
}

// idle returns the mean time of a request without others, in s.
func (x *search) idle(ctx context.Context) (float64, error) {
	p, err := x.drive(ctx, nil, []int{1}, idleRequests)
	if err != nil {
		return 0, err
	}
	total, n := 0.0, 0.0
	for _, q := range x.finished(&p.Runs[0]) {
		if q == nil || q.State != event.StateFinished.String() {
			continue
		}
		if took, ok := q.E2EL.Positive(); ok {
			total, n = total+took, n+1
		}
	}
	switch {
	case n > 0:
		return total / n, nil
	case x.log.First != nil:
		return 0, local.PromptError(x.log.First)
	}
	return 0, fmt.Errorf("search capacity: no request was measured")
}

// run measures a rate. The start of the run is not counted, since the queue is empty then.
func (x *search) run(ctx context.Context, rate float64, requests int) (out capacity.Run, err error) {
	p, err := x.drive(ctx, []float64{rate}, nil, requests)
	if err != nil {
		return out, err
	}
	run := &p.Runs[0]
	ramp := capacity.Ramp(len(run.Requests))
	run.Requests, run.SendDelays, run.Held = run.Requests[ramp:], run.SendDelays[ramp:], run.Held[ramp:]
	counted := x.finished(run)
	if len(counted) == 0 {
		return out, x.log.First // all were refused before they were sent
	}
	for _, q := range counted {
		out.Met = append(out.Met, x.SLO[0].MetWithConnection(q))
		if q == nil || q.State != event.StateFinished.String() {
			out.Failed++
		}
	}
	if first, last := counted[0], counted[len(counted)-1]; first != nil && last != nil && last.Enqueued.V > first.Enqueued.V {
		out.Sent = float64(len(counted)-1) / (last.Enqueued.V - first.Enqueued.V)
		run.Start = x.engine.Store.Snapshot().Started + event.Time(first.Enqueued.V*1e9)
	}
	out.Late = points(&workload.Log{Points: []workload.PointLog{*p}}, 0)[0].SentLate()
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
