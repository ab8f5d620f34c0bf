package socket

import (
	"math"

	"github.com/llmtop/llmtop/profiler/event"
)

// events emits the events of a line.
func (f *follow) events() {
	if len(f.batch) > 1 && f.batch[0].Kind == event.KindStep {
		f.release()
		for i := range f.batch {
			if f.adapt(&f.batch[i]) {
				f.held = append(f.held, f.batch[i])
			}
		}
		return
	}
	if len(f.batch) > 0 && f.batch[0].Kind != event.KindToken {
		f.release()
	}
	for i := range f.batch {
		e := &f.batch[i]
		if e.Kind == event.KindToken {
			f.releaseTo(e.Step)
		}
		if f.adapt(e) {
			f.sink.Emit(*e)
		}
	}
}

// releaseTo emits the held steps up to the given number: tokens follow the pass that made them, as in the engine.
func (f *follow) releaseTo(step uint64) {
	n := 0
	for n < len(f.held) && f.held[n].Step <= step {
		f.sink.Emit(f.held[n])
		n++
	}
	f.held = f.held[n:]
}

// release emits all held steps.
func (f *follow) release() {
	f.releaseTo(math.MaxUint64)
	f.held = f.held[:0]
}

// adapt converts an event to the client's clock and ids. It returns false if the event was already emitted.
func (f *follow) adapt(e *event.Event) bool {
	e.At += f.offset // cannot overflow: both clocks are plausible
	// Nothing arrives before it happens.
	if now := f.clock.Now(); e.At > now+jump {
		e.At = now
	}
	if e.Req != 0 {
		if e.Req <= maxID {
			e.Req += f.base
		}
		f.highest = max(f.highest, e.Req)
	}
	switch e.Kind {
	case event.KindEngine:
		f.engine = *e.Data.(*event.EngineInfo)
		f.introduce(e.At)
		return false
	case event.KindModel:
		return f.adaptModel(e)
	case event.KindRequest:
		f.adaptRequest(e)
	case event.KindStage:
		return !f.syncing || f.isNew(e.Req)
	case event.KindToken:
		return f.adaptToken(e)
	case event.KindKV:
		if p := e.Data.(*event.KV); p.Pinned != 0 {
			p.Pinned += f.offset
		}
	case event.KindDrops:
		p := e.Data.(*event.Drops)
		f.lost = *p
		for k := range p {
			p[k] += f.lostBefore[k]
		}
	}
	return true
}

// isNew reports whether the state's data about a request, or about the engine if id is 0, was not emitted before.
func (f *follow) isNew(id event.RequestID) bool {
	if id == 0 {
		return !f.synced
	}
	p := f.live[id]
	return p == nil || p.begun == f.round
}

// adaptModel returns false for the model that was emitted last.
func (f *follow) adaptModel(e *event.Event) bool {
	m := *e.Data.(*event.Model)
	if m == f.model && e.Dur == f.took {
		return false
	}
	f.model, f.took = m, e.Dur
	return true
}

func (f *follow) adaptRequest(e *event.Event) {
	if e.State.Final() {
		delete(f.live, e.Req)
		return
	}
	if p := f.progress(e.Req); p != nil {
		p.named = f.round
	}
}

// progress returns the record of a live request, or nil if there are too many.
func (f *follow) progress(id event.RequestID) *progress {
	p := f.live[id]
	if p == nil && len(f.live) < maxKnown {
		if f.live == nil {
			f.live = make(map[event.RequestID]*progress)
		}
		p = &progress{begun: f.round}
		f.live[id] = p
	}
	return p
}

// adaptToken numbers a token that has no index. Of a token in a state it removes the part that was already emitted.
func (f *follow) adaptToken(e *event.Event) bool {
	p := f.progress(e.Req)
	if p == nil {
		e.Index = max(e.Index, 0)
		return true
	}
	if e.Index < 0 {
		e.Index = p.next
	}
	p.several = p.several || e.Choice > 0 // each choice may have positions of its own
	if e.Index > p.next && !f.syncing && !p.several && (p.next > 0 || f.lost[event.KindToken] > 0) {
		e.Lost = true
	}
	n := max(e.N, 1)
	end := e.Index + min(n, math.MaxInt32-e.Index)
	if f.syncing && e.Index < p.next {
		if end <= p.next {
			return false
		}
		e.Index, e.N = p.next, end-p.next
		e.ID, e.Text, e.HasLogP, e.LogP, e.Top, e.Picks = -1, "", false, 0, nil, nil
	}
	p.next = max(p.next, end)
	return true
}
