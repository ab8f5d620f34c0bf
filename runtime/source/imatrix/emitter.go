package imatrix

import (
	"context"
	"path/filepath"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime/engine"
)

// Emitter is an engine.Source that emits the counts of a file once.
type Emitter struct {
	path   string
	counts *Counts
	clock  engine.Clock
}

// New reads a file, whose counts Run emits. Errors: those of Open.
func New(path string, clock engine.Clock) (*Emitter, error) {
	c, err := Open(path)
	if err != nil {
		return nil, err
	}
	return &Emitter{path, c, clock}, nil
}

// Run implements engine.Source. It returns when ctx ends.
func (s *Emitter) Run(ctx context.Context, sink event.Sink) error {
	now, e := s.clock.Now(), &s.counts.Experts
	for _, v := range []event.Event{
		{Kind: event.KindEngine, Data: &event.EngineInfo{Name: "imatrix", Caps: event.CapExperts, State: event.EngineStopped, Epoch: s.clock.Epoch(), Reason: s.counts.Describe()}},
		{Kind: event.KindModel, Data: &event.Model{Name: filepath.Base(s.path), Path: s.path, Layers: e.Layers, Experts: e.Experts, ExpertsUsed: e.Used}},
		{Kind: event.KindExperts, Data: e},
		{Kind: event.KindLog, Text: s.counts.Describe()},
	} {
		v.At, v.Layer = now, -1
		sink.Emit(v)
	}
	<-ctx.Done()
	return nil
}
