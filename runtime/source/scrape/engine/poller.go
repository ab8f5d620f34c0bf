// Package engine knows inference engines: a file each has how an engine is recognised, what its metrics mean, its
// endpoints, its command line and its names of settings. A Poller reads the metrics and status of one server over HTTP
// at an interval and emits events. It never sends a request that makes the server generate. A server that does not
// respond, or sends malformed or oversized responses, costs bounded time and memory, and the screen shows the reason.
//
// Terms in this package and beside it: a server is the process behind one address; an engine is the inference program
// that it runs, such as vLLM; an endpoint is one path of a server; a poll is one round of requests to a server; a model
// is what the server has loaded. A Poller is an event source (engine.Source of runtime/engine); a collector reads the
// endpoints of one kind of engine.
package engine

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime/engine"
	"github.com/llmtop/llmtop/runtime/source/scrape/fetch"
)

// DefaultInterval is the default time between two polls of a server.
const DefaultInterval = time.Second

// maxBackoff is the longest wait between two attempts to reach an unreachable server.
const maxBackoff = 15 * time.Second

// Options select the server to poll and how to poll it.
type Options struct {
	Address  string
	Key      string        // sent to this server only; "": no key
	Interval time.Duration // 0: DefaultInterval
	Clock    engine.Clock
	// Drain reads data that a server returns only once: the iterations of TensorRT-LLM. Other readers then miss it.
	Drain bool
	// KeepAwake polls llama-servers also where that keeps an idle model from falling asleep.
	KeepAwake bool
	// NeverSleeps reports whether the llama-server at this address was started without a way to put its model to sleep;
	// nil: unknown.
	NeverSleeps func() bool
	// Runners returns the addresses of the llama-servers that the Ollama at this address has started, with the names of
	// their models' files; nil: unknown.
	Runners func() map[string]string
}

// Poller is an engine.Source that polls one server over HTTP.
type Poller struct {
	opt        Options
	client     *fetch.Client
	sink       event.Sink
	clock      engine.Clock
	engine     event.EngineInfo // as emitted last
	model      event.Model      // as emitted last
	background sync.WaitGroup   // goroutines to wait for at the end
	requests   atomic.Uint64    // ID of the last request in a slot
	loads      *loadFollower    // follows model loads; nil: the server has only one model
	wake       chan struct{}    // receives when the server should be polled before the interval ends

	info       Info
	collector  collector  // nil: the server has never responded
	refused    bool       // nothing listened at the address since it was identified last
	identified bool       // the kind is current: the server has responded ever since
	lastReport event.Time // when the last report was emitted; 0: never
	phase      int64      // start time within an interval, below phases
	backoff    time.Duration
}

// collector reads the endpoints of one kind of engine.
type collector interface {
	// collect polls the endpoints that are due and returns a report, or nil if there is nothing to report.
	collect(ctx context.Context, s *Poller) (*event.Aggregates, error)
	// interval returns the time between polls, given the interval that the user wants.
	interval(interval time.Duration) time.Duration
}

// New prepares to poll a server; it sends nothing before Run. Errors: an invalid address.
func New(opt Options) (*Poller, error) {
	if opt.Interval <= 0 {
		opt.Interval = DefaultInterval
	}
	client, err := fetch.New(opt.Address, fetch.Options{Key: opt.Key})
	if err != nil {
		return nil, fmt.Errorf("poll server: %w", err)
	}
	info := event.EngineInfo{
		Name: "server", Caps: event.CapAggregates, State: event.EngineStarting, Epoch: opt.Clock.Epoch(),
		Remote: event.Remote{Address: client.Address(), Link: event.LinkDisconnected, Reason: "no response yet"},
	}
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(client.Address()))
	return &Poller{clock: opt.Clock, engine: info, opt: opt, client: client, wake: make(chan struct{}, 1), phase: int64(hash.Sum64() % phases)}, nil
}

// Address returns the address of the server, without secrets.
func (s *Poller) Address() string { return s.client.Address() }

// Run implements engine.Source. It polls until ctx ends, whatever the server does.
func (s *Poller) Run(ctx context.Context, sink event.Sink) error {
	s.sink = sink
	defer s.client.Close()
	defer s.closeCollector()
	defer s.background.Wait()
	s.emitEngine() // announces aggregate metrics: until the first response, counts are absent instead of 0
	next := time.NewTimer(0)
	defer next.Stop()
	for ctx.Err() == nil {
		began := s.clock.Now()
		err := s.poll(ctx)
		if ctx.Err() != nil {
			break
		}
		s.answered(err)
		next.Reset(s.delay(began))
		select {
		case <-ctx.Done():
		case <-s.wake:
		case <-next.C:
		}
	}
	return nil
}

