package exposition

import (
	"cmp"
	"maps"
	"slices"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/store"
)

const originAttr = "origin"

// What servers tell of themselves in sum, whose word it is among the labels.
var (
	counts = histogram("llmtop.reported.time", "s", "Durations as the engine counts them, in buckets of its own, or as they are derived from its slots, since llmtop watches it",
		engineAttr, "time", originAttr)
	numbers = gauge("llmtop.reported.number", "", "What the engine told of itself last; a name that ends in no unit is a count",
		engineAttr, "number", originAttr)
)

// maxNumbers bounds the numbers of an engine.
const maxNumbers = 128

// reported tells what a server tells of itself in sum. What it does not tell is left out, and is no 0; so is what it is doing now while nobody knows.
func (s *scrape) reported(v *store.Snapshot) {
	r, c := v.Reported, &v.Counts
	if reached(v) {
		s.reading(running, r.Running)
		s.reading(queued, r.Waiting)
		s.numbers(r)
	}
	for _, n := range []struct {
		by     *instrument
		told   event.Reading // of the last interval
		sum    uint64
		values []string
	}{
		{requests, r.Finished, c.Finished, []string{event.StateFinished.String()}},
		{requests, r.Failed, c.Failed, []string{event.StateFailed.String()}},
		{prompted, r.Prompt, c.PromptTokens, nil},
		{cached, r.Cached, c.CachedTokens, nil},
		{generated, r.Generated, c.GeneratedTokens, nil},
	} {
		if n.told.Origin != event.NotReported || n.sum > 0 {
			s.add(n.by, float64(n.sum), n.values...)
		}
	}
}

// reached reports whether the engine is connected, or no connection is needed.
func reached(v *store.Snapshot) bool {
	link := v.Engine.Remote.Link
	return link == event.LinkNone || link == event.LinkConnected
}

// numbers tells the newest report number by number.
func (s *scrape) numbers(r *store.Reported) {
	told := make(map[string]bool) // names may become equal when they are cleaned
	for _, n := range r.Numbers() {
		if name := word(n.Name); n.OK() && !told[name] && len(told) < maxNumbers {
			told[name] = true
			s.add(numbers, n.V, name, n.Origin.String())
		}
	}
}

// times tells the durations that the engine has counted.
func (s *scrape) times() {
	e := s.engine
	e.mu.Lock()
	defer e.mu.Unlock()
	order := func(a, b timed) int { return cmp.Or(cmp.Compare(a.name, b.name), cmp.Compare(a.origin, b.origin)) }
	for _, of := range slices.SortedFunc(maps.Keys(e.durations), order) {
		d := e.durations[of]
		room := len(d.bounds) <= s.buckets
		if room {
			s.buckets -= len(d.bounds)
		}
		s.metric(counts, []string{of.name, of.origin.String()}).Histogram = d.histogram(room)
	}
}
