package child

import (
	"context"
	"sync"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime"
)

// Run implements runtime.Source: it has the engine loaded, and passes its events on as if the engine was part of this process, until
// ctx ends or the process does. It may be called once. The error is an *Ended if the process ended unasked.
func (p *Process) Run(ctx context.Context, sink event.Sink) error {
	p.begin(sink)
	watching, unwatch := context.WithCancel(context.Background())
	defer unwatch()
	var watch sync.WaitGroup
	if p.listening(ctx) {
		watch.Go(func() { _ = p.client.Run(watching, p.relay) }) // what breaks, the relay hears
		select {
		case <-ctx.Done():
		case <-p.exited:
		case <-p.relay.broken:
		}
	}
	asked := ctx.Err() != nil
	if !asked {
		p.linger()
	}
	_ = p.Close() // never fails
	if p.relay.connected() {
		select { // what the process has said to its end
		case <-p.relay.broken:
		case <-time.After(patience):
		}
	}
	unwatch()
	watch.Wait()
	err := p.conclude(asked)
	p.calls.Wait()
	return err
}

// begin takes the sink.
func (p *Process) begin(sink event.Sink) {
	e := p.opt.Engine
	e.PID, e.State, e.Epoch = p.PID(), event.EngineStarting, p.opt.Clock.Epoch()
	p.relay.begin(sink, p.tidy, e)
	p.journal.to(sink)
	sink.Emit(event.Event{Kind: event.KindEngine, At: p.opt.Clock.Now(), Layer: -1, Data: &e})
}

// linger waits for the end of a process whose connection has broken, which is about to end by itself.
func (p *Process) linger() {
	select {
	case <-p.exited:
	case <-time.After(patience):
	}
}

// conclude ends the requests that are left, and says how the engine has ended.
func (p *Process) conclude(asked bool) error {
	engine := p.relay.last()
	now := p.opt.Clock.Now()
	if asked {
		p.stop(runtime.ErrStopped)
		p.relay.endAll(now, runtime.Result{State: event.StateCancelled, Outcome: event.Outcome{Reason: "cancelled"}})
		if engine.State != event.EngineStopped {
			engine.State = event.EngineStopped
			p.relay.introduce(now, engine)
		}
		return nil
	}
	ended := p.ended(&engine)
	p.stop(ended)
	p.relay.endAll(now, runtime.Result{State: event.StateFailed, Outcome: event.Outcome{Reason: ended.Reason}, Err: ended})
	if engine.State != event.EngineFailed {
		p.journal.say(ended.Reason)
		engine.State, engine.Reason = event.EngineFailed, ended.Reason
		p.relay.introduce(now, engine)
	}
	return ended
}

// stop refuses further requests.
func (p *Process) stop(why error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stopped = why
}