// phases is the number of start times within an interval. Several hundred servers that share them cost less than one
// wake-up per server.
const phases = 32

// delay returns the time until the next poll. Polls start at fixed times, with an offset per address, so that polls of
// many servers spread over the interval. A poll that takes longer than the interval skips the start times that it
// missed.
func (s *Poller) delay(began event.Time) time.Duration {
	if s.backoff > 0 {
		return s.backoff
	}
	every := int64(s.collector.interval(s.opt.Interval))
	phase := s.phase * every / phases
	now := int64(s.clock.Now())
	next := (int64(began)-phase)/every*every + phase + every
	for next <= now || next-int64(began) < every/2 {
		next += every
	}
	return time.Duration(next - now)
}

// poll polls the server once. It first identifies the server, and does so again after the server was unreachable.
func (s *Poller) poll(ctx context.Context) error {
	if !s.identified {
		if err := s.identify(ctx); err != nil {
			return err
		}
	}
	report, err := s.collector.collect(ctx, s)
	s.countMalformed(s.client.Malformed())
	if err == nil {
		err = ctx.Err() // requests cut off by the end of ctx are not a response
	}
	if err != nil {
		return err
	}
	s.answered(nil)
	if report != nil {
		s.loads.addTo(report)
		s.lastReport = s.clock.Now()
		s.sink.Emit(event.Event{Kind: event.KindAggregates, At: s.lastReport, Layer: -1, Data: report})
	}
	return nil
}

// addEndpoint adds an endpoint to a report. why is the reason why it was not read; "": it was read.
func addEndpoint(report *event.Aggregates, path, why string) {
	path, _, _ = strings.Cut(path, "?")
	path = shownPath(path)
	report.Endpoints = append(slices.Clip(report.Endpoints), event.Endpoint{Name: path, Reason: why})
}

// shownPath returns a path as it is shown: without the steps to folders above the address.
func shownPath(path string) string {
	for strings.HasPrefix(path, "/../") {
		path = path[len("/.."):]
	}
	return path
}

// addReading adds a reading to a report, unless it has one with that name.
func addReading(report *event.Aggregates, n event.NamedReading) {
	i, exists := slices.BinarySearchFunc(report.More, n.Name, func(m event.NamedReading, name string) int { return strings.Compare(m.Name, name) })
	if !exists {
		report.More = slices.Insert(slices.Clip(report.More), i, n)
	}
}

// sinceReport returns the time since the last report in ns; 0: there was none.
func (s *Poller) sinceReport() int64 {
	if s.lastReport == 0 {
		return 0
	}
	return int64(s.clock.Now() - s.lastReport)
}

// identify determines the kind of the server and chooses the collector.
func (s *Poller) identify(ctx context.Context) error {
	info, err := Identify(ctx, s.client)
	if err != nil {
		return err
	}
	if s.opt.KeepAwake || info.Sleeps && !info.Router && s.opt.NeverSleeps != nil && s.opt.NeverSleeps() {
		info.Sleeps, info.MetricsWake = false, false
	}
	// For the same kind of server, the previous counters remain valid, and count from 0 if it was restarted.
	same := s.collector != nil && s.info.Kind == info.Kind
	if same && info.rejected {
		info.MetricsPath = s.info.MetricsPath // what it has while it loads is unknown
	}
	same = same && (s.info.MetricsPath == info.MetricsPath || s.info.rejected)
	s.info, s.identified = info, true
	if !same {
		s.closeCollector()
		s.collector = newCollector(s)
	} else if w, ok := s.collector.(interface{ recheck(s *Poller) }); ok {
		w.recheck(s) // features that were missing may be available now
	}
	s.refused = false
	followLoads(ctx, s)
	before := s.engine
	s.engine.Name, s.engine.Version, s.engine.State = string(info.Kind), info.Version, event.EngineReady
	if s.engine != before && s.engine.Remote.Link == event.LinkConnected {
		s.emitEngine() // another engine runs there now
	}
	s.setModels(loaded(info.Models))
	return nil
}

// closeCollector closes the connections of the collector.
func (s *Poller) closeCollector() {
	if w, ok := s.collector.(interface{ close() }); ok {
		w.close()
	}
}

// answered records the result of the last poll: the connection state, and the backoff after a failure.
func (s *Poller) answered(err error) {
	if err == nil {
		s.backoff = 0
		s.setLink(event.LinkConnected, "")
		return
	}
	s.identified, s.refused = false, s.refused || errors.Is(err, syscall.ECONNREFUSED)
	s.backoff = min(max(2*s.backoff, s.opt.Interval), maxBackoff)
	s.setLink(event.LinkDisconnected, s.client.Explain(err, "the server rejects this API key", "API key required"))
}
