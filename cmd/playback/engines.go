package playback

import (
	"slices"
	"sync"

	"github.com/llmtop/llmtop/cmd/exit"
	"github.com/llmtop/llmtop/cmd/session"
	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/recording"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/ui"
	"github.com/llmtop/llmtop/ui/view"
)

// played holds the engines of a recording, at the current position. Several exist from their first event on, the only
// one always.
type played struct {
	rec      *recording.Recording
	player   *recording.Player
	targets  store.Targets
	newStore func(source int, opt store.Options) (*store.Store, event.Sink)
	actions  view.Actions // of every engine on the screen

	mu      sync.Mutex // guards engines
	engines []playedEngine

	// The last result of sessions, used by one goroutine.
	numbers []int
	shown   []ui.Session
}

// newPlayed returns the engines with a player that opt describes. newStore creates the store of an engine with some
// options, and the sink for its events.
func newPlayed(rec *recording.Recording, targets store.Targets, opt recording.PlayOptions, newStore func(source int, opt store.Options) (*store.Store, event.Sink)) (p *played, err error) {
	p = &played{rec: rec, targets: targets, newStore: newStore}
	if opt.Drain = p.drain; !opt.StopAtEnd { // a report has what comes before a gap, too
		opt.Reset = p.reset
	}
	if rec.MultiEngine {
		opt.SinkFor = p.sinkOf
	}
	if p.player, err = recording.NewPlayer(rec, opt); err != nil {
		return nil, exit.Usage(err)
	}
	return p, nil
}

// playedEngine is one engine.
type playedEngine struct {
	store *store.Store // nil: no events yet
	sink  event.Sink   // drops nothing, see store.Patient
}

// sinkOf returns the sink for the events of a source, see recording.PlayOptions.
func (p *played) sinkOf(source int) event.Sink {
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(p.engines) <= source {
		p.engines = append(p.engines, playedEngine{})
	}
	e := &p.engines[source]
	if e.store == nil {
		*e = p.newEngine(source)
	}
	return e.sink
}

// newEngine returns an engine without events. The stores of several engines have short queues.
func (p *played) newEngine(source int) playedEngine {
	opt := store.Options{Now: p.player.Now, Wall: p.player.Wall, Targets: p.targets}
	if p.rec.MultiEngine {
		opt.Queue = session.ServerQueue
	}
	s, sink := p.newStore(source, opt)
	return playedEngine{store: s, sink: s.Patient(sink)}
}

// drain makes all stores process their events.
func (p *played) drain() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range p.engines {
		if s := p.engines[i].store; s != nil {
			s.Drain()
		}
	}
}

// reset starts again with empty stores. It returns the sink of the only engine, nil for several.
func (p *played) reset() event.Sink {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.rec.MultiEngine {
		clear(p.engines)
		return nil
	}
	p.engines = []playedEngine{p.newEngine(0)}
	return event.SinkFunc(func(e event.Event) { p.sinkOf(0).Emit(e) })
}

// storeOf returns the store of an engine, nil if it has no events yet.
func (p *played) storeOf(source int) *store.Store {
	p.mu.Lock()
	defer p.mu.Unlock()
	if source >= len(p.engines) {
		return nil
	}
	return p.engines[source].store
}

// listed returns the indices of the engines to show: a Prometheus only while there is nothing else.
func (p *played) listed() (numbers []int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var fleets []int
	for i, e := range p.engines {
		switch {
		case e.store == nil:
		case p.rec.Engine(i).Fleet:
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

// sessions returns the sessions for the screen. During a seek the list does not change.
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
		p.shown[i] = ui.Session{Name: p.rec.Engine(n).Name, Snapshots: func() *store.Snapshot { return p.snapshot(n) }, Actions: p.actions}
	}
	return p.shown
}

// snapshot returns the snapshot of an engine, an empty one before its first event.
func (p *played) snapshot(source int) *store.Snapshot {
	if s := p.storeOf(source); s != nil {
		return s.Snapshot()
	}
	return emptySnapshot
}

// emptySnapshot is the snapshot of an engine without events.
var emptySnapshot = store.Empty()
