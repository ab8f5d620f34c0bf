package cmd

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/llmtop/llmtop/profiler/report"
	"github.com/llmtop/llmtop/runtime"
	"github.com/llmtop/llmtop/runtime/bench"
)

// measure runs the workload, then the cold requests. The report is nil if nothing was measured.
func (o *benchOptions) measure(ctx context.Context, sources []prompts, m *meter) (*report.Report, error) {
	collector := report.NewCollector()
	if o.remote.is() {
		o.elsewhere = func(l *local) error { return o.remote.engage(ctx, l) }
	}
	s, err := o.newLocal(collector, collector.Request)
	if err != nil {
		return nil, err
	}
	if !o.inside(s) && !o.remote.is() {
		s.sink = append(s.sink, &o.remote.watch)
	}
	var built *report.Report
	err = s.run(ctx, func(ctx context.Context) error {
		load, err := o.prepare(ctx, s, sources, m)
		if err != nil {
			return interrupted(ctx, err)
		}
		log, spent, err := o.drive(ctx, s, load, m)
		if log != nil {
			err = interrupted(ctx, err)
			built = report.Build(o.meta(err), s.store.Snapshot(), collector)
			built.AddBench(points(log, s.store.Snapshot().Started), log.Failed, o.targets())
			o.addTo(built, spent)
			o.addClient(built, s)
			addCompat(built, o.compat)
			if log.First != nil && err == nil {
				err = refused(log.First)
			}
		}
		return err
	})
	if err == nil && o.cold > 0 {
		err = o.measureCold(ctx, sources[0], built, m)
	}
	if built != nil {
		o.judge(ctx, built, m)
	}
	return built, err
}

// judge holds a benchmark against what this machine can do, where the engine is on it, and says what follows from the numbers.
func (o *benchOptions) judge(ctx context.Context, r *report.Report, m *meter) {
	bound := slices.ContainsFunc(r.Bench.Points, func(p report.Point) bool { return p.Bandwidth.OK() || p.Compute.OK() })
	if o.limits && bound && ctx.Err() == nil && (!o.remote.is() || o.remote.local()) {
		m.line("measure what this machine can do")
		r.AddLimits(measureLimits(o.threads))
		m.end()
	}
	r.Advise()
}

// inside reports whether the engine runs in this very process.
func (o *benchOptions) inside(s *local) bool {
	_, inside := s.scheduler.(*runtime.Scheduler)
	return inside
}

// prepare makes the workload once the engine is there, and tells what the user should know of it.
func (o *benchOptions) prepare(ctx context.Context, s *local, sources []prompts, m *meter) (bench.Workload, error) {
	if err := o.remote.ready(ctx); err != nil {
		return bench.Workload{}, err
	}
	for _, line := range o.remote.notes(o.honourEOS) {
		fmt.Fprintln(m.out, line)
	}
	return o.workload(ctx, s.scheduler, sources)
}

// drive runs the workload and takes note of what that takes.
func (o *benchOptions) drive(ctx context.Context, s *local, load bench.Workload, m *meter) (log *bench.Log, spent report.Spent, err error) {
	driver := bench.Driver{Runner: s.scheduler, Clock: s.clock, Progress: m.progress(s.store)}
	sample := func() { s.sampler.Sample(o.remote.samples(s)) }
	run := func() error {
		return o.watched(ctx, s, func(ctx context.Context) (err error) {
			log, err = driver.Run(ctx, load)
			return err
		})
	}
	spent, err = metered(func() error {
		if o.inside(s) {
			sample()
			return run()
		}
		return o.remote.watch.during(ctx, sample, run)
	})
	if o.remote.is() && !o.remote.local() {
		spent = report.Spent{Seconds: spent.Seconds, Why: "the engine is on another machine"}
	}
	m.end()
	sample() // what the benchmark has cost to its very end
	return log, spent, err
}

// addClient adds to a report what this program did beside an engine in another process.
func (o *benchOptions) addClient(r *report.Report, s *local) {
	if o.inside(s) {
		return
	}
	c := o.remote.watch.client()
	if o.remote.server != nil {
		c.Untold = o.remote.server.Untold()
	}
	r.AddClient(c)
}

// meta describes the benchmark in its report.
func (o *benchOptions) meta(err error) report.Meta {
	m := o.runOptions.meta(err)
	if o.remote.is() {
		m.Elsewhere = !o.remote.local()
		for _, name := range engineFlags {
			delete(m.Configuration, name) // says nothing of an engine elsewhere
		}
	}
	if o.remote.server != nil {
		m.Configuration["api"], m.Configuration["prompt-cache"] = string(o.remote.server.API()), strconv.FormatBool(o.remote.cached)
	}
	return m
}

// watched runs a benchmark, with the screen over it if that is wanted.
func (o *benchOptions) watched(ctx context.Context, s *local, run func(context.Context) error) error {
	if !o.screen {
		return run(ctx)
	}
	if !o.live() {
		return usagef("--ui needs a terminal")
	}
	screen, end := context.WithCancelCause(ctx)
	ended := make(chan error, 1)
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		ended <- run(ctx)
		end(errClosed)
	}()
	err := o.view.open(screen, o.runOptions.screen(s, s.scheduler.Submit))
	if context.Cause(screen) == nil { // the user closed the screen
		stop()
		<-ended
		end(nil)
		return errors.Join(err, errInterrupted)
	}
	return errors.Join(err, <-ended)
}

// points turns the account of a benchmark into the points of its report.
func points(log *bench.Log, began eventTime) []report.Point {
	out := []report.Point{}
	for _, p := range log.Points {
		point := report.Point{Name: p.Point.Name, Concurrency: p.Point.Concurrency, Runs: []report.Run{}}
		if p.Point.Rate > 0 {
			point.Rate = report.Measured(p.Point.Rate)
		}
		for _, run := range p.Runs {
			r := report.Run{
				Requests: run.Requests, Started: report.Measured(float64(run.Start-began) / 1e9),
				Duration: report.Measured(float64(run.End-run.Start) / 1e9),
			}
			for _, late := range run.Late {
				r.Late = append(r.Late, late.Seconds())
			}
			point.Runs = append(point.Runs, r)
		}
		out = append(out, point)
	}
	return out
}
