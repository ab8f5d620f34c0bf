package child

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime/engine"
)

// Run implements engine.Source. It loads the engine and forwards its events as if it were part of this process, until
// ctx or the process ends. It may be called once. The error is an *Ended if the process ended unexpectedly.
func (p *Process) Run(ctx context.Context, sink event.Sink) error {
	info := p.opt.Engine
	info.PID, info.State, info.Epoch = p.PID(), event.EngineStarting, p.opt.Clock.Epoch()
	p.journal.setSink(sink)
	sink.Emit(event.Event{Kind: event.KindEngine, At: p.opt.Clock.Now(), Layer: -1, Data: &info})
	watching, unwatch := context.WithCancel(context.Background())
	defer unwatch()
	var watch sync.WaitGroup
	watched := p.listening(ctx)
	if watched {
		watch.Go(func() { _ = p.Runner.Run(watching, sink) }) // adapt sees errors
		select {
		case <-ctx.Done():
		case <-p.exited:
		case <-p.broken:
			unwatch() // the process has its own end
		}
	}
	asked := ctx.Err() != nil
	if !asked {
		p.waitExit()
	}
	_ = p.Close() // never fails
	if watched {
		select { // remaining events of the process, which may have ended before this one read any
		case <-p.broken:
		case <-time.After(patience):
		}
	}
	unwatch()
	watch.Wait()
	return p.conclude(sink, info, asked)
}

// adapt makes what the child reports of itself that of an engine in this process. The engine's state without a connection is
// not reported: conclude has it.
func (p *Process) adapt(e *event.EngineInfo) bool {
	remote := e.Remote
	e.Remote = event.Remote{Missed: remote.Missed, Malformed: remote.Malformed} // losses are always shown
	switch remote.Link {
	case event.LinkConnected:
		if _, link := p.State(); link == event.LinkNone {
			p.removeSocket()
		}
	case event.LinkStale:
		e.Remote.Link, e.Remote.Since, e.Remote.Address = remote.Link, remote.Since, fmt.Sprintf("the engine's process %d", p.PID())
	default:
		p.breaks()
		return false
	}
	return true
}

// waitExit waits for a process whose connection has ended to exit.
func (p *Process) waitExit() {
	select {
	case <-p.exited:
	case <-time.After(patience):
	}
}

// conclude ends the remaining requests, and emits how the engine has ended. first is what was known of it before it reported.
func (p *Process) conclude(sink event.Sink, first event.EngineInfo, asked bool) error {
	info, link := p.State()
	if link == event.LinkNone {
		info = first
	}
	info.Remote.Link, info.Remote.Since, info.Remote.Address = event.LinkNone, 0, ""
	now := p.opt.Clock.Now()
	state := event.EngineStopped
	var ended *Ended
	if asked {
		p.EndAll(now, engine.Result{State: event.StateCancelled, Outcome: event.Outcome{Reason: "cancelled"}}, engine.ErrStopped)
	} else {
		state, ended = event.EngineFailed, p.ended(&info)
		p.EndAll(now, engine.Result{State: event.StateFailed, Outcome: event.Outcome{Reason: ended.Reason}, Err: ended}, fmt.Errorf("%w: %w", engine.ErrStopped, ended))
	}
	if info.State != state {
		if info.State = state; ended != nil {
			p.journal.note(ended.Reason)
			info.Reason = ended.Reason
		}
		sink.Emit(event.Event{Kind: event.KindEngine, At: now, Layer: -1, Data: &info})
	}
	if ended == nil {
		return nil
	}
	return ended
}
