package cmd

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/llmtop/llmtop/profiler/report"
	"github.com/llmtop/llmtop/runtime/engine"
	"github.com/llmtop/llmtop/runtime/engine/workload"
)

// measure runs the workload, then the cold requests. The report is nil if nothing was measured.
func (o *benchOptions) measure(ctx context.Context, sources []prompts, m *meter) (*report.Report, error) {
	collector := report.NewCollector()
	if o.remote.isSet() {
		o.addRemoteEngine = func(l *local) error { return o.remote.addEngine(ctx, l) }
	}
	s, err := o.newLocal(ctx, collector, collector.Request)
	if err != nil {
		return nil, err
	}
	if !o.inProcess(s) && !o.remote.isSet() {
		s.sink = append(s.sink, &o.remote.watch)
	}
	var built *report.Report
	err = s.run(ctx, func(ctx context.Context) error {
		load, err := o.prepare(ctx, s, sources, m)
		if err != nil {
			return interruptCause(ctx, err)
		}
		log, spent, err := o.drive(ctx, s, load, m)
		if log != nil {
			err = interruptCause(ctx, err)
			built = report.Build(o.meta(err), s.store.Snapshot(), collector)
			built.AddBench(points(log, s.store.Snapshot().Started), log.Failed, o.targets())
			o.addTo(built, spent)
			o.addClient(built, s)
			addCompat(built, o.compat)
			if log.First != nil && err == nil {
				err = promptError(log.First)
			}
		}
		return err
	})
	if err == nil && o.cold > 0 {
		err = o.measureCold(ctx, sources[0], built, m)
	}
	if built != nil {
		o.addLimits(ctx, built, m)
	}
	return built, err
}

// addLimits adds the limits of this machine to the report if the engine runs on it, and the advice that follows from
// the numbers.
func (o *benchOptions) addLimits(ctx context.Context, r *report.Report, m *meter) {
	bound := slices.ContainsFunc(r.Bench.Points, func(p report.Point) bool { return p.Bandwidth.OK() || p.Compute.OK() })
	if o.limits && bound && ctx.Err() == nil && (!o.remote.isSet() || o.remote.local()) {
		m.line("measuring the limits of this machine")
		r.AddLimits(measureLimits(o.threads))
		m.end()
	}
	r.Advise()
}

// inProcess reports whether the engine runs in this process.
func (o *benchOptions) inProcess(s *local) bool {
	_, inside := s.scheduler.(*engine.Scheduler)
	return inside
}

// prepare waits for the engine, prints notes about it and returns the workload.
func (o *benchOptions) prepare(ctx context.Context, s *local, sources []prompts, m *meter) (workload.Workload, error) {
	if err := o.remote.ready(ctx); err != nil {
		return workload.Workload{}, err
	}
	for _, line := range o.remote.notes(o.honourEOS) {
		fmt.Fprintln(m.out, line)
	}
	return o.workload(ctx, s.scheduler, sources)
}

// drive runs the workload and measures its energy and the load of this process.
func (o *benchOptions) drive(ctx context.Context, s *local, load workload.Workload, m *meter) (log *workload.Log, spent report.Consumption, err error) {
	driver := workload.Driver{Runner: s.scheduler, Clock: s.clock, Progress: m.progress(s.store)}
	sample := func() { s.sampler.Sample(o.remote.samples(s)) }
	run := func() error {
		return o.runWithScreen(ctx, s, func(ctx context.Context) (err error) {
			log, err = driver.Run(ctx, load)
			return err
		})
	}
	spent, err = measureEnergy(func() error {
		if o.inProcess(s) {
			sample()
			return run()
		}
		return o.remote.watch.during(ctx, sample, run)
	})
	if o.remote.isSet() && !o.remote.local() {
		spent = report.Consumption{Seconds: spent.Seconds, Why: "the engine is on another machine"}
	}
	m.end()
	sample() // covers the end of the benchmark
	return log, spent, err
}

// addClient adds the load of this process to the report, unless it runs the engine itself.
func (o *benchOptions) addClient(r *report.Report, s *local) {
	if o.inProcess(s) {
		return
	}
	c := o.remote.watch.result()
	if o.remote.server != nil {
		c.UncountedResponses = o.remote.server.Uncounted()
	}
	r.AddClient(c)
}

// meta describes the benchmark in its report.
func (o *benchOptions) meta(err error) report.Meta {
	m := o.runOptions.meta(err)
	if o.remote.isSet() {
		m.Remote = !o.remote.local()
		for _, name := range engineFlags {
			delete(m.Configuration, name) // do not apply to a remote engine
		}
	}
	if o.remote.server != nil {
		m.Configuration["api"], m.Configuration["prompt-cache"] = string(o.remote.server.API()), strconv.FormatBool(o.remote.cached)
	}
	return m
}

// runWithScreen runs a benchmark, on the screen with --ui.
func (o *benchOptions) runWithScreen(ctx context.Context, s *local, run func(context.Context) error) error {
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

// points converts the log of a benchmark to the points of its report.
func points(log *workload.Log, began eventTime) []report.Point {
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
			for _, late := range run.SendDelays {
				r.SendDelays = append(r.SendDelays, late.Seconds())
			}
			point.Runs = append(point.Runs, r)
		}
		out = append(out, point)
	}
	return out
}
