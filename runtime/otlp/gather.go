package otlp

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime"
)

// gather makes events of spans. What belongs together comes from several processes, each in its own time, so it is held until it is whole, or has
// been waited for in vain.
type gather struct {
	clock runtime.Clock
	sink  event.Sink

	mu     sync.Mutex // guards what follows
	engine event.Engine
	models []string
	last   event.RequestID
	seen   recent[key] // spans that were taken: exporters that got no answer in time send again
	skew   map[string]int64
	traces map[[16]byte]*held
	spans  int // that are held
	load   load
	counts counts
	told   counts          // as they were told last
	names  []string        // of spans that were not understood, as told in the log
	said   map[string]bool // what the log has been told once
}

// counts are those of spans, and of exports, since the receiver began.
type counts struct {
	taken, rejected, repeated, unknown, late, dropped uint64
	exports, refused, deferred                        uint64
	elsewhere                                         uint64 // requests that are no exports of traces: metrics, logs, a browser's
}

// The bounds on what is remembered.
const (
	maxSeen   = 1 << 14 // spans, 50 bytes each
	maxSkew   = 64      // senders
	maxModels = 8
	maxNames  = 16
)

func newGather(at string, clock runtime.Clock, sink event.Sink) *gather {
	return &gather{
		clock: clock, sink: sink, skew: map[string]int64{}, said: map[string]bool{}, traces: map[[16]byte]*held{}, seen: recent[key]{most: maxSeen},
		engine: event.Engine{
			Name: "traces", Epoch: clock.Epoch(), Caps: event.CapStages | event.CapQueue | event.CapCounters, State: event.EngineReady,
			Remote: event.Remote{Address: at, Link: event.LinkDisconnected, Why: "nobody has sent traces to " + at + " yet"},
		},
	}
}

// begin introduces the receiver, end says that nothing more will come.
func (g *gather) begin() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.engine.Remote.Since = g.clock.Now()
	g.introduce()
}

func (g *gather) end() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.flush(nil)
	g.engine.State = event.EngineStopped
	g.introduce()
}

// introduce tells what is known of those who send. The caller holds mu, as for all that follows.
func (g *gather) introduce() {
	engine := g.engine
	g.emit(event.Event{Kind: event.KindEngine, At: g.clock.Now(), Data: &engine})
}

func (g *gather) emit(e event.Event) {
	e.Layer = -1
	g.sink.Emit(e)
}

// take takes in an export that came from a host at a moment.
func (g *gather) take(b *batch, host string, now time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.counts.exports++
	g.counts.taken += uint64(len(b.spans))
	g.counts.rejected += uint64(b.rejected)
	if b.rejected > 0 {
		g.once("rejected", "spans were rejected: "+b.why)
	}
	if r := &g.engine.Remote; r.Link != event.LinkConnected && len(b.spans) > 0 {
		r.Link, r.Why, r.Since = event.LinkConnected, "", g.clock.Now()
		g.introduce()
	}
	g.shift(b.spans, host, now)
	slices.SortStableFunc(b.spans, func(a, b span) int { return cmp.Compare(a.start, b.start) })
	var loads []span
	for i := range b.spans {
		s := &b.spans[i]
		switch {
		case !g.seen.add(s.key()):
			g.counts.repeated++
		case s.end-s.start > maxSeconds*1e9:
			g.strange(s)
		case isLoad(s):
			loads = append(loads, *s)
		case s.end < now.Add(-maxLate).UnixNano():
			g.counts.late++
			g.once("late", fmt.Sprintf("spans that ended more than %v ago are left out: the first one is %q", maxLate, s.name))
		default:
			g.span(s, now)
		}
	}
	if len(loads) > 0 {
		g.loaded(loads)
	}
	g.flush(&now)
	g.tell()
}

// span takes in a span that is none of a load.
func (g *gather) span(s *span, now time.Time) {
	switch {
	case s.ofSGLang():
		g.hold(s, now)
	case s.name == "llm_request" || s.ttft.known || s.e2e.known:
		g.request(s, nil)
	default:
		g.strange(s)
	}
}

// strange counts a span that is not understood. The first of each name is told of.
func (g *gather) strange(s *span) {
	g.counts.unknown++
	if len(g.names) < maxNames && !slices.Contains(g.names, s.name) {
		g.names = append(g.names, s.name)
		g.log(fmt.Sprintf("spans named %q are counted and not shown: they tell nothing that is understood", s.name))
	}
}

