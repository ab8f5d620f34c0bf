package host

import (
	"context"
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

// inspectRequest is what the sampler is asked to inspect.
type inspectRequest struct {
	model string // path of the model file
	watch bool   // inspect the model file repeatedly, and threads in detail
	pss   bool   // read the engine's PSS once
}

// finding is the result of an inspection. Each is reported in one sample.
type finding struct {
	bytes, cached, pss event.Reading
	experts            []uint8 // see CachedExperts
}

// Watch turns detailed samples on or off: context switches of processes with many threads, and how much of the model
// file is in the page cache. It does not block.
func (s *Sampler) Watch(model string, on bool) { s.setRequest(inspectRequest{model: model, watch: on}) }

// Inspect makes one of the next samples report the engine's PSS and how much of the model file is in the page cache. It
// does not block.
func (s *Sampler) Inspect(model string) {
	s.setRequest(inspectRequest{model: model, watch: true, pss: true})
}

func (s *Sampler) setRequest(w inspectRequest) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w.pss = w.pss || s.request.pss
	s.request = w
	select {
	case s.requestChanged <- struct{}{}:
	default:
	}
}

// inspectLoop runs inspections until ctx ends.
func (s *Sampler) inspectLoop(ctx context.Context) {
	rest := time.NewTimer(time.Hour)
	defer rest.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-rest.C:
		case <-s.requestChanged:
		}
		rest.Stop()
		s.mu.Lock()
		w := s.request
		s.request.pss = false
		s.mu.Unlock()
		if !w.watch {
			continue
		}
		began := time.Now()
		f := finding{}
		f.bytes, f.cached = cachedFile(w.model)
		_, _, f.experts, _ = CachedExperts(w.model) // nil without experts
		if w.pss {
			f.pss = proportional(s.opt.PID)
		}
		rest.Reset(max(inspectEvery, inspectShare*time.Since(began)))
		s.addFinding(f)
	}
}

// addFinding stores a finding for the next sample.
func (s *Sampler) addFinding(f finding) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f.pss == (event.Reading{}) {
		f.pss = s.finding.pss
	}
	s.finding = f
}

// report moves the finding since the last sample into h.
func (s *Sampler) report(h *event.Host) {
	f := s.finding
	s.finding = finding{}
	h.ModelBytes, h.ModelCached, h.Engine.PSS, h.ExpertsCached = f.bytes, f.cached, f.pss, f.experts
}
