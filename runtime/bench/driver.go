package bench

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime"
)

// Log is the account of a benchmark: by point, in the order of the workload.
type Log struct {
	Points []PointLog
	Failed int   // requests that failed or were refused, of the warm-up too
	First  error // why the first of them did
}

// PointLog are the runs of one point.
type PointLog struct {
	Point *Point
	Runs  []Run
}

// Run is one repeat of a point.
type Run struct {
	Requests []event.RequestID // in the order in which they were sent
	Start    event.Time
	End      event.Time // of the last request
	Late     []time.Duration
}

// Progress is told of after every request.
type Progress struct {
	Point       string
	Repeat      int // from 1
	Repeats     int
	Done, Total int // requests, of the whole workload
}

// Driver runs workloads.
type Driver struct {
	Runner   runtime.Runner
	Clock    runtime.Clock  // that of the runner's events
	Progress func(Progress) // called on the driver's goroutine; nil: nobody wants to know
}

// driving is one benchmark in progress.
type driving struct {
	*Driver
	load *Workload
	log  *Log
	rng  *rand.Rand
	now  Progress
	done []event.RequestID // ended of the run in progress
}

// Run runs a workload to its end, or to that of ctx, whose error it then returns beside the account of what was done until then. Of a
// run that was not finished only what had ended is in it, and only where its point has no whole one. A request that fails is counted and the workload goes on.
func (d *Driver) Run(ctx context.Context, w Workload) (*Log, error) {
	if err := w.check(); err != nil {
		return nil, fmt.Errorf("run benchmark: %w", err)
	}
	g := driving{
		Driver: d, load: &w, log: &Log{Points: make([]PointLog, len(w.Points))},
		rng: rand.New(rand.NewPCG(w.Seed, 0x62656e6368)),
		now: Progress{Repeats: w.Repeats, Total: w.Total()},
	}
	for i := range w.Points {
		g.log.Points[i].Point = &w.Points[i]
	}
	for repeat := range w.Repeats {
		for i := range w.Points {
			g.now.Point, g.now.Repeat = w.Points[i].Name, repeat+1
			if repeat == 0 {
				if err := g.warmUp(ctx, &w.Points[i]); err != nil {
					return g.log, err
				}
			}
			run, err := g.run(ctx, &w.Points[i], repeat+1)
			if err != nil {
				g.cut(&g.log.Points[i], run)
				return g.log, err
			}
			g.log.Points[i].Runs = append(g.log.Points[i].Runs, run)
		}
	}
	return g.log, nil
}

// cut keeps of a run that was cut off the requests that had ended, where its point has no whole run.
func (g *driving) cut(p *PointLog, run Run) {
	if run.Requests = g.done; len(p.Runs) == 0 && len(run.Requests) > 0 {
		run.End = g.Clock.Now()
		p.Runs = append(p.Runs, run)
	}
}

func (g *driving) warmUp(ctx context.Context, p *Point) error {
	if g.load.Warmup == 0 {
		return nil
	}
	warm := Point{Name: p.Name, Concurrency: max(p.Concurrency, 1), Vary: p.Vary}
	for i := range g.load.Warmup {
		warm.Requests = append(warm.Requests, p.Requests[i%len(p.Requests)])
	}
	_, err := g.run(ctx, &warm, 0)
	return err
}

// run sends the requests of a point and waits for their ends. repeat counts from 1; 0 is the warm-up.
func (g *driving) run(ctx context.Context, p *Point, repeat int) (Run, error) {
	r := Run{Start: g.Clock.Now()}
	g.done = nil
	ends := make(chan *runtime.Handle, len(p.Requests))
	var due []time.Duration
	if p.Rate > 0 {
		due = arrivals(len(p.Requests), p.Rate, p.Burstiness, g.rng)
	}
	began, open := time.Now(), 0
	for i := range p.Requests {
		if due == nil {
			for open >= p.Concurrency {
				if err := g.wait(ctx, ends); err != nil {
					return r, err
				}
				open--
			}
		} else {
			n, err := g.until(ctx, began.Add(due[i]), ends)
			if err != nil {
				return r, err
			}
			open -= n
			r.Late = append(r.Late, max(time.Since(began)-due[i], 0))
		}
		request := p.Requests[i]
		if p.Vary != nil {
			p.Vary(repeat, i, &request)
		}
		h, err := g.submit(ctx, request)
		if err != nil {
			return r, err
		}
		if h == nil {
			continue
		}
		r.Requests = append(r.Requests, h.ID)
		open++
		go func() {
			<-h.Done()
			ends <- h
		}()
	}
	for ; open > 0; open-- {
		if err := g.wait(ctx, ends); err != nil {
			return r, err
		}
	}
	r.End = g.Clock.Now()
	return r, nil
}

// until waits for a moment, and says how many requests have ended meanwhile.
func (g *driving) until(ctx context.Context, moment time.Time, ends <-chan *runtime.Handle) (ended int, err error) {
	timer := time.NewTimer(time.Until(moment))
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return ended, ctx.Err()
		case h := <-ends:
			g.ended(h)
			ended++
		case <-timer.C:
			return ended, nil
		}
	}
}

// wait waits for the end of a request.
func (g *driving) wait(ctx context.Context, ends <-chan *runtime.Handle) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case h := <-ends:
		g.ended(h)
		return nil
	}
}

func (g *driving) ended(h *runtime.Handle) {
	g.done = append(g.done, h.ID)
	if r := h.Result(); r.State == event.StateFailed {
		g.fail(r.Err)
	}
	g.tell()
}

func (g *driving) fail(err error) {
	if g.log.Failed++; g.log.First == nil {
		g.log.First = err
	}
}

func (g *driving) tell() {
	g.now.Done++
	if g.Progress != nil {
		g.Progress(g.now)
	}
}

// fullRest is how long a sender whom a full queue has turned away waits before it tries again.
const fullRest = time.Millisecond

// submit sends one request, which waits where the queue is full. No handle and no error: it was refused, which counts as failed.
func (g *driving) submit(ctx context.Context, r runtime.Request) (*runtime.Handle, error) {
	for {
		h, err := g.Runner.Submit(r)
		switch {
		case err == nil:
			return h, nil
		case errors.Is(err, runtime.ErrStopped):
			return nil, err
		case !errors.Is(err, runtime.ErrQueueFull):
			g.fail(err)
			g.tell()
			return nil, nil
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(fullRest):
		}
	}
}
