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

// releaseTo emits the steps that are held, up to the one with the given number: tokens come after the pass that made them, as the engine
// had it.
func (f *follow) releaseTo(step uint64) {
	n := 0
	for n < len(f.held) && f.held[n].Step <= step {
		f.sink.Emit(f.held[n])
		n++
	}
	f.held = f.held[n:]
}

// release emits all steps that are held.
func (f *follow) release() {
	f.releaseTo(math.MaxUint64)
	f.held = f.held[:0]
}

// adapt makes an event one of the client's. It says false for one that the client has emitted already.
func (f *follow) adapt(e *event.Event) bool {
	if e.At < math.MaxInt64-max(f.offset, 0) {
		e.At += f.offset
	}
	if e.Req != 0 {
		if e.Req <= maxID {
			e.Req += f.base
		}
		f.highest = max(f.highest, e.Req)
	}
	switch e.Kind {
	case event.KindEngine:
		f.engine = *e.Data.(*event.Engine)
		f.introduce(e.At)
		return false
	case event.KindModel:
		return f.adaptModel(e)
	case event.KindRequest:
		f.adaptRequest(e)
	case event.KindStage:
		return !f.syncing || f.isNews(e.Req)
	case event.KindToken:
		return f.adaptToken(e)
	case event.KindKV:
		if p := e.Data.(*event.KV); p.Pinned != 0 {
			p.Pinned += f.offset
		}
	case event.KindLost:
		p := e.Data.(*event.Lost)
		f.lost = *p
		for k := range p {
			p[k] += f.lostThen[k]
		}
	}
	return true
}

// isNews reports whether what the state tells of a request, or of the engine itself, has not been told before.
func (f *follow) isNews(id event.RequestID) bool {
	if id == 0 {
		return !f.synced
	}
	p := f.live[id]
	return p == nil || p.begun == f.round
}

// adaptModel passes on a model unless it is the one that is known.
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

// progress is what is known of a live request; nil if there are too many.
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

// adaptToken numbers a token whose engine does not, and cuts off what has been emitted from those of a state.
func (f *follow) adaptToken(e *event.Event) bool {
	p := f.progress(e.Req)
	if p == nil {
		e.Index = max(e.Index, 0)
		return true
	}
	if e.Index < 0 {
		e.Index = p.next
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
