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

	mu      sync.Mutex // guards the fields below
	request inspectRequest
	finding finding // since the last sample
}

// inspectRequest is what is to be inspected.
type inspectRequest struct {
	model string // path of the model file
	watch bool   // inspect the model file repeatedly
	pss   bool   // read the engine's PSS once
}

// finding is the result of an inspection. Each is reported in one sample.
type finding struct {
	bytes, cached, pss event.Reading
	experts            []uint8 // see CachedExperts
}

// NewInspector returns an Inspector for the process of an engine, 0 while it is unknown.
func NewInspector(pid func() int) *Inspector {
	return &Inspector{pid: pid, changed: make(chan struct{}, 1)}
}

// Watch turns on or off that samples have how much of the model file is in the page cache. It does not block.
func (n *Inspector) Watch(model string, on bool) { n.set(inspectRequest{model: model, watch: on}) }

// Inspect makes one of the next samples report the engine's PSS and how much of the model file is in the page cache. It
// does not block.
func (n *Inspector) Inspect(model string) {
	n.set(inspectRequest{model: model, watch: true, pss: true})
}

func (n *Inspector) set(w inspectRequest) {
	n.mu.Lock()
	defer n.mu.Unlock()
	w.pss = w.pss || n.request.pss
	n.request = w
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
		w := n.request
		n.request.pss = false
		n.mu.Unlock()
		if !w.watch {
			continue
		}
		began, pid := time.Now(), n.pid()
		f, name := finding{}, fileOf(pid, w.model)
		f.bytes, f.cached = cachedFile(name)
		_, _, f.experts, _ = CachedExperts(name) // nil without experts
		if w.pss {
			f.pss = proportional(pid)
		}
		rest.Reset(max(inspectEvery, inspectShare*time.Since(began)))
		n.add(f)
	}
}

// add stores a finding for the next sample.
func (n *Inspector) add(f finding) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if f.pss == (event.Reading{}) {
		f.pss = n.finding.pss
	}
	n.finding = f
}

// report moves the finding since the last sample into h.
func (n *Inspector) report(h *event.Host) {
	n.mu.Lock()
	defer n.mu.Unlock()
	f := n.finding
	n.finding = finding{}
	if none := (event.Reading{}); f.bytes != none {
		h.ModelBytes, h.ModelCached, h.ExpertsCached = f.bytes, f.cached, f.experts
		if f.pss != none {
			h.Engine.PSS = f.pss
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
