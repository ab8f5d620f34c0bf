package prober

import (
	"strings"

	"github.com/llmtop/llmtop/profiler/event"
)

// Beside passes on the events of who watches the server, of which the prober learns whether it may ask.
func (p *Source) Beside(sink event.Sink) event.Sink { return beside{p, sink} }

type beside struct {
	prober *Source
	sink   event.Sink
}

// Emit implements event.Sink.
func (b beside) Emit(e event.Event) {
	b.prober.note(e.Data)
	b.sink.Emit(e)
}

func (p *Source) note(data any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch d := data.(type) {
	case *event.Engine:
		p.ready, p.name = d.Remote.Link == event.LinkConnected && d.State == event.EngineReady, d.Name
	case *event.Model:
		p.model, p.many = d.Name, strings.HasSuffix(d.Name, " more") && strings.Contains(d.Name, " and ")
	case *event.Report:
		p.full = d.Waiting.OK() && d.Waiting.V > 0 || len(d.Slots) > 0 && !idle(d.Slots)
	}
}

// idle reports whether a request would find a slot.
func idle(slots []event.Slot) bool {
	for i := range slots {
		if slots[i].Request == 0 {
			return true
		}
	}
	return false
}

// marked passes on the events of probes, under numbers that nobody else has. What the server is, tells who watches it.
type marked struct {
	sink   event.Sink
	shared *Shared
	id     event.RequestID // of the probe on its way
}

// Emit implements event.Sink. The events of one request come one after the other, and of one request alone.
func (m *marked) Emit(e event.Event) {
	if e.Req == 0 {
		return
	}
	begins := e.Kind == event.KindRequest && e.State == event.StateQueued
	if begins {
		m.id = m.shared.Next()
	}
	e.Req = m.id
	m.sink.Emit(e)
	if begins {
		m.shared.current.Store(uint64(m.id))
	}
}
