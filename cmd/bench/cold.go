package bench

import (
	"context"
	"fmt"

	"github.com/llmtop/llmtop/cmd/exit"
	"github.com/llmtop/llmtop/cmd/session"
	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/report"
	"github.com/llmtop/llmtop/runtime/engine/workload"
)

// measureCold reloads the model o.cold times for one request each, and adds these requests to the report as a point.
func (o *Benchmark) measureCold(ctx context.Context, source prompts, built *report.Report, m *meter) error {
	point := report.Point{Name: source.name + ", cold", Concurrency: 1, Runs: []report.Run{}}
	var next event.RequestID
	for _, q := range built.Requests {
		next = max(next, q.ID)
	}
	for i := range o.cold {
		m.line(fmt.Sprintf("cold request %d of %d", i+1, o.cold))
		q, took, err := o.coldRequest(ctx, source)
		if err != nil {
			built.AddPoint(point, o.targets())
			return exit.InterruptCause(ctx, err)
		}
		next++
		q.ID = next
		built.Requests = append(built.Requests, q)
		point.Runs = append(point.Runs, report.Run{Requests: []event.RequestID{next}, Duration: report.Measured(took)})
	}
	m.end()
	built.AddPoint(point, o.targets())
	return nil
}

// coldRequest loads the model, runs one request, and returns it with the time both took, in s.
func (o *Benchmark) coldRequest(ctx context.Context, source prompts) (q report.Request, took float64, err error) {
	once := *o
	once.requests, once.repeats, once.warmup = 1, 1, 0
	once.Outputs, once.Listen, once.Shown = session.Outputs{}, session.ListenFlags{}, false // only for the main run
	s, err := once.Open(ctx, report.NewCollector())
	if err != nil {
		return q, 0, err
	}
	began := s.Clock.Now()
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
		return q, 0, err
	}
	requests := report.Build(o.Meta(nil), s.Store.Snapshot(), s.Collector).Requests
	if len(requests) != 1 {
		return q, 0, fmt.Errorf("measure cold request: got %d requests, want 1", len(requests))
	}
	return requests[0], float64(s.Clock.Now()-began) / 1e9, nil
}
