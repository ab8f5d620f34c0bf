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

// Driver runs one workload.
type Driver struct {
	Runner   engine.Runner
	Clock    engine.Clock   // clock of the runner's events
	Progress func(Progress) // called on the driver's goroutine; may be nil

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
	d.load, d.log, d.rng = &w, &Log{Points: make([]PointLog, len(w.Points))}, rand.New(rand.NewPCG(w.Seed, 0x62656e6368))
	d.progress = Progress{Repeats: w.Repeats, Total: w.Total()}
	for i := range w.Points {
		d.log.Points[i].Point = &w.Points[i]
	}
	for repeat := range w.Repeats {
		for i := range w.Points {
			d.progress.Point, d.progress.Repeat = w.Points[i].Name, repeat+1
			if repeat == 0 {
				if err := d.warmUp(ctx, &w.Points[i]); err != nil {
					return d.log, err
				}
			}
			run, err := d.run(ctx, &w.Points[i])
			if err != nil {
				d.cut(&d.log.Points[i], run)
				return d.log, err
			}
			d.log.Points[i].Runs = append(d.log.Points[i].Runs, run)
		}
	}
	return d.log, nil
}

// cut stores the requests of an interrupted run that had ended, unless the point has a complete run.
func (d *Driver) cut(p *PointLog, run Run) {
	ended := run
	ended.Requests, ended.SendDelays, ended.Held = nil, nil, nil
	for i, id := range run.Requests {
		if !slices.Contains(d.done, id) {
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

func (d *Driver) warmUp(ctx context.Context, p *Point) error {
	if d.load.Warmup == 0 {
		return nil
	}
	warm := Point{Name: p.Name, Concurrency: max(p.Concurrency, 1), Vary: p.Vary}
	for i := range d.load.Warmup {
		warm.Requests = append(warm.Requests, p.Requests[i%len(p.Requests)])
	}
	_, err := d.run(ctx, &warm)
	return err
}

// run sends the requests of a point and waits until all have ended; if ctx ends first, it cancels the others.
func (d *Driver) run(ctx context.Context, p *Point) (r Run, err error) {
	r.Start, d.done, d.held = d.Clock.Now(), nil, 0
	var sent []*engine.Handle
	defer func() {
		r.End = d.Clock.Now()
		engine.CancelAll(sent)
	}()
	ends := make(chan *engine.Handle, len(p.Requests))
	var due []time.Duration
	if p.Rate > 0 {
		due = arrivals(len(p.Requests), p.Rate, p.Burstiness, d.rng)
	}
	began, open := time.Now(), 0
	for i := range p.Requests {
		late := time.Duration(0)
		if due == nil {
			for open >= p.Concurrency {
				if err := d.wait(ctx, ends); err != nil {
					return r, err
				}
				open--
			}
		} else {
			n, err := d.until(ctx, began.Add(due[i]), ends)
			if err != nil {
				return r, err
			}
			open -= n
			late = max(time.Since(began)-due[i], 0)
			d.held = min(d.held, late)
		}
		held := d.held
		request := p.Requests[i]
		if p.Vary != nil {
			p.Vary(&request)
		}
		h, err := d.submit(ctx, request)
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
		if err := d.wait(ctx, ends); err != nil {
			return r, err
		}
	}
	return r, nil
}

// until waits until the given time, and returns how many requests ended meanwhile.
func (d *Driver) until(ctx context.Context, moment time.Time, ends <-chan *engine.Handle) (ended int, err error) {
	timer := time.NewTimer(time.Until(moment))
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return ended, ctx.Err()
		case h := <-ends:
			d.ended(h)
			ended++
		case <-timer.C:
			return ended, nil
		}
	}
}

// wait waits until a request ends.
func (d *Driver) wait(ctx context.Context, ends <-chan *engine.Handle) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case h := <-ends:
		d.ended(h)
		return nil
	}
}

func (d *Driver) ended(h *engine.Handle) {
	d.done = append(d.done, h.ID)
	if r := h.Result(); r.State == event.StateFailed {
		d.fail(r.Err)
	}
	d.report()
}

func (d *Driver) fail(err error) {
	if d.log.Failed++; d.log.First == nil {
		d.log.First = err
	}
}

func (d *Driver) report() {
	d.progress.Done++
	if d.Progress != nil {
		d.Progress(d.progress)
	}
}

// queueRetry is the retry interval while the queue is full.
const queueRetry = time.Millisecond

// submit sends one request and retries while the queue is full. It returns no handle and no error if the request was
// rejected, which counts as failed.
func (d *Driver) submit(ctx context.Context, r engine.Request) (*engine.Handle, error) {
	began := time.Now()
	for first := true; ; first = false {
		h, err := d.Runner.Submit(r)
		switch {
		case err == nil:
			if !first {
				d.held += time.Since(began)
			}
			return h, nil
		case errors.Is(err, engine.ErrStopped):
			return nil, err
		case !errors.Is(err, engine.ErrQueueFull):
			d.fail(err)
			d.report()
			return nil, nil
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(queueRetry):
		}
	}
}
