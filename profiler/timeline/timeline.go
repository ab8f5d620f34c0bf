// Package timeline writes what engines did as a trace in the Chrome trace format, which Perfetto and other timeline
// viewers open.
package timeline

import (
	"cmp"
	"slices"
	"strings"
	"sync"
	"unsafe"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/store"
)

// maxBytes bounds the memory of what a Trace collects. Events beyond it are counted and not kept.
const maxBytes = 256 << 20

// picksInterval is the shortest time that one slice of router picks covers.
const picksInterval = event.Time(1e9)

// Trace collects the events of one or more engines with a common clock. It is safe for concurrent use.
type Trace struct {
	mu      sync.Mutex // guards what follows, and the engines
	engines []*Engine
	bytes   int // used of maxBytes
	omitted uint64
}

// Engine is the part of a Trace about one engine. It is an event.Sink.
type Engine struct {
	trace *Trace
	name  string
	info  event.EngineInfo
	model string
	end   event.Time // of the newest event

	requests  map[key]request
	passes    []event.Event // forward passes
	usage     []event.Event // samples of the engine's threads
	counters  []counter
	generated map[event.Time]int // tokens by second
	picks     []picks
	counted   *event.Experts // at the end of the last slice of picks
	countedAt event.Time
	dropped   uint64
}

// key identifies a request. An engine that restarted uses its ids again.
type key struct {
	id       event.RequestID
	enqueued event.Time
}

// request is a request with the tokens of all snapshots.
type request struct {
	*store.Request
	tokens []store.Token
}

// counter is one value of a series.
type counter struct {
	at    event.Time
	name  string
	value float64
}

// picks are the experts that each layer picked most in an interval.
type picks struct {
	start, end event.Time
	layers     []string
}

// New returns an empty trace.
func New() *Trace { return &Trace{} }

// Engine adds an engine with a name, "" for that of its events.
func (t *Trace) Engine(name string) *Engine {
	e := &Engine{trace: t, name: name, requests: map[key]request{}, generated: map[event.Time]int{}}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.engines = append(t.engines, e)
	return e
}

// Keep removes all engines except those with a name.
func (t *Trace) Keep(name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.engines = slices.DeleteFunc(t.engines, func(e *Engine) bool { return e.name != name })
}

// Snapshot adds the engine, the model and the requests of a snapshot of a store. Of several, the oldest comes first.
func (e *Engine) Snapshot(s *store.Snapshot) {
	e.trace.mu.Lock()
	defer e.trace.mu.Unlock()
	e.info, e.model, e.end = s.Engine, s.Model.Name, max(e.end, s.Now)
	e.dropped = s.Drops.Total()
	for _, list := range [...][]*store.Request{s.Earlier, s.Requests} {
		for _, r := range list {
			e.request(r)
		}
	}
}

// request adds a request, or replaces it. Requests of polled slots have no exact times and are left out.
func (e *Engine) request(r *store.Request) {
	if r.Polled || r.Enqueued == 0 {
		return
	}
	k := key{r.ID, r.Enqueued}
	tokens := r.Tokens
	if before := e.requests[k].tokens; len(before) > 0 { // an earlier snapshot may have tokens that this one lacks
		n := len(before)
		if len(tokens) > 0 {
			n, _ = slices.BinarySearchFunc(before, tokens[0].Nth, func(t store.Token, nth int32) int { return cmp.Compare(t.Nth, nth) })
		}
		if n > 0 {
			tokens = slices.Concat(before[:n], tokens)
		}
	}
	e.requests[k] = request{r, tokens}
}

// room takes memory, or counts an omitted event if there is too little.
func (e *Engine) room(bytes int) bool {
	if e.trace.bytes+bytes > maxBytes {
		e.trace.omitted++
		return false
	}
	e.trace.bytes += bytes
	return true
}

// Emit implements event.Sink.
func (e *Engine) Emit(v event.Event) {
	e.trace.mu.Lock()
	defer e.trace.mu.Unlock()
	if v.At <= 0 {
		return // before the clock began: when is unknown
	}
	e.end = max(e.end, v.At)
	switch data := v.Data.(type) {
	case *event.Host:
		e.host(v.At, data)
	case *event.Usage:
		if e.room(int(unsafe.Sizeof(v) + unsafe.Sizeof(*data))) {
			e.usage = append(e.usage, v)
		}
	case *event.KV:
		e.count(v.At, "KV cells used", float64(data.Used))
	case *event.Aggregates:
		e.aggregates(v.At, data)
	case *event.Experts:
		e.experts(v.At, data)
	}
	switch {
	case v.Kind == event.KindStep && e.room(int(unsafe.Sizeof(v))):
		e.passes = append(e.passes, v)
	case v.Kind == event.KindToken:
		e.generated[v.At/1e9] += store.StampedTokens(&v)
	}
}

// count adds a value of a series.
func (e *Engine) count(at event.Time, name string, value float64) {
	if e.room(int(unsafe.Sizeof(counter{}))) {
		e.counters = append(e.counters, counter{max(at, 1), name, value})
	}
}

// reading adds a reading to a series, unless it is absent.
func (e *Engine) reading(at event.Time, name string, r event.Reading) {
	if r.OK() {
		e.count(at, name, r.V)
	}
}

// host adds the readings of a sample that the screen shows as series: those over its interval from when that began.
func (e *Engine) host(at event.Time, h *event.Host) {
	for i := range event.HostReadings {
		r := &event.HostReadings[i]
		if r.Gauge == event.NoGauge {
			continue
		}
		from := at
		switch unit := string(r.Unit); {
		case unit == "1", unit == "W", unit == "ns", unit == "{core}", strings.HasSuffix(unit, "/s"): // over the interval
			from -= event.Time(h.Interval)
		}
		e.reading(from, named(r.Title, r.Unit), r.Of(h))
	}
}

// aggregates adds the numbers that a server reports about itself: rates from when their interval began.
func (e *Engine) aggregates(at event.Time, a *event.Aggregates) {
	from := at - event.Time(a.Interval)
	e.reading(at, "running requests", a.Running)
	e.reading(at, "waiting requests", a.Waiting)
	e.reading(at, "KV cache used [0..1]", a.KVUsage)
	e.reading(from, "decode [tokens/s]", a.Decode)
	e.reading(from, "prefill [tokens/s]", a.Prefill)
	e.reading(from, "cache hits [0..1]", a.CacheHits)
}

// experts adds the picks since the last slice once enough time has passed.
func (e *Engine) experts(at event.Time, x *event.Experts) {
	last := e.counted
	switch {
	case last == nil || last.Layers != x.Layers || last.Experts != x.Experts || last.DecodeTokens > x.DecodeTokens || last.PromptTokens > x.PromptTokens:
		e.counted, e.countedAt = x, max(at, e.countedAt) // the first, or of another model: slices do not overlap
		return
	case at-e.countedAt < picksInterval:
		return
	}
	if p := (picks{e.countedAt, at, mostPicked(last, x)}); len(p.layers) > 0 && e.room(32*len(p.layers)) {
		e.picks = append(e.picks, p)
	}
	e.counted, e.countedAt = x, at
}
