package bench

import (
	"context"
	"fmt"

	"github.com/llmtop/llmtop/cmd/console"
	"github.com/llmtop/llmtop/cmd/exit"
	"github.com/llmtop/llmtop/cmd/local"
	"github.com/llmtop/llmtop/cmd/session"
	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/report"
	"github.com/llmtop/llmtop/runtime/engine/workload"
)

// measureCold reloads the model o.cold times for one request each, and adds these requests to the report of the main
// session as a point.
func (o *Benchmark) measureCold(ctx context.Context, main *local.Engine, source prompts, built *report.Report, m *console.Progress) error {
	point := report.Point{Name: source.name + ", cold", Concurrency: 1, Runs: []report.Run{}}
	var next event.RequestID
	for _, q := range built.Requests {
		next = max(next, q.ID)
	}
	for i := range o.cold {
		m.Line(fmt.Sprintf("cold request %d of %d", i+1, o.cold))
		q, run, err := o.coldRequest(ctx, main, source)
		if err != nil {
			built.AddPoint(point, o.targets())
			return exit.InterruptCause(ctx, err)
		}
		next++
		q.ID, run.Requests = next, []event.RequestID{next}
		built.Bench.Cold = append(built.Bench.Cold, q)
		point.Runs = append(point.Runs, run)
	}
	m.End()
	built.AddPoint(point, o.targets())
	return nil
}

// coldRequest loads the model, runs one request, and returns it with the run of both. Their times count from the start of
// the main session.
func (o *Benchmark) coldRequest(ctx context.Context, main *local.Engine, source prompts) (q report.Request, run report.Run, err error) {
	once := *o
	once.requests, once.repeats, once.warmup = 1, 1, 0
	once.Outputs, once.Listen, once.Shown = session.Outputs{}, session.ListenFlags{}, false // only for the main run
	s, err := once.Open(ctx, true)
	if err != nil {
		return q, run, err
	}
	began := s.Clock.Now()
	offset := main.Clock.Now() - began - main.Store.Snapshot().Started
	err = s.Run(ctx, func(ctx context.Context) error {
		load, err := once.workload(ctx, s.Scheduler, []prompts{source})
		if err != nil {
			return err
		}
		driver := workload.Driver{Runner: s.Scheduler, Clock: s.Clock}
		load.Points = load.Points[:1]
		log, err := driver.Run(ctx, load)
		if err == nil {
			err = log.First
		}
		return err
	})
	if err != nil {
		return q, run, err
	}
	took, snapshot := s.Clock.Now()-began, s.Store.Snapshot()
	requests := report.Build(o.Meta(nil), snapshot).Requests
	if len(requests) != 1 {
		return q, run, fmt.Errorf("measure cold request: got %d requests, want 1", len(requests))
	}
	q = requests[0]
	q.Enqueued = report.Measured(q.Enqueued.V + float64(snapshot.Started+offset)/1e9)
	return q, report.Run{Started: report.Measured(float64(began+offset) / 1e9), Duration: report.Measured(float64(took) / 1e9)}, nil
}
