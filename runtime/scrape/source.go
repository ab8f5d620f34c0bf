// Package scrape watches inference servers over HTTP: a Source asks one of them, again and again, for what it tells of itself, and makes events of that.
// Nothing is sent that makes a server generate. A server that does not answer, answers nonsense or far too much costs a bounded time and memory, and is
// told on the screen with the reason.
package scrape

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime"
	"github.com/llmtop/llmtop/runtime/prober"
	"github.com/llmtop/llmtop/runtime/scrape/fetch"
	"github.com/llmtop/llmtop/runtime/scrape/identify"
)

// DefaultInterval is how often a server is asked.
const DefaultInterval = time.Second

// longestWait is how long a server that cannot be reached is left alone at most.
const longestWait = 15 * time.Second

// Options say which server is watched, and how.
type Options struct {
	Address  string
	Key      string        // sent to the server and nowhere else; "": none
	Interval time.Duration // 0: DefaultInterval
	Clock    runtime.Clock
	Lanes    *Lanes // shared by all servers that are watched; nil: this is the only one
	// Drain takes what a server hands out only once: TensorRT-LLM's iterations, which another reader then lacks.
	Drain bool
	// Shared is what this source knows together with a probe of the server; nil: there is none.
	Shared *prober.Shared
	// Runners are where the llama-servers are asked that an Ollama at this address has started; nil: that cannot be known.
	Runners func() []string
	// Published is what the server publishes besides; nil: nothing is known of that.
	Published Published
}

// Published is what a server publishes besides what it is asked for.
type Published interface {
	// Numbers are what has come since they were asked for last.
	Numbers() []event.Number
	// Passes reports whether forward passes are told.
	Passes() bool
}

// Source is a runtime.Source whose engine is a server that is asked over HTTP.
type Source struct {
	opt    Options
	client *fetch.Client
	sink   event.Sink
	beside sync.WaitGroup // what else runs
	router *router        // follows loads of models; nil: the server has one model
	wake   chan struct{}  // receives when the server is worth a look before it is its turn

	kind   identify.Kind
	info   identify.Info
	watch  watch // nil: it has never answered
	met    bool  // it is what was found out, and has answered ever since
	engine event.Engine
	model  event.Model
	told   event.Time // when the last report was emitted; 0: none was
	wait   time.Duration
}

// watch asks one kind of server.
type watch interface {
	// look asks for everything that is worth asking for now.
	look(ctx context.Context, s *Source) (*event.Report, error)
	// pause is how long until the next look, at most the interval that the user wants.
	pause(interval time.Duration) time.Duration
}

// New prepares to watch a server; nothing is sent until Run. Errors: the address.
func New(opt Options) (*Source, error) {
	if opt.Interval <= 0 {
		opt.Interval = DefaultInterval
	}
	if opt.Lanes == nil {
		opt.Lanes = NewLanes()
	}
	if opt.Shared == nil {
		opt.Shared = new(prober.Shared)
	}
	client, err := fetch.New(opt.Address, fetch.Options{Key: opt.Key})
	if err != nil {
		return nil, fmt.Errorf("watch server: %w", err)
	}
	s := &Source{opt: opt, client: client, wake: make(chan struct{}, 1)}
	s.engine = event.Engine{
		Name: "server", Caps: event.CapReports, State: event.EngineStarting, Epoch: opt.Clock.Epoch(),
		Remote: event.Remote{Address: client.Address(), Link: event.LinkDisconnected, Why: "it has not answered yet"},
	}
	return s, nil
}

// Address is where the server is, without secrets.
func (s *Source) Address() string { return s.client.Address() }

// Run implements runtime.Source. It goes on for as long as ctx, whatever the server does.
func (s *Source) Run(ctx context.Context, sink event.Sink) error {
	s.sink = sink
	defer s.client.Close()
	defer s.forget()
	defer s.beside.Wait()
	s.introduce() // that it tells in sum: until it has answered its counts are absent, and no 0
	for ctx.Err() == nil {
		sick := s.engine.Remote.Link != event.LinkConnected && s.wait > 0
		if !s.opt.Lanes.enter(ctx, sick) {
			break
		}
		began := s.opt.Clock.Now()
		err := s.poll(ctx)
		s.opt.Lanes.leave(sick)
		if ctx.Err() != nil {
			break
		}
		s.linked(err)
		select {
		case <-ctx.Done():
		case <-s.wake:
		case <-time.After(s.until(began)):
		}
	}
	return nil
}

// moments are those of a raster at which looks begin. That several hundred servers share each of them costs less than to wake up for every single one.
const moments = 32