func (g *gather) log(words string) {
	g.emit(event.Event{Kind: event.KindLog, At: g.clock.Now(), Text: words})
}

// refused counts a request that was not read. The first of each status is told of.
func (g *gather) refused(host string, status int, why string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch status {
	case http.StatusServiceUnavailable: // it is sent again
		g.counts.deferred++
		return
	case http.StatusNotFound: // no traces
		g.counts.elsewhere++
		g.once(fmt.Sprint(status), fmt.Sprintf("a request from %s was answered with %d: %s", printable(host), status, why))
		return
	}
	g.counts.refused++
	g.once(fmt.Sprint(status), fmt.Sprintf("an export from %s was refused (%d): %s", printable(host), status, why))
}

// once tells the log of something for the first time that it happens.
func (g *gather) once(what, words string) {
	if !g.said[what] {
		g.said[what] = true
		g.log(words)
	}
}

// tell tells the counts, if they have changed.
func (g *gather) tell() {
	if g.counts == g.told {
		return
	}
	g.told = g.counts
	c := &g.counts
	g.emit(event.Event{Kind: event.KindCounters, At: g.clock.Now(), Data: &event.Counters{Values: []event.Counter{
		{Name: "exports_deferred", Value: float64(c.deferred)},
		{Name: "exports_refused", Value: float64(c.refused)},
		{Name: "exports_taken", Value: float64(c.exports)},
		{Name: "requests_elsewhere", Value: float64(c.elsewhere)},
		{Name: "spans_dropped", Value: float64(c.dropped)},
		{Name: "spans_late", Value: float64(c.late)},
		{Name: "spans_rejected", Value: float64(c.rejected)},
		{Name: "spans_repeated", Value: float64(c.repeated)},
		{Name: "spans_taken", Value: float64(c.taken)},
		{Name: "spans_unknown", Value: float64(c.unknown)},
	}}})
}

// maxLate is how late a span may come: exporters try for about a minute. One that comes later is from a clock that is wrong.
const maxLate = 10 * time.Minute

// shift moves spans from the sender's clock to this machine's, in place: nothing may end after it was told of, nor long before. Smaller
// differences cannot be told from the time that exporters wait.
func (g *gather) shift(spans []span, host string, now time.Time) {
	if len(spans) == 0 {
		return
	}
	newest := slices.MaxFunc(spans, func(a, b span) int { return cmp.Compare(a.end, b.end) }).end
	by := g.skew[host]
	if at := newest - by; at > now.UnixNano() || at < now.Add(-maxLate).UnixNano() {
		by = newest - now.UnixNano()
		if _, known := g.skew[host]; known || len(g.skew) < maxSkew {
			g.skew[host] = by
		}
		g.log(fmt.Sprintf("the clock of %s differs by %v from this machine's, or its spans come late: they are shown as if the newest had ended just now",
			printable(host), time.Duration(by).Round(time.Millisecond)))
	}
	for i := range spans {
		spans[i].start -= by
		spans[i].end -= by
	}
}

// at is a moment on the session's clock.
func (g *gather) at(unix int64) event.Time { return event.Time(unix - g.clock.Epoch()) }

// can adds to what the senders report.
func (g *gather) can(caps event.Caps) {
	if !g.engine.Caps.Has(caps) {
		g.engine.Caps |= caps
		g.introduce()
	}
}

// model says that a model has answered. All that have are named.
func (g *gather) model(name string) {
	if name == "" || len(g.models) == maxModels || slices.Contains(g.models, name) {
		return
	}
	g.models = append(g.models, name)
	g.emit(event.Event{Kind: event.KindModel, At: g.clock.Now(), Data: &event.Model{Name: listed(g.models)}})
}

// recent remembers the last keys that were added.
type recent[K comparable] struct {
	most int
	of   map[K]bool
	list []K // oldest first
}

// add reports whether a key is new. The oldest quarter goes when there are too many.
func (r *recent[K]) add(k K) bool {
	if r.of[k] {
		return false
	}
	if r.of == nil {
		r.of = make(map[K]bool)
	}
	if len(r.list) >= r.most {
		for _, old := range r.list[:r.most/4] {
			delete(r.of, old)
		}
		r.list = append(r.list[:0], r.list[r.most/4:]...)
	}
	r.of[k] = true
	r.list = append(r.list, k)
	return true
}
