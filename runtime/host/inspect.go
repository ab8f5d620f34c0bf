package host

import (
	"context"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
)

// Looking at the page cache and at every page of a process takes time in proportion to their size, so that it is not part of a sample.
const (
	// lookEvery is how long the page cache is left alone while somebody watches it.
	lookEvery = 10 * time.Second
	// lookShare bounds what looking costs: it rests for so many times as long as it took.
	lookShare = 500
)

// wish is what the sampler is asked to look at.
type wish struct {
	model string // the model's file
	watch bool   // look at its pages again and again, and closely at threads
	pss   bool   // look at the pages of the engine's process, once
}

// finding is what came of it; each is told in one sample.
type finding struct {
	bytes, cached, pss event.Reading
}

// Watch has the samples tell what costs more, as long as on is true: the switches of processes with many threads, and how much of the
// model's file is in the page cache. It does not wait.
func (s *Sampler) Watch(model string, on bool) { s.wish(wish{model: model, watch: on}) }

// Inspect has one of the next samples tell the engine's PSS, and how much of the model's file is in the page cache. It does not wait.
func (s *Sampler) Inspect(model string) { s.wish(wish{model: model, watch: true, pss: true}) }

func (s *Sampler) wish(w wish) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w.pss = w.pss || s.wanted.pss
	s.wanted = w
	select {
	case s.wished <- struct{}{}:
	default:
	}
}

// look does what is wished until ctx ends.
func (s *Sampler) look(ctx context.Context) {
	rest := time.NewTimer(time.Hour)
	defer rest.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-rest.C:
		case <-s.wished:
		}
		rest.Stop()
		s.mu.Lock()
		w := s.wanted
		s.wanted.pss = false
		s.mu.Unlock()
		if !w.watch {
			continue
		}
		began := time.Now()
		f := finding{}
		f.bytes, f.cached = cachedFile(w.model)
		if w.pss {
			f.pss = proportional(s.opt.PID)
		}
		rest.Reset(max(lookEvery, lookShare*time.Since(began)))
		s.found(f)
	}
}

// found keeps what was found for the next sample.
func (s *Sampler) found(f finding) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f.pss == (event.Reading{}) {
		f.pss = s.finding.pss
	}
	s.finding = f
}

// tell adds what was found since the last sample.
func (s *Sampler) tell(h *event.Host) {
	f := s.finding
	s.finding = finding{}
	h.ModelBytes, h.ModelCached, h.Engine.PSS = f.bytes, f.cached, f.pss
}
