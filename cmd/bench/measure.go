package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/llmtop/llmtop/cmd/console"
	"github.com/llmtop/llmtop/cmd/exit"
	"github.com/llmtop/llmtop/cmd/local"
	"github.com/llmtop/llmtop/profiler/capacity"
	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/profiler/report"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/runtime/engine"
	"github.com/llmtop/llmtop/runtime/engine/workload"
)

// measure runs the workload, then the cold requests. The report is nil if nothing was measured.
func (o *Benchmark) measure(ctx context.Context, sources []prompts, m *console.Progress) (*report.Report, error) {
	if o.target.isSet() {
		o.Remote = func(l *local.Engine) error { return o.target.addEngine(ctx, l) }
		o.Adjust = o.adjust
	}
	s, err := o.Open(ctx, true)
	if err != nil {
		return nil, err
	}
	if !o.inProcess(s) && !o.target.isSet() {
		s.AlsoTo(&o.target.watch)
	}
	var (
		log   *workload.Log
		found *capacity.Result
		spent report.Consumption
	)
	err = s.Run(ctx, func(ctx context.Context) error {
		load, err := o.prepare(ctx, s, sources, m)
		if err != nil {
			return exit.InterruptCause(ctx, err)
		}
		log, spent, err = o.drive(ctx, s, m, func(ctx context.Context, d *workload.Driver) (log *workload.Log, err error) {
			if o.findCapacity {
				log, found, err = o.search(ctx, s, d, sources, m)
				return log, err
			}
			return d.Run(ctx, load)
		})
		if log != nil {
			err = exit.InterruptCause(ctx, err)
			refused := found != nil && found.Rate != nil // above the capacity: a result
			if log.First != nil && err == nil && !refused {
				err = local.PromptError(log.First)
			}
		}
		return err
	})
	var built *report.Report
	if log != nil { // with all events that a recording has
		built = report.Build(o.Meta(err), s.Store.Snapshot())
		built.AddBench(points(log, s.Store.Snapshot().Started), log.Failed, o.targets())
		built.Bench.Capacity = found
		o.addTo(built, spent)
		o.addClient(built, s)
	}
	if err == nil && o.cold > 0 {
		err = o.measureCold(ctx, s, sources[0], built, m)
	}
	if built != nil {
		o.addLimits(ctx, built, m)
	}
	return built, err
}

// addLimits adds the limits of this machine to the report if the engine runs on it.
func (o *Benchmark) addLimits(ctx context.Context, r *report.Report, m *console.Progress) {
	bound := slices.ContainsFunc(r.Bench.Points, func(p report.Point) bool { return p.Bandwidth.OK() || p.Compute.OK() })
	if o.limits && bound && ctx.Err() == nil && (!o.target.isSet() || o.target.local()) {
		m.Line("measuring the limits of this machine")
		r.AddLimits(MeasureLimits(o.Threads))
		m.End()
	}
}

// inProcess reports whether the engine runs in this process.
func (o *Benchmark) inProcess(s *local.Engine) bool {
	_, inside := s.Scheduler.(*engine.Scheduler)
	return inside
}

// prepare waits for the engine, prints notes about it and returns the workload.
func (o *Benchmark) prepare(ctx context.Context, s *local.Engine, sources []prompts, m *console.Progress) (workload.Workload, error) {
	if err := o.target.ready(ctx); err != nil {
		return workload.Workload{}, err
	}
	if !o.target.isSet() {
		s.AwaitLoad(ctx)
	}
	for _, line := range o.target.notes(o.honourEOS) {
		fmt.Fprintln(m.Out, line)
	}
	return o.workload(ctx, s.Scheduler, sources)
}

