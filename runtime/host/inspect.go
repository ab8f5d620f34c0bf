package host

import (
	"context"
	"sync"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
)

// Reading the page cache and every page of a process takes time in proportion to their size, so it is not part of each
// sample.
const (
	// inspectEvery is the minimum interval between inspections while Watch is on.
	inspectEvery = 10 * time.Second
	// inspectShare bounds the cost: after an inspection, the next one waits inspectShare times as long as it took.
	inspectShare = 500
)

// Inspector measures on request what is too expensive for each sample: it adds what it found to one sample. Create it with
// NewInspector.
type Inspector struct {
	pid     func() int    // of the engine's process
	changed chan struct{} // signals that request has changed

	mu    sync.Mutex // guards the fields below
	model string     // path of the model file
	watch bool       // inspect the model file repeatedly
	pss   bool       // read the engine's PSS once
	found event.Host // since the last sample, which alone reports it: the model's pages, and the engine's PSS
}

// NewInspector returns an Inspector for the process of an engine, 0 while it is unknown.
func NewInspector(pid func() int) *Inspector {
	return &Inspector{pid: pid, changed: make(chan struct{}, 1)}
}

// Watch turns on or off that samples have how much of the model file is in the page cache. It does not block.
func (n *Inspector) Watch(model string, on bool) { n.set(model, on, false) }

// Inspect makes one of the next samples report the engine's PSS and how much of the model file is in the page cache. It
// does not block.
func (n *Inspector) Inspect(model string) { n.set(model, true, true) }

func (n *Inspector) set(model string, watch, pss bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.model, n.watch, n.pss = model, watch, n.pss || pss
	select {
	case n.changed <- struct{}{}:
	default:
	}
}

// Run runs inspections until ctx ends.
func (n *Inspector) Run(ctx context.Context, _ event.Sink) error {
	rest := time.NewTimer(time.Hour)
	defer rest.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-rest.C:
		case <-n.changed:
		}
		rest.Stop()
		n.mu.Lock()
		model, watch, pss := n.model, n.watch, n.pss
		n.pss = false
		n.mu.Unlock()
		if !watch {
			continue
		}
		began, pid := time.Now(), n.pid()
		name, found := fileOf(pid, model), event.Host{}
		found.ModelBytes, found.ModelCached = cachedFile(name)
		_, _, found.ExpertsCached, _ = CachedExperts(name) // nil without experts
		if pss {
			found.Engine.PSS = proportional(pid)
		}
		rest.Reset(max(inspectEvery, inspectShare*time.Since(began)))
		n.add(found)
	}
}

// add stores a finding for the next sample.
func (n *Inspector) add(found event.Host) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if found.Engine.PSS == (event.Reading{}) {
		found.Engine.PSS = n.found.Engine.PSS
	}
	n.found = found
}

// report moves the finding since the last sample into h.
func (n *Inspector) report(h *event.Host) {
	n.mu.Lock()
	defer n.mu.Unlock()
	f := n.found
	n.found = event.Host{}
	if none := (event.Reading{}); f.ModelBytes != none {
		h.ModelBytes, h.ModelCached, h.ExpertsCached = f.ModelBytes, f.ModelCached, f.ExpertsCached
		if f.Engine.PSS != none {
			h.Engine.PSS = f.Engine.PSS
		}
	}
}

// In returns a sink that adds what was found to the samples of the machine on their way to sink.
func (n *Inspector) In(sink event.Sink) event.Sink {
	return event.SinkFunc(func(e event.Event) {
		if h, ok := e.Data.(*event.Host); ok && e.Kind == event.KindHost {
			here := *h
			n.report(&here)
			e.Data = &here
		}
		sink.Emit(e)
	})
}
