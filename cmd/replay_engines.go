package cmd

import (
	"slices"
	"sync"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/profiler/trace"
	"github.com/llmtop/llmtop/ui"
)

// played are the engines of a recording of several, as far as it has been played.
type played struct {
	rec     *trace.Recording
	make    func(source int) (*store.Store, event.Sink)
	actions ui.Actions // of each engine on the screen

	mu      sync.Mutex // guards what follows
	engines []playedEngine

	// As the screen was told last, which asks from one goroutine.
	numbers []int
	shown   []ui.Session
}

// playedEngine is one of them.
type playedEngine struct {
	store *store.Store // nil: nothing has come of it
	sink  event.Sink
	fed   int // events since it has last taken in what came
}

// of is where the events of a source go, see trace.PlayOptions. An engine is there from its first event on.
func (p *played) of(source int) event.Sink {
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(p.engines) <= source {
		p.engines = append(p.engines, playedEngine{})
	}
	e := &p.engines[source]
	if e.store == nil {
		e.store, e.sink = p.make(source)
	}
	if e.fed++; e.fed >= serverQueue {
		e.fed = 0
		e.store.Drain()
	}
	return e.sink
}

// drain has all of them take in what has come.
func (p *played) drain() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range p.engines {
		if e := &p.engines[i]; e.fed > 0 {
			e.fed = 0
			e.store.Drain()
		}
	}
}

// reset begins anew with engines of which nothing has come.
func (p *played) reset() {
	p.mu.Lock()
	defer p.mu.Unlock()
	clear(p.engines)
}

// at is what is known of an engine, nil if nothing is.
func (p *played) at(source int) *store.Store {
	p.mu.Lock()
	defer p.mu.Unlock()
	if source >= len(p.engines) {
		return nil
	}
	return p.engines[source].store
}

// listed are the numbers of the engines that are on show: what tells of others is among them only while nothing else is.
func (p *played) listed() (numbers []int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var fleets []int
	for i, e := range p.engines {
		switch {
		case e.store == nil:
		case p.rec.Source(i).Fleet:
			fleets = append(fleets, i)
		default:
			numbers = append(numbers, i)
		}
	}
	if len(numbers) == 0 {
		return fleets
	}
	return numbers
}

// sessions are what the screen shows. While the recording is played anew up to another moment, they stay those that were there.
func (p *played) sessions(seeking bool) []ui.Session {
	if seeking && len(p.shown) > 0 {
		return p.shown
	}
	numbers := p.listed()
	if slices.Equal(numbers, p.numbers) {
		return p.shown
	}
	p.numbers, p.shown = numbers, make([]ui.Session, len(numbers))
	for i, n := range numbers {
		p.shown[i] = ui.Session{Name: p.rec.Source(n).Name, Snapshots: func() *store.Snapshot { return p.snapshot(n) }, Actions: p.actions}
	}
	return p.shown
}

// snapshot is what is known of an engine, nothing while its past is played.
func (p *played) snapshot(source int) *store.Snapshot {
	if s := p.at(source); s != nil {
		return s.Snapshot()
	}
	return unseen
}

// unseen is an engine of which nothing has come.
var unseen = &store.Snapshot{}
