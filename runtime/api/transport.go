package api

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

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime"
)

// The bounds of connections.
const (
	maxHeader    = 64 << 10 // bytes
	maxRedirects = 3        // followed for one request
	dialWithin   = 10 * time.Second
)

// stamped is a connection that stamps what passes through it.
type stamped struct {
	net.Conn
	clock runtime.Clock
	wrote atomic.Int64           // when the first bytes since the last mark were written; 0: none were
	tell  atomic.Pointer[func()] // is called after they were, once
	read  atomic.Int64           // when the last read has returned with bytes
}

func (w *stamped) Write(b []byte) (int, error) {
	w.wrote.CompareAndSwap(0, int64(w.clock.Now()))
	n, err := w.Conn.Write(b)
	if tell := w.tell.Swap(nil); tell != nil {
		(*tell)()
	}
	return n, err
}

// mark begins a new request on the connection.
func (w *stamped) mark(tell func()) {
	w.wrote.Store(0)
	w.tell.Store(&tell)
}

func (w *stamped) Read(b []byte) (int, error) {
	n, err := w.Conn.Read(b)
	if n > 0 {
		w.read.Store(int64(w.clock.Now()))
	}
	return n, err
}

// dial makes a connection.
type dial func(ctx context.Context, network, address string) (net.Conn, error)

// newTransport is HTTP/1.1 over such connections, each of which serves one request: stamps belong to a request then, and servers that close a
// connection after a stream without a word (llama.cpp's does) do not take the next request with them. It asks for no compression, which would
// hold events back.
func newTransport(clock runtime.Clock, connect dial) *http.Transport {
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

// exchange is a request that was sent, and its answer.
type exchange struct {
	*http.Response
	wire    atomic.Pointer[stamped] // nil before there is a connection
	written func()                  // is called when the first bytes were written, of each hop
}

// sent is when the first bytes of the request were written; false if none were.
func (x *exchange) sent() (event.Time, bool) {
	if w := x.wire.Load(); w != nil {
		at := w.wrote.Load()
		return event.Time(at), at != 0
	}
	return 0, false
}

// read is when the last read of the answer has returned with bytes.
func (x *exchange) read() event.Time {
	if w := x.wire.Load(); w != nil {
		return event.Time(w.read.Load())
	}
	return 0
}

// got takes the connection on which the request is about to be written.
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

// send sends a request without ever repeating it on its own. It follows redirects that keep the method and stay on the host. The caller closes
// the body of the answer.
func (c *Client) send(ctx context.Context, x *exchange, method, path string, body []byte) error {
	at := *c.base
	at.Path += path
	for range maxRedirects + 1 {
		r, err := http.NewRequestWithContext(httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: x.got}), method, at.String(), nil)
		if err != nil {
			return err
		}
		if body != nil {
			r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body)) // without GetBody, by which net/http would send it again
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
	return errors.New("the server redirects again and again")
}

// redirect is where an answer redirects to, nil if it does not.
func redirect(from *url.URL, r *http.Response, method string) (*url.URL, error) {
	switch r.StatusCode {
	case http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther:
		if method != http.MethodGet {
			return nil, &Status{Code: r.StatusCode, Why: "it redirects to " + clean(r.Header.Get("Location"))}
		}
	default:
		return nil, nil
	}
	to, err := from.Parse(r.Header.Get("Location"))
	switch {
	case err != nil || r.Header.Get("Location") == "":
		return nil, &Status{Code: r.StatusCode, Why: "it redirects to nowhere"}
	case to.Host != from.Host || to.Scheme != from.Scheme:
		return nil, fmt.Errorf("the server redirects to %s://%s: give that address if it is to be measured", to.Scheme, to.Host)
	}
	to.User = nil
	return to, nil
}
