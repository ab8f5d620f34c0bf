package session

import (
	"context"
	"sync"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime/host"
)

// modelReader completes what an engine of this machine says of its model by the header of the model's file. What the
// engine says itself comes first.
type modelReader struct {
	processes func() []int // of the engine, the main one first
	due       chan struct{}

	mu    sync.Mutex // guards the fields below
	model event.Event
	tries int // left; 0: nothing to do
}

// maxModelTries is how often a file is tried, once for each sample of the machine: the process that reads it may not have
// been found yet.
const maxModelTries = 10

// Emit implements event.Sink. It notes the model, and with each sample of the machine that its process may be known now.
func (r *modelReader) Emit(e event.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch p := e.Data.(type) {
	case *event.Model:
		if p != nil && r.model.Data != e.Data {
			r.model, r.tries = e, 0
			if p.Path != "" {
				r.tries = maxModelTries
			}
		}
	case *event.Host:
		if r.tries > 0 {
			select {
			case r.due <- struct{}{}:
			default:
			}
		}
	}
}

// Run reads the model's file whenever it is due, until ctx ends.
func (r *modelReader) Run(ctx context.Context, sink event.Sink) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-r.due:
		}
		pids := r.processes()
		r.mu.Lock()
		e := r.model
		r.mu.Unlock()
		said, ok := e.Data.(*event.Model)
		if !ok || len(pids) == 0 {
			continue
		}
		var model event.Model
		read := make(chan error, 1)
		go func() { // a file of a network may not answer
			var err error
			model, err = host.ReadModel(pids, said.Path)
			read <- err
		}()
		select {
		case <-ctx.Done():
			return nil
		case err := <-read:
			r.complete(e, &model, err, sink)
		}
	}
}

// complete emits what was read of a model, unless the engine has another one by now.
func (r *modelReader) complete(e event.Event, read *event.Model, err error, sink event.Sink) {
	said := e.Data.(*event.Model)
	full := *said
	full.Fill(read)
	log := event.Event{Kind: event.KindLog, At: e.At, Layer: -1}
	r.mu.Lock()
	if r.model.Data != e.Data {
		r.mu.Unlock()
		return
	}
	r.tries--
	changed := false
	switch last := r.tries == 0; {
	case err == nil && said.Contradicts(read):
		log.Text, r.tries = "model file not used: "+said.Path+" describes another model than the engine", 0
	case err == nil:
		e.Data, changed, r.tries = &full, full != *said, 0
		r.model = e
	case last:
		log.Text = "model file not used: " + err.Error()
	}
	r.mu.Unlock()
	if log.Text != "" {
		sink.Emit(log)
	}
	if changed {
		sink.Emit(e)
	}
}
