package imatrix

import (
	"context"
	"path/filepath"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime"
)

// Source is a runtime.Source that tells what a file has counted, once.
type Source struct {
	path   string
	counts *Counts
	clock  runtime.Clock
}

// New reads a file, of which Run tells. Errors: those of Open.
func New(path string, clock runtime.Clock) (*Source, error) {
	c, err := Open(path)
	if err != nil {
		return nil, err
	}
	return &Source{path, c, clock}, nil
}

// Run implements runtime.Source. It returns when ctx has ended.
func (s *Source) Run(ctx context.Context, sink event.Sink) error {
	now, e := s.clock.Now(), &s.counts.Experts
	for _, v := range []event.Event{
		{Kind: event.KindEngine, Data: &event.Engine{Name: "imatrix", Caps: event.CapExperts, State: event.EngineStopped, Epoch: s.clock.Epoch(), Reason: s.counts.About()}},
		{Kind: event.KindModel, Data: &event.Model{Name: filepath.Base(s.path), Path: s.path, Layers: e.Layers, Experts: e.Experts, ExpertsUsed: e.Used}},
		{Kind: event.KindExperts, Data: e},
		{Kind: event.KindLog, Text: s.counts.About()},
	} {
		v.At, v.Layer = now, -1
		sink.Emit(v)
	}
	<-ctx.Done()
	return nil
}
