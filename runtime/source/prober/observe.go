package prober

import (
	"strings"

	"github.com/llmtop/llmtop/profiler/event"
	scrape "github.com/llmtop/llmtop/runtime/source/scrape/engine"
)

// Observe returns a sink that passes on the events of the source that polls the server. The Prober learns from them
// whether it may probe.
func (p *Prober) Observe(sink event.Sink) event.Sink {
	return event.SinkFunc(func(e event.Event) {
		p.setState(e.Data)
		sink.Emit(e)
	})
}

// setState records what an event says about the server: whether it is ready and busy, and its model.
func (p *Prober) setState(data any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch d := data.(type) {
	case *event.EngineInfo:
		p.ready, p.engineName = d.Remote.Link == event.LinkConnected && d.State == event.EngineReady, d.Name
	case *event.Model:
		p.model, p.severalModels = d.Name, strings.HasSuffix(d.Name, " more") && strings.Contains(d.Name, " and ")
	case *event.Aggregates:
		p.busy = d.Waiting.OK() && d.Waiting.V > 0 || len(d.Slots) > 0 && !hasIdleSlot(d.Slots)
	}
}

// hasIdleSlot reports whether a request would get a slot at once.
func hasIdleSlot(slots []event.Slot) bool {
	for i := range slots {
		if slots[i].Request == 0 {
			return true
		}
	}
	return false
}

// probes returns a sink that passes on the events of probes with IDs that are unique for the server. It drops events of the
// server itself, which the polling source emits. Events of requests do not overlap: only one probe is in progress.
func probes(sink event.Sink, ids *scrape.RequestIDs) event.Sink {
	var id event.RequestID // of the probe in progress
	return event.SinkFunc(func(e event.Event) {
		if e.Req == 0 {
			return
		}
		begins := e.Kind == event.KindRequest && e.State == event.StateQueued
		if begins {
			id = ids.Next()
		}
		e.Req = id
		sink.Emit(e)
		if begins {
			ids.SetProbe(id)
		}
	})
}
