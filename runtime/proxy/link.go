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

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime"
)

// link tells of the server as a whole: whether it can be reached, and which models answer.
type link struct {
	clock runtime.Clock
	sink  event.Sink
	down  chan struct{} // the server may be out of reach
	fine  atomic.Bool   // it is not

	mu     sync.Mutex // guards what follows
	engine event.Engine
	models []string
}

// maxModels bounds the models that are named.
const maxModels = 8

func (p *Proxy) newLink(sink event.Sink) *link {
	return &link{
		clock: p.opt.Clock, sink: sink, down: make(chan struct{}, 1),
		engine: event.Engine{
			Name: "proxy " + p.Address() + " → " + p.Target(), Epoch: p.opt.Clock.Epoch(), Caps: event.CapTokens, State: event.EngineReady,
			Remote: event.Remote{Address: p.Target()},
		},
	}
}

// begin introduces the server.
func (l *link) begin() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.introduce()
}

// up says that the server has been reached.
func (l *link) up() {
	if l.fine.CompareAndSwap(false, true) {
		l.set(event.LinkConnected, "")
	}
}

// failed says that it has not.
func (l *link) failed(why string) {
	l.set(event.LinkDisconnected, why)
	l.doubt()
}

// doubt has it looked whether the server can still be reached.
func (l *link) doubt() {
	l.fine.Store(false)
	select {
	case l.down <- struct{}{}:
	default:
	}
}

func (l *link) set(to event.Link, why string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if r := &l.engine.Remote; r.Link != to {
		r.Link, r.Since = to, l.clock.Now()
	}
	l.engine.Remote.Why = why
	l.introduce()
}

// can adds to what the engine reports.
func (l *link) can(caps event.Caps) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.engine.Caps.Has(caps) {
		l.engine.Caps |= caps
		l.introduce()
	}
}

// stop says that nothing more will come.
func (l *link) stop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.engine.State = event.EngineStopped
	l.introduce()
}

// introduce tells what is known. The caller holds mu.
func (l *link) introduce() {
	engine := l.engine
	l.sink.Emit(event.Event{Kind: event.KindEngine, At: l.clock.Now(), Layer: -1, Data: &engine})
}

// model says that a model has answered. All that have are named.
func (l *link) model(name string) {
	name = printable(name)
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

// The waits between looks at a server that cannot be reached.
const (
	firstLook  = 500 * time.Millisecond
	lastLook   = 5 * time.Second
	lookWithin = 5 * time.Second
)

// watch looks whether the server can be reached, at first and then whenever there is a doubt: by connecting to it, without a request.
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
		case <-l.down:
		}
	}
}

// look reports whether there is nothing more to look for.
func (l *link) look(ctx context.Context, at string) bool {
	if l.fine.Load() {
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

// address is the host and the port of a URL.
func address(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return net.JoinHostPort(u.Hostname(), port)
}
