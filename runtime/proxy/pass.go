package proxy

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// The bounds of connections. Nothing limits how long a request or an answer may take, or how large it may be.
const (
	maxHeader   = 1 << 30 // bytes, both ways
	maxStreams  = 1 << 14 // side by side on one HTTP/2 connection
	dialWithin  = 30 * time.Second
	expectation = time.Second // for "100 Continue", as clients wait
	// Idle connections to the server are given up before common servers do so (uvicorn after 5 s): a request that meets a connection just
	// when it is being closed would fail. Far away, where that is less likely and a handshake costs more, they are kept longer.
	keepNear = 4 * time.Second
	keepFar  = 30 * time.Second
)

// newTransport makes the connections to the server, which speak the version of HTTP that the client speaks. It asks for no compression of its
// own and follows no redirects.
func newTransport(to *url.URL, two bool) *http.Transport {
	t := &http.Transport{
		Proxy: http.ProxyFromEnvironment, DialContext: (&net.Dialer{Timeout: dialWithin}).DialContext, TLSHandshakeTimeout: dialWithin,
		DisableCompression: true, MaxIdleConnsPerHost: 1 << 16, IdleConnTimeout: keepFar,
		MaxResponseHeaderBytes: maxHeader, ExpectContinueTimeout: expectation, Protocols: new(http.Protocols),
	}
	if to.Scheme == "http" {
		t.IdleConnTimeout = keepNear
	}
	t.Protocols.SetHTTP1(!two)
	t.Protocols.SetHTTP2(two)
	t.Protocols.SetUnencryptedHTTP2(two)
	return t
}

// versions is a transport for each version of HTTP, and one that uses no connection twice.
type versions struct {
	one, two, once *http.Transport
	closes         atomic.Bool // the server closes connections without having said so
}

func newVersions(to *url.URL) *versions {
	v := &versions{one: newTransport(to, false), two: newTransport(to, true), once: newTransport(to, false)}
	v.once.MaxIdleConnsPerHost = -1
	return v
}

// RoundTrip implements http.RoundTripper. llama.cpp's server closes connections behind its streams without having said so: the next request on
// one would fail, and could not be sent again, since nobody has kept its prompt. Requests that it generates for therefore have connections
// of their own.
func (v *versions) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.ProtoMajor >= 2 {
		return v.two.RoundTrip(r)
	}
	pass := v.one
	if x := exchangeOf(r); x != nil && x.dialect != nil && v.closes.Load() {
		pass = v.once
	}
	res, err := pass.RoundTrip(r)
	if err == nil && res.Header.Get("Server") == "llama.cpp" {
		v.closes.Store(true)
	}
	return res, err
}

func (v *versions) close() {
	v.one.CloseIdleConnections()
	v.two.CloseIdleConnections()
}

// newPass makes what passes requests on.
func (p *Proxy) newPass() *httputil.ReverseProxy {
	return &httputil.ReverseProxy{
		Rewrite: p.rewrite, Transport: p.versions, FlushInterval: -1, BufferPool: &buffers{},
		ModifyResponse: answered, ErrorHandler: p.refused, ErrorLog: log.New(io.Discard, "", 0),
	}
}

// rewrite turns a request that came into the one that is sent: another host, and otherwise the same, the path and the query letter by letter.
func (p *Proxy) rewrite(r *httputil.ProxyRequest) {
	in, out := r.In, r.Out
	out.URL.Scheme, out.URL.Host, out.Host = p.to.Scheme, p.to.Host, ""
	out.URL.RawQuery = in.URL.RawQuery
	out.Trailer = in.Trailer // is filled in when the body has been read
	for _, name := range []string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto"} {
		if values, ok := in.Header[name]; ok {
			out.Header[name] = values
		}
	}
	out.URL.Path, out.URL.RawPath = p.to.Path+in.URL.Path, p.to.EscapedPath()+in.URL.EscapedPath()
	if raw, _, _ := strings.Cut(in.RequestURI, "?"); strings.HasPrefix(raw, "/") {
		raw = p.to.EscapedPath() + raw
		if raw != out.URL.EscapedPath() && !strings.HasPrefix(raw, "//") {
			out.URL.Opaque = raw
		}
	}
	if x := exchangeOf(in); x != nil && x.dialect != nil && out.Body != nil {
		out.Body = &prompt{out.Body, x}
	}
}

// answered sees an answer before it is passed on.
func answered(res *http.Response) error {
	x := exchangeOf(res.Request)
	for _, name := range []string{"Content-Type", "Date"} { // are not to be added where the server has left them out
		x.writer.Header()[name] = nil
	}
	x.answered(res)
	return nil
}

// refused answers for a server that did not.
func (p *Proxy) refused(w http.ResponseWriter, r *http.Request, err error) {
	x := exchangeOf(r)
	x.ended(p.opt.Clock.Now(), err, true)
	if x.client.Err() != nil || errors.Is(err, context.Canceled) {
		panic(http.ErrAbortHandler) // nobody listens any more
	}
	if op := (*net.OpError)(nil); errors.As(err, &op) && op.Op == "dial" {
		p.link.failed(plain(err))
	} else {
		p.link.doubt()
	}
	body, err := json.Marshal(map[string]any{"error": map[string]any{
		"message": "llmtop proxy: " + p.to.String() + ": " + plain(err), "type": "bad_gateway", "code": http.StatusBadGateway,
	}})
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusBadGateway)
	_, _ = w.Write(body) // the client may have gone
}

// buffers are used again for the bytes that pass through.
type buffers struct{ pool sync.Pool }

// passes is how much is passed on at once, in bytes.
const passes = 32 << 10

// Get implements httputil.BufferPool.
func (b *buffers) Get() []byte {
	if buffer, ok := b.pool.Get().(*[passes]byte); ok {
		return buffer[:]
	}
	return make([]byte, passes)
}

// Put implements httputil.BufferPool.
func (b *buffers) Put(buffer []byte) { b.pool.Put((*[passes]byte)(buffer)) }
