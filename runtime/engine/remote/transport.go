package remote

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/llmtop/llmtop/profiler/clean"
	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime/engine"
)

// Connection limits.
const (
	maxHeader    = 64 << 10 // bytes
	maxRedirects = 3        // for one request
	dialWithin   = 10 * time.Second
)

// stamped is a connection that records the times of its reads and writes.
type stamped struct {
	net.Conn
	clock   engine.Clock
	wrote   atomic.Int64           // time of the first write since the last mark; 0: none
	onWrite atomic.Pointer[func()] // called once after that write
	read    atomic.Int64           // time of the last read that returned bytes
}

func (w *stamped) Write(b []byte) (int, error) {
	w.wrote.CompareAndSwap(0, int64(w.clock.Now()))
	n, err := w.Conn.Write(b)
	if notify := w.onWrite.Swap(nil); notify != nil {
		(*notify)()
	}
	return n, err
}

// mark starts a new request on the connection.
func (w *stamped) mark(onWrite func()) {
	w.wrote.Store(0)
	w.onWrite.Store(&onWrite)
}

func (w *stamped) Read(b []byte) (int, error) {
	n, err := w.Conn.Read(b)
	if n > 0 {
		w.read.Store(int64(w.clock.Now()))
	}
	return n, err
}

// newTransport returns an HTTP/1.1 transport over stamped connections, each used for one request. So stamps belong to
// one request, and a server that closes the connection after a stream without announcing it, as llama.cpp's does,
// cannot break the next request. It requests no compression, which would delay events.
func newTransport(clock engine.Clock, connect func(ctx context.Context, network, address string) (net.Conn, error)) *http.Transport {
	if connect == nil {
		connect = (&net.Dialer{Timeout: dialWithin}).DialContext
	}
	return &http.Transport{
		Proxy: http.ProxyFromEnvironment,
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			c, err := connect(ctx, network, address)
			if err != nil {
				return nil, err
			}
			return &stamped{Conn: c, clock: clock}, nil
		},
		TLSHandshakeTimeout: dialWithin, MaxResponseHeaderBytes: maxHeader, DisableCompression: true, DisableKeepAlives: true,
	}
}

// exchange is a request and its answer.
type exchange struct {
	*http.Response
	wire    atomic.Pointer[stamped] // nil: not connected yet
	written func()                  // called after the first write, for each redirect
}

// sent returns the time of the request's first write; ok is false if nothing was written.
func (x *exchange) sent() (event.Time, bool) {
	if w := x.wire.Load(); w != nil {
		at := w.wrote.Load()
		return event.Time(at), at != 0
	}
	return 0, false
}

// read returns the time of the last read of the answer that returned bytes.
func (x *exchange) read() event.Time {
	if w := x.wire.Load(); w != nil {
		return event.Time(w.read.Load())
	}
	return 0
}

// got stores the connection on which the request will be written.
func (x *exchange) got(info httptrace.GotConnInfo) {
	c := info.Conn
	if over, ok := c.(*tls.Conn); ok {
		c = over.NetConn()
	}
	if w, ok := c.(*stamped); ok {
		x.wire.Store(w)
		w.mark(x.written)
	}
}

// send sends a request and never retries. It follows redirects that keep the method and the host. The caller closes the
// answer's body.
func (c *Client) send(ctx context.Context, x *exchange, method, path string, body []byte) error {
	at := *c.base.JoinPath(path)
	for range maxRedirects + 1 {
		r, err := http.NewRequestWithContext(httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: x.got}), method, at.String(), nil)
		if err != nil {
			return err
		}
		if body != nil {
			r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body)) // without GetBody, so that net/http cannot send it again
			r.Header.Set("Content-Type", "application/json")
		}
		r.Header.Set("User-Agent", "llmtop")
		if c.opt.Key != "" {
			r.Header.Set("Authorization", "Bearer "+c.opt.Key)
		}
		if x.Response, err = c.transport.RoundTrip(r); err != nil {
			return broken(err)
		}
		next, err := redirect(&at, x.Response, method)
		if err != nil || next == nil {
			if err != nil {
				_ = x.Body.Close()
			}
			return err
		}
		_ = x.Body.Close()
		at = *next
	}
	return errors.New("the server redirects too often")
}

// redirect returns the target of a redirect; nil for other answers.
func redirect(from *url.URL, r *http.Response, method string) (*url.URL, error) {
	switch r.StatusCode {
	case http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther:
		if method != http.MethodGet {
			return nil, &Status{Code: r.StatusCode, Why: "it redirects to " + brief(clean.URL(r.Header.Get("Location")))}
		}
	default:
		return nil, nil
	}
	to, err := from.Parse(r.Header.Get("Location"))
	switch {
	case err != nil || r.Header.Get("Location") == "":
		return nil, &Status{Code: r.StatusCode, Why: "it redirects to nowhere"}
	case to.Host != from.Host || to.Scheme != from.Scheme:
		return nil, fmt.Errorf("the server redirects to %s://%s: use that address instead", clean.Name(to.Scheme), clean.Name(to.Host))
	}
	to.User = nil
	return to, nil
}
