package otlp

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/llmtop/llmtop/profiler/clean"
	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime/engine"
	"github.com/llmtop/llmtop/runtime/source/answers"
)

// gather converts spans to events. The spans of one SGLang request come from several processes at different times, so
// they are held until the request is complete or a timeout expires.
type gather struct {
	clock  engine.Clock
	sink   event.Sink
	server *answers.Server // that sends the traces

	mu      sync.Mutex // guards the fields below
	last    event.RequestID
	seen    [2]map[[24]byte]bool // spans already taken, and those before them: exporters resend after a timeout
	skew    map[string]int64     // clock difference by sender, in ns
	traces  map[[16]byte]*held
	spans   int               // number of held spans
	loading map[string]string // of the current model load by span name, the process whose span is shown: of several the first
	loadEnd int64             // of its overall span; 0: not received yet
	counts  counts
	emitted counts          // counts in the last counters event
	names   []string        // names of unknown spans that were logged
	logged  map[string]bool // kinds of problems that were logged
}

// counts holds the numbers of spans and exports since the receiver started.
type counts struct {
	taken, rejected, repeated, unknown, late, dropped uint64
	exports, refused, deferred                        uint64
	elsewhere                                         uint64 // requests that are not trace exports: metrics, logs, a browser's
}

// Limits on remembered data.
const (
	maxSeen  = 1 << 14 // spans, 40 bytes each
	maxSkew  = 64      // senders
	maxNames = 16
)

// newGather returns a gather, and emits the receiver's first state.
func newGather(at string, clock engine.Clock, sink event.Sink) *gather {
	g := &gather{
		clock: clock, sink: sink, server: answers.NewServer(clock.Now, 0), skew: map[string]int64{}, logged: map[string]bool{},
		traces: map[[16]byte]*held{}, seen: [2]map[[24]byte]bool{{}, nil},
	}
	g.server.Start(sink, event.EngineInfo{
		Name: "traces", Epoch: clock.Epoch(), Caps: event.CapStages | event.CapQueue | event.CapCounters, State: event.EngineReady,
		Remote: event.Remote{Address: at, Link: event.LinkDisconnected, Reason: "no traces received at " + at + " yet", Since: clock.Now()},
	})
	return g
}

// end emits the remaining requests and the last state.
func (g *gather) end() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.flush(nil)
	g.set(event.EngineStopped)
}

// set sets the state of the engine.
func (g *gather) set(state event.EngineState) {
	g.server.Update(func(e *event.EngineInfo) { e.State = state })
}

// emit emits an event. The caller holds mu, as for all methods below.
func (g *gather) emit(e event.Event) {
	e.Layer = -1
	g.sink.Emit(e)
}

// take processes an export received from host at time now.
func (g *gather) take(b *batch, host string, now time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.counts.exports++
	g.counts.taken += uint64(len(b.spans))
	g.counts.rejected += uint64(b.rejected)
	if b.rejected > 0 {
		g.once("rejected", "spans were rejected: "+b.why)
	}
	if len(b.spans) > 0 {
		g.server.Update(func(e *event.EngineInfo) { e.Remote.Update(event.LinkConnected, "", g.clock.Now()) })
	}
	g.shift(b.spans, host, now)
	slices.SortStableFunc(b.spans, func(a, b span) int { return cmp.Compare(a.start, b.start) })
	var loads []span
	for i := range b.spans {
		s := &b.spans[i]
		switch {
		case !g.fresh(s):
			g.counts.repeated++
		case s.end-s.start > int64(event.MaxRequestTime):
			g.strange(s)
		case isLoad(s):
			loads = append(loads, *s)
		case s.end < now.Add(-maxLate).UnixNano():
			g.counts.late++
			g.once("late", fmt.Sprintf("spans that ended more than %v ago are omitted; first: %q", maxLate, s.name))
		default:
			g.span(s, now)
		}
	}
	if len(loads) > 0 {
		g.loaded(loads)
	}
	g.flush(&now)
	g.emitCounts()
}

// span processes a span that is not part of a model load.
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

// strange counts an unknown span and logs the first one of each name.
func (g *gather) strange(s *span) {
	g.counts.unknown++
	if len(g.names) < maxNames && !slices.Contains(g.names, s.name) {
		g.names = append(g.names, s.name)
		g.log(fmt.Sprintf("spans named %q are counted but not shown: unknown attributes", s.name))
	}
}

func (g *gather) log(words string) {
	g.emit(event.Event{Kind: event.KindLog, At: g.clock.Now(), Text: words})
}

// refused counts a request that was not read and logs the first one of each status.
func (g *gather) refused(host string, status int, why string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch status {
	case http.StatusServiceUnavailable: // the sender retries
		g.counts.deferred++
		return
	case http.StatusNotFound: // not a trace export
		g.counts.elsewhere++
		g.once(fmt.Sprint(status), fmt.Sprintf("a request from %s was answered with %d: %s", clean.Cut(host, maxName), status, why))
		return
	}
	g.counts.refused++
	g.once(fmt.Sprint(status), fmt.Sprintf("an export from %s was refused (%d): %s", clean.Cut(host, maxName), status, why))
}

// once logs a kind of problem the first time it occurs.
func (g *gather) once(what, words string) {
	if !g.logged[what] {
		g.logged[what] = true
		g.log(words)
	}
}

// emitCounts emits the counts if they changed.
func (g *gather) emitCounts() {
	if g.counts == g.emitted {
		return
	}
	g.emitted = g.counts
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

// maxLate is the maximum age of a span on arrival: exporters retry for about a minute. An older span means a wrong
// clock.
const maxLate = 10 * time.Minute

// shift converts spans from the sender's clock to this machine's, in place: no span may end after its arrival, or
// longer than maxLate before. Smaller clock differences cannot be separated from the exporter's delay.
func (g *gather) shift(spans []span, host string, now time.Time) {
	if len(spans) == 0 {
		return
	}
	newest := slices.MaxFunc(spans, func(a, b span) int { return cmp.Compare(a.end, b.end) }).end
	by := g.skew[host]
	if at := newest - by; at > now.UnixNano() || at < now.Add(-maxLate).UnixNano() {
		by = newest - now.UnixNano()
		if _, seen := g.skew[host]; seen || len(g.skew) < maxSkew {
			g.skew[host] = by
		}
		g.log(fmt.Sprintf("clock of %s differs by %v, or its spans arrive late: shifting them so that the newest ends now",
			clean.Cut(host, maxName), time.Duration(by).Round(time.Millisecond)))
	}
	for i := range spans {
		spans[i].start -= by
		spans[i].end -= by
	}
}

// at converts Unix ns to the session's clock.
func (g *gather) at(unix int64) event.Time { return event.Time(unix - g.clock.Epoch()) }

// fresh reports whether a span was not taken before, and notes it.
func (g *gather) fresh(s *span) bool {
	k := s.key()
	if g.seen[0][k] || g.seen[1][k] {
		return false
	}
	if len(g.seen[0]) >= maxSeen/2 {
		g.seen = [2]map[[24]byte]bool{{}, g.seen[0]}
	}
	g.seen[0][k] = true
	return true
}
