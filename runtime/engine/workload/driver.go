package workload

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime/engine"
)

// Log records the requests of a benchmark, per point, in the order of the workload.
type Log struct {
	Points []PointLog
	Failed int   // requests that failed or were rejected, including those of the warm-up
	First  error // error of the first failed request
}

// PointLog holds the runs of one point.
type PointLog struct {
	Point *Point
	Runs  []Run
}

// Run is one repeat of a point.
type Run struct {
	Requests   []event.RequestID // in the order of sending
	Start      event.Time
	End        event.Time      // when the last request ended
	SendDelays []time.Duration // delay of each request behind its planned send time; open loop only
	Held       []time.Duration // the part of each delay for which a full queue of the engine held the sender
}

// Progress is reported after every request.
type Progress struct {
	Point       string
	Repeat      int // from 1
	Repeats     int
	Done, Total int // requests, of the whole workload
}

// Driver runs workloads.
type Driver struct {
	Runner   engine.Runner
	Clock    engine.Clock   // clock of the runner's events
	Progress func(Progress) // called on the driver's goroutine; may be nil
}

// driving is the state of one benchmark.
type driving struct {
	*Driver
	load     *Workload
	log      *Log
	rng      *rand.Rand
	progress Progress
	done     []event.RequestID // requests of the current run that have ended
	held     time.Duration     // time lost to a full queue since requests were last on time
}

// Run runs a workload until it is done or ctx ends. In the second case it returns the error of ctx together with the
// log so far, after it has cancelled the open requests. The log contains an interrupted run only if its point has no complete run, and then only the requests
// that had ended. A failed request is counted and does not stop the workload.
func (d *Driver) Run(ctx context.Context, w Workload) (*Log, error) {
	if err := w.check(); err != nil {
		return nil, fmt.Errorf("run benchmark: %w", err)
	}
	g := driving{
		Driver: d, load: &w, log: &Log{Points: make([]PointLog, len(w.Points))},
		rng:      rand.New(rand.NewPCG(w.Seed, 0x62656e6368)),
		progress: Progress{Repeats: w.Repeats, Total: w.Total()},
	}
	for i := range w.Points {
		g.log.Points[i].Point = &w.Points[i]
	}
	for repeat := range w.Repeats {
		for i := range w.Points {
			g.progress.Point, g.progress.Repeat = w.Points[i].Name, repeat+1
			if repeat == 0 {
				if err := g.warmUp(ctx, &w.Points[i]); err != nil {
					return g.log, err
				}
			}
			run, err := g.run(ctx, &w.Points[i])
			if err != nil {
				g.cut(&g.log.Points[i], run)
				return g.log, err
			}
			g.log.Points[i].Runs = append(g.log.Points[i].Runs, run)
		}
	}
	return g.log, nil
}

// cut stores the requests of an interrupted run that had ended, unless the point has a complete run.
func (g *driving) cut(p *PointLog, run Run) {
	ended := run
	ended.Requests, ended.SendDelays, ended.Held = nil, nil, nil
	for i, id := range run.Requests {
		if !slices.Contains(g.done, id) {
			continue
		}
		ended.Requests = append(ended.Requests, id)
		if i < len(run.SendDelays) {
			ended.SendDelays, ended.Held = append(ended.SendDelays, run.SendDelays[i]), append(ended.Held, run.Held[i])
		}
	}
	if len(p.Runs) == 0 && len(ended.Requests) > 0 {
		p.Runs = append(p.Runs, ended)
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
	_, err := g.run(ctx, &warm)
	return err
}

// run sends the requests of a point and waits until all have ended; if ctx ends first, it cancels the others.
func (g *driving) run(ctx context.Context, p *Point) (r Run, err error) {
	r.Start, g.done, g.held = g.Clock.Now(), nil, 0
	var sent []*engine.Handle
	defer func() {
		r.End = g.Clock.Now()
		engine.CancelAll(sent)
	}()
	ends := make(chan *engine.Handle, len(p.Requests))
	var due []time.Duration
	if p.Rate > 0 {
		due = arrivals(len(p.Requests), p.Rate, p.Burstiness, g.rng)
	}
	began, open := time.Now(), 0
	for i := range p.Requests {
		late := time.Duration(0)
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
			late = max(time.Since(began)-due[i], 0)
			g.held = min(g.held, late)
		}
		held := g.held
		request := p.Requests[i]
		if p.Vary != nil {
			p.Vary(&request)
		}
		h, err := g.submit(ctx, request)
		if err != nil {
			return r, err
		}
		if h == nil {
			continue
		}
		r.Requests = append(r.Requests, h.ID)
		if due != nil {
			r.SendDelays, r.Held = append(r.SendDelays, late), append(r.Held, held)
		}
		sent = append(sent, h)
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
	return r, nil
}

// until waits until the given time, and returns how many requests ended meanwhile.
func (g *driving) until(ctx context.Context, moment time.Time, ends <-chan *engine.Handle) (ended int, err error) {
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

// wait waits until a request ends.
func (g *driving) wait(ctx context.Context, ends <-chan *engine.Handle) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case h := <-ends:
		g.ended(h)
		return nil
	}
}

func (g *driving) ended(h *engine.Handle) {
	g.done = append(g.done, h.ID)
	if r := h.Result(); r.State == event.StateFailed {
		g.fail(r.Err)
	}
	g.report()
}

func (g *driving) fail(err error) {
	if g.log.Failed++; g.log.First == nil {
		g.log.First = err
	}
}

func (g *driving) report() {
	g.progress.Done++
	if g.Progress != nil {
		g.Progress(g.progress)
	}
}

// queueRetry is the retry interval while the queue is full.
const queueRetry = time.Millisecond

// submit sends one request and retries while the queue is full. It returns no handle and no error if the request was
// rejected, which counts as failed.
func (g *driving) submit(ctx context.Context, r engine.Request) (*engine.Handle, error) {
	began := time.Now()
	for first := true; ; first = false {
		h, err := g.Runner.Submit(r)
		switch {
		case err == nil:
			if !first {
				g.held += time.Since(began)
			}
			return h, nil
		case errors.Is(err, engine.ErrStopped):
			return nil, err
		case !errors.Is(err, engine.ErrQueueFull):
			g.fail(err)
			g.report()
			return nil, nil
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(queueRetry):
		}
	}
}
