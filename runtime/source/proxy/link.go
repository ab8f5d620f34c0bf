package proxy

import (
	"context"
	"net"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/llmtop/llmtop/profiler/clean"
	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime/engine"
)

// link reports the state of the server: whether it is reachable, and which models answer.
type link struct {
	clock     engine.Clock
	sink      event.Sink
	suspect   chan struct{} // a check is needed: the server may be unreachable
	reachable atomic.Bool   // the server is reachable

	mu     sync.Mutex // guards the fields below
	engine event.EngineInfo
	models []string
}

// maxModels limits the number of model names.
const maxModels = 8

func (p *Proxy) newLink(sink event.Sink) *link {
	return &link{
		clock: p.opt.Clock, sink: sink, suspect: make(chan struct{}, 1),
		engine: event.EngineInfo{
			Name: "proxy " + p.Address() + " → " + p.Target(), Provider: "unknown", Epoch: p.opt.Clock.Epoch(), Caps: event.CapTokens, State: event.EngineStarting,
			Remote: event.Remote{Address: p.Target()},
		},
	}
}

// begin emits the server's first state.
func (l *link) begin() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.introduce()
}

// up records that the server is reachable.
func (l *link) up() {
	if l.reachable.CompareAndSwap(false, true) {
		l.set(event.LinkConnected, "")
	}
}

// failed records that the server is unreachable, and why.
func (l *link) failed(why string) {
	l.set(event.LinkDisconnected, why)
	l.recheck()
}

// recheck makes watch check whether the server is still reachable.
func (l *link) recheck() {
	l.reachable.Store(false)
	select {
	case l.suspect <- struct{}{}:
	default:
	}
}

func (l *link) set(to event.Link, why string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if r := &l.engine.Remote; r.Link != to {
		r.Link, r.Since = to, l.clock.Now()
	}
	if to == event.LinkConnected {
		l.engine.State = event.EngineReady // and stays so: it has been reached
	}
	l.engine.Remote.Reason = why
	l.introduce()
}

// can adds capabilities to what the engine reports.
func (l *link) can(caps event.Caps) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.engine.Caps.Has(caps) {
		l.engine.Caps |= caps
		l.introduce()
	}
}

// provider sets the program that runs the model, which an answer shows.
func (l *link) provider(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.engine.Provider != name {
		l.engine.Provider = name
		l.introduce()
	}
}

// malformed counts implausible numbers of a response.
func (l *link) malformed(n int) {
	if n == 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.engine.Remote.Malformed += uint64(n)
	l.introduce()
}

// stop reports that the proxy has stopped.
func (l *link) stop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.engine.State = event.EngineStopped
	l.introduce()
}

// introduce emits the current state. The caller holds mu.
func (l *link) introduce() {
	engine := l.engine
	l.sink.Emit(event.Event{Kind: event.KindEngine, At: l.clock.Now(), Layer: -1, Data: &engine})
}

// model adds a model that answered, and emits all names so far.
func (l *link) model(name string) {
	name = clean.Cut(name, maxName)
	l.mu.Lock()
	defer l.mu.Unlock()
	if name == "" || len(l.models) == maxModels || slices.Contains(l.models, name) {
		return
	}
	l.models = append(l.models, name)
	l.sink.Emit(event.Event{
		Kind: event.KindModel, At: l.clock.Now(), Layer: -1, Data: &event.Model{Name: strings.Join(l.models, ", ")},
	})
}

// Intervals between connection attempts to an unreachable server, and the timeout of one attempt.
const (
	firstLook  = 500 * time.Millisecond
	lastLook   = 5 * time.Second
	lookWithin = 5 * time.Second
)

// watch checks whether the server is reachable, at start and after each recheck: it connects and sends no request.
func (l *link) watch(ctx context.Context, at string) {
	for {
		for wait := firstLook; !l.look(ctx, at); wait = min(2*wait, lastLook) {
			select {
			case <-ctx.Done():
				return
			case <-time.After(wait):
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-l.suspect:
		}
	}
}

// look makes one attempt. It returns true when no further attempt is needed.
func (l *link) look(ctx context.Context, at string) bool {
	if l.reachable.Load() {
		return true
	}
	conn, err := (&net.Dialer{Timeout: lookWithin}).DialContext(ctx, "tcp", at)
	if ctx.Err() != nil {
		return true
	}
	if err != nil {
		l.set(event.LinkDisconnected, plain(err))
		return false
	}
	_ = conn.Close()
	l.up()
	return true
}

// address returns HOST:PORT of a URL.
func address(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return net.JoinHostPort(u.Hostname(), port)
}