// until is how long to wait for the next look. Looks keep to a raster, of which each address has its own, so that those at many servers are spread
// over time; a look that took longer than the raster leaves out what it missed.
func (s *Source) until(began event.Time) time.Duration {
	if s.wait > 0 {
		return s.wait
	}
	every := int64(s.watch.pause(s.opt.Interval))
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(s.client.Address()))
	phase := int64(hash.Sum64()%moments) * every / moments
	now := int64(s.opt.Clock.Now())
	next := (int64(began)-phase)/every*every + phase + every
	for next <= now || next-int64(began) < every/2 {
		next += every
	}
	return time.Duration(next - now)
}

// poll asks the server once. What it is, is found out first, and again after it was away.
func (s *Source) poll(ctx context.Context) error {
	if !s.met {
		if err := s.meet(ctx); err != nil {
			return err
		}
	}
	report, err := s.watch.look(ctx, s)
	if err == nil {
		err = ctx.Err() // that the end cut questions off is no answer
	}
	if err != nil {
		return err
	}
	s.linked(nil)
	if report != nil {
		s.publish(report)
		s.router.tell(report)
		s.told = s.opt.Clock.Now()
		s.sink.Emit(event.Event{Kind: event.KindReport, At: s.told, Layer: -1, Data: report})
	}
	return nil
}

// publish adds what the server publishes to a report.
func (s *Source) publish(report *event.Report) {
	p := s.opt.Published
	if p == nil {
		return
	}
	if p.Passes() && !s.engine.Caps.Has(event.CapSteps) {
		s.engine.Caps |= event.CapSteps
		s.introduce()
	}
	for _, n := range p.Numbers() {
		more(report, n)
	}
}

// from says in a report that a question to the server is part of it; why is why it is not, if it is not.
func from(report *event.Report, path, why string) {
	path, _, _ = strings.Cut(path, "?")
	report.Sources = append(slices.Clip(report.Sources), event.Source{Name: path, Why: why})
}

// more adds a number to a report, unless it has one of that name.
func more(report *event.Report, n event.Number) {
	i, twice := slices.BinarySearchFunc(report.More, n.Name, func(m event.Number, name string) int { return strings.Compare(m.Name, name) })
	if !twice {
		report.More = slices.Insert(slices.Clip(report.More), i, n)
	}
}

// since is how long ago the last report was emitted, in ns; 0: none was.
func (s *Source) since() int64 {
	if s.told == 0 {
		return 0
	}
	return int64(s.opt.Clock.Now() - s.told)
}

// meet finds out what the server is.
func (s *Source) meet(ctx context.Context) error {
	kind, info, err := identify.Identify(ctx, s.client)
	if err != nil {
		return err
	}
	same := s.watch != nil && s.kind == kind && s.info.Metrics == info.Metrics // then what is known of its counters holds
	s.kind, s.info, s.met = kind, info, true
	if !same {
		s.forget()
		s.watch = s.watcher()
	} else if w, ok := s.watch.(interface{ reconsider(s *Source) }); ok {
		w.reconsider(s) // what it was found to lack, it may have by now
	}
	s.followLoads(ctx)
	s.engine.Name, s.engine.Version, s.engine.State = string(kind), info.Version, event.EngineReady
	s.models(loaded(info.Models))
	return nil
}

// forget lets go of what the watch has kept open.
func (s *Source) forget() {
	if w, ok := s.watch.(interface{ close() }); ok {
		w.close()
	}
}

// linked takes in how the last look went: tells the connection where it has changed, and decides on the wait after a failure.
func (s *Source) linked(err error) {
	link, why := event.LinkConnected, ""
	if err != nil {
		link, why = event.LinkDisconnected, s.reason(err)
		s.met = false
		s.wait = min(max(2*s.wait, s.opt.Interval), longestWait)
	} else {
		s.wait = 0
	}
	if s.engine.Remote.Turn(link, why, s.opt.Clock.Now()) {
		s.introduce()
	}
}

// reason is an error in the words of a user.
func (s *Source) reason(err error) string {
	var refused *fetch.Status
	if errors.As(err, &refused) && refused.NeedsKey() {
		if s.opt.Key != "" {
			return "the server does not take this key"
		}
		return "the server needs a key: --api-key-file FILE, or $LLMTOP_API_KEY"
	}
	return err.Error()
}

// introduce tells what the server is and how it is connected.
func (s *Source) introduce() {
	e := s.engine
	s.sink.Emit(event.Event{Kind: event.KindEngine, At: s.opt.Clock.Now(), Layer: -1, Data: &e})
}

// say puts a line into the engine's log.
func (s *Source) say(format string, args ...any) {
	s.sink.Emit(event.Event{Kind: event.KindLog, At: s.opt.Clock.Now(), Layer: -1, Text: fmt.Sprintf(format, args...)})
}

// restarted tells that the server was started anew.
func (s *Source) restarted(times int) {
	if times > s.engine.Remote.Restarts {
		s.engine.Remote.Restarts = times
		s.say("the server was started anew: its counters have begun again")
		s.introduce()
	}
}