// drive runs a workload and measures its energy and the load of this process.
func (o *Benchmark) drive(ctx context.Context, s *local.Engine, m *console.Progress, load func(context.Context, *workload.Driver) (*workload.Log, error)) (log *workload.Log, spent report.Consumption, err error) {
	driver := workload.Driver{Runner: s.Scheduler, Clock: s.Clock}
	if !o.findCapacity { // how many runs it will take is not known
		driver.Progress = o.showRuns(m, s.Store)
	}
	sample := func() { s.Sampler.Sample(s.Samples) }
	run := func() error {
		if out := m.Out; o.Shown && console.TerminalOf(out) != nil { // the screen occupies the terminal
			m.Out = io.Discard
			defer func() { m.Out = out }()
		}
		return o.runWithScreen(ctx, s, func(ctx context.Context) (err error) {
			log, err = load(ctx, &driver)
			return err
		})
	}
	spent, err = measureEnergy(func() error {
		if o.inProcess(s) {
			sample()
			return run()
		}
		return o.target.watch.during(ctx, sample, run)
	})
	if o.target.isSet() && !o.target.local() {
		spent = report.Consumption{Seconds: spent.Seconds, Why: "the engine is on another machine"}
	}
	m.End()
	sample() // covers the end of the benchmark
	return log, spent, err
}

// barCells is the length of the bar of a benchmark.
const barCells = 20

// showRuns returns the callback that shows the runs of a benchmark.
func (o *Benchmark) showRuns(m *console.Progress, s *store.Store) func(workload.Progress) {
	began := time.Now()
	return func(p workload.Progress) {
		run := fmt.Sprintf("%s: run %d of %d", p.Point, p.Repeat, p.Repeats)
		m.Show(run, run, func() string {
			done := float64(p.Done) / float64(p.Total)
			left := time.Duration(float64(time.Since(began)) * (1 - done) / done)
			full := int(done * barCells)
			return fmt.Sprintf("[%s%s] %3.0f %%  %s left  %s  decode %s tokens/s",
				strings.Repeat("#", full), strings.Repeat(".", barCells-full), 100*done, metric.Duration(int64(left.Round(time.Second))), run,
				metric.Reading(s.Snapshot().Throughput.Decode, metric.Rate))
		})
	}
}

// addClient adds the load of this process to the report, unless it runs the engine itself.
func (o *Benchmark) addClient(r *report.Report, s *local.Engine) {
	if o.inProcess(s) {
		return
	}
	c := o.target.watch.result()
	if o.target.server != nil {
		server := o.target.server
		c.UncountedResponses, c.UnstreamedResponses = int(server.Uncounted.Load()), int(server.Unstreamed.Load())
		c.ClumpedResponses = int(server.Clumped.Load())
	}
	r.AddClient(c)
}

// adjust corrects the metadata for a remote engine.
func (o *Benchmark) adjust(m *report.Meta) {
	m.Remote = !o.target.local()
	for _, name := range engineFlags {
		delete(m.Configuration, name) // do not apply to a remote engine
	}
	if o.target.server != nil {
		m.Configuration["api"], m.Configuration["prompt-cache"] = string(o.target.server.API()), strconv.FormatBool(o.target.cached)
		if !o.target.cached {
			m.Configuration["prompt-salt"] = strconv.FormatUint(o.target.salt, 10)
		}
	}
}

// runWithScreen runs a benchmark, on the screen with --ui.
func (o *Benchmark) runWithScreen(ctx context.Context, s *local.Engine, run func(context.Context) error) error {
	if !o.Shown {
		return run(ctx)
	}
	if !o.Visible() {
		return exit.Usagef("--ui needs a terminal")
	}
	o.NoText = "bench asks for no text"
	screen, end := context.WithCancelCause(ctx)
	ended := make(chan error, 1)
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		ended <- run(ctx)
		end(exit.ErrClosed)
	}()
	err := o.Show(screen, o.Screen(s, s.Scheduler.Submit, ""))
	if context.Cause(screen) == nil { // the user closed the screen
		stop()
		<-ended
		end(nil)
		return errors.Join(err, exit.ErrInterrupted)
	}
	return errors.Join(err, <-ended)
}

// points converts the log of a benchmark to the points of its report.
func points(log *workload.Log, began event.Time) []report.Point {
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
			for i, late := range run.SendDelays {
				r.SendDelays, r.Held = append(r.SendDelays, late.Seconds()), append(r.Held, run.Held[i].Seconds())
			}
			point.Runs = append(point.Runs, r)
		}
		out = append(out, point)
	}
	return out
}
