package proxy

import (
	"context"
	"net"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime/engine"
	"github.com/llmtop/llmtop/runtime/source/answers"
)

// link reports whether the server is reachable.
type link struct {
	clock     engine.Clock
	server    *answers.Server
	suspect   chan struct{} // a check is needed: the server may be unreachable
	reachable atomic.Bool   // the server is reachable
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
	l.server.Update(func(e *event.EngineInfo) {
		e.Remote.Update(to, why, l.clock.Now())
		if to == event.LinkConnected {
			e.State = event.EngineReady // and stays so: it has been reached
		}
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
