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
	"sync/atomic"
	"time"
)

// Connection limits. Body size, body duration and the time until the server begins to answer have no limit: a request
// that is not streamed is answered only after its last token.
const (
	maxHeader    = 1 << 20          // bytes of all headers of a request or an answer
	maxHeaders   = 1000             // header lines of a request: short lines cost many times their size in memory
	headerWithin = 10 * time.Second // from the first byte of the headers to their end; for a client's first request from the start of its connection
	idleFor      = 2 * time.Minute  // how long an idle client connection stays open, longer than clients keep it
	maxStreams   = 1 << 14          // concurrent streams on one HTTP/2 connection
	dialWithin   = 30 * time.Second
	expectation  = time.Second // wait for "100 Continue", as long as clients wait
	// Idle connections to the server are closed before common servers close them (uvicorn after 5 s): a request that
	// meets a closing connection would fail. For https, where this is less likely and a handshake costs more, they are
	// kept longer.
	keepNear = 4 * time.Second
	keepFar  = 30 * time.Second
)

// newTransport returns a transport to the server for HTTP/1 or, if two is set, HTTP/2. It adds no compression and
// follows no redirects.
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

// versions has a transport for each version of HTTP, and one (once) that never reuses a connection.
type versions struct {
	one, two, once *http.Transport
	headers        time.Duration // time limit from the start of an answer's headers to their end
	closes         atomic.Bool   // the server closes connections without announcing it
}

func newVersions(to *url.URL, headers time.Duration) *versions {
	v := &versions{one: newTransport(to, false), two: newTransport(to, true), once: newTransport(to, false), headers: headers}
	v.once.MaxIdleConnsPerHost = -1
	return v
}

// RoundTrip implements http.RoundTripper. llama.cpp's server closes connections after a stream without announcing it.
// The next request on such a connection would fail and could not be retried, since its prompt is not kept. So
// generating requests to llama.cpp each use a new connection.
func (v *versions) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.ProtoMajor >= 2 {
		return v.two.RoundTrip(r)
	}
	pass := v.one
	if x := exchangeOf(r); x != nil && x.dialect != nil && v.closes.Load() {
		pass = v.once
	}
	res, err := v.withinHeaders(pass, r)
	if err == nil && res.Header.Get("Server") == "llama.cpp" {
		v.closes.Store(true)
	}
	return res, err
}

func (v *versions) close() {
	v.one.CloseIdleConnections()
	v.two.CloseIdleConnections()
}

// newPass returns the handler that forwards requests.
func (p *Proxy) newPass() *httputil.ReverseProxy {
	return &httputil.ReverseProxy{
		Rewrite: p.rewrite, Transport: p.versions, FlushInterval: -1,
		ModifyResponse: answered, ErrorHandler: p.refused, ErrorLog: log.New(io.Discard, "", 0),
	}
}

// rewrite prepares the outgoing request: it changes the host and keeps path and query byte for byte.
func (p *Proxy) rewrite(r *httputil.ProxyRequest) {
	in, out := r.In, r.Out
	out.URL.Scheme, out.URL.Host, out.Host = p.to.Scheme, p.to.Host, ""
	out.URL.RawQuery = in.URL.RawQuery
	out.Trailer = in.Trailer // filled in when the body has been read
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
	if x := exchangeOf(in); x != nil && out.Body != nil {
		out.Body = &prompt{out.Body, x}
	}
}

// answered processes an answer before it is forwarded.
func answered(res *http.Response) error {
	x := exchangeOf(res.Request)
	for _, name := range []string{"Content-Type", "Date"} { // do not add these if the server omitted them
		x.writer.Header()[name] = nil
	}
	x.answered(res)
	return nil
}

// refused answers the client when the server did not.
func (p *Proxy) refused(w http.ResponseWriter, r *http.Request, err error) {
	x := exchangeOf(r)
	err = x.ended(p.opt.Clock.Now(), err, true)
	if x.client.Err() != nil || errors.Is(err, context.Canceled) || errors.Is(err, errClientGone) {
		panic(http.ErrAbortHandler) // the client has disconnected
	}
	if errors.Is(err, errClientBody) {
		w.Header().Set("Connection", "close") // the start of the next request cannot be found
		fail(w, http.StatusBadRequest, "invalid_request_error", plain(err))
		return
	}
	if op := (*net.OpError)(nil); errors.As(err, &op) && op.Op == "dial" {
		p.link.failed(plain(err))
	} else {
		p.link.recheck()
	}
	fail(w, http.StatusBadGateway, "bad_gateway", p.to.String()+": "+plain(err))
}

// fail answers with an error in OpenAI's format.
func fail(w http.ResponseWriter, status int, kind, why string) {
	body, err := json.Marshal(map[string]any{"error": map[string]any{"message": "llmtop proxy: " + why, "type": kind, "code": status}})
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(body) // the client may have disconnected
}
