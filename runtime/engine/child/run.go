package child

import (
	"context"
	"sync"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime/engine"
)

// Run implements engine.Source. It loads the engine and forwards its events as if it were part of this process, until
// ctx or the process ends. It may be called once. The error is an *Ended if the process ended unexpectedly.
func (p *Process) Run(ctx context.Context, sink event.Sink) error {
	p.begin(sink)
	watching, unwatch := context.WithCancel(context.Background())
	defer unwatch()
	var watch sync.WaitGroup
	if p.listening(ctx) {
		watch.Go(func() { _ = p.client.Run(watching, p.relay) }) // errors are reported through the relay
		select {
		case <-ctx.Done():
		case <-p.exited:
		case <-p.relay.broken:
		}
	}
	asked := ctx.Err() != nil
	if !asked {
		p.waitExit()
	}
	_ = p.Close() // never fails
	if p.relay.connected() {
		select { // remaining events of the process
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

// begin sets the sink.
func (p *Process) begin(sink event.Sink) {
	e := p.opt.Engine
	e.PID, e.State, e.Epoch = p.PID(), event.EngineStarting, p.opt.Clock.Epoch()
	p.relay.begin(sink, p.removeSocket, e)
	p.journal.setSink(sink)
	sink.Emit(event.Event{Kind: event.KindEngine, At: p.opt.Clock.Now(), Layer: -1, Data: &e})
}

// waitExit waits for a process whose connection has ended to exit.
func (p *Process) waitExit() {
	select {
	case <-p.exited:
	case <-time.After(patience):
	}
}

// conclude ends the remaining requests, and emits how the engine has ended.
func (p *Process) conclude(asked bool) error {
	info := p.relay.last()
	now := p.opt.Clock.Now()
	if asked {
		p.stop(engine.ErrStopped)
		p.relay.endAll(now, engine.Result{State: event.StateCancelled, Outcome: event.Outcome{Reason: "cancelled"}})
		if info.State != event.EngineStopped {
			info.State = event.EngineStopped
			p.relay.emitEngine(now, info)
		}
		return nil
	}
	ended := p.ended(&info)
	p.stop(ended)
	p.relay.endAll(now, engine.Result{State: event.StateFailed, Outcome: event.Outcome{Reason: ended.Reason}, Err: ended})
	if info.State != event.EngineFailed {
		p.journal.note(ended.Reason)
		info.State, info.Reason = event.EngineFailed, ended.Reason
		p.relay.emitEngine(now, info)
	}
	return ended
}

// stop rejects further requests.
func (p *Process) stop(why error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stopped = why
}
