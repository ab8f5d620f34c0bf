// Package fetch sends requests to untrusted servers: it limits the size of each response, also after decompression,
// and the time; it follows redirects only on the same host; and it sends the API key only to its server and never
// includes it in an error.
package fetch

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	urlpath "path"
	"strings"
	"sync/atomic"
	"time"

	"github.com/llmtop/llmtop/profiler/clean"
)

// Limits of a request.
const (
	DefaultTimeout  = 3 * time.Second // for the whole response
	DefaultMaxBytes = 16 << 20        // of a response, decompressed
	maxHeader       = 64 << 10        // bytes
	maxRedirects    = 3
	dialTimeout     = 2 * time.Second
	idleTimeout     = 90 * time.Second // connections are kept longer than the longest wait between two polls
)

// Options select how to send requests.
type Options struct {
	Key      string        // sent as a bearer token; "": none
	Timeout  time.Duration // for the whole response; 0: DefaultTimeout
	MaxBytes int64         // of a response, decompressed; 0: DefaultMaxBytes
}

// Client sends requests to the server at one address. It is safe for concurrent use.
type Client struct {
	base      url.URL
	opt       Options
	http      http.Client
	malformed atomic.Int64 // numbers of answers in JSON that are not plausible, since they were last asked for
}

// New prepares requests to an address; it sends nothing yet. Errors: an invalid address.
func New(address string, opt Options) (*Client, error) {
	base, err := ParseAddress(address, "pass a key with LLMTOP_API_KEY or --api-key-file")
	if err != nil {
		return nil, err
	}
	if opt.Timeout <= 0 {
		opt.Timeout = DefaultTimeout
	}
	if opt.MaxBytes <= 0 {
		opt.MaxBytes = DefaultMaxBytes
	}
	return &Client{base: *base, opt: opt, http: http.Client{CheckRedirect: sameHost, Transport: &http.Transport{
		Proxy:       http.ProxyFromEnvironment,
		DialContext: (&net.Dialer{Timeout: dialTimeout}).DialContext, TLSHandshakeTimeout: dialTimeout,
		MaxResponseHeaderBytes: maxHeader, MaxIdleConnsPerHost: 2, MaxConnsPerHost: 4, IdleConnTimeout: idleTimeout,
	}}}, nil
}

// Address returns the address of the server.
func (c *Client) Address() string { return c.base.String() }

// Close closes idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Response is the response of a server. Its body is limited in size and time.
type Response struct {
	Status int
	Header http.Header
	Body   io.Reader
	close  func()
	key    string // the key that was sent

	malformed int // numbers that JSON has left out
}

// Close must be called after the body was read.
func (a *Response) Close() { a.close() }

// Is reports whether the body has the given media type.
func (a *Response) Is(media string) bool {
	kind, _, _ := strings.Cut(a.Header.Get("Content-Type"), ";")
	return strings.EqualFold(strings.TrimSpace(kind), media)
}

// Above returns a path below each folder above the address: clients have addresses such as http://HOST/engines/v1 of
// servers whose metrics are at http://HOST/metrics.
func (c *Client) Above(path string) (out []string) {
	for range min(strings.Count(strings.Trim(c.base.Path, "/")+"/", "/"), maxAbove) {
		if path = "/.." + path; c.base.Path != "" {
			out = append(out, path)
		}
	}
	return out
}

// maxAbove limits how many folders above the address are searched.
const maxAbove = 3

// Get requests a path below the address, with its query; one that begins with /.. is below a folder above. A response with any status is not an error. Errors: no
// response, a bad redirect or encoding. Both ctx and Options.Timeout limit the time.
func (c *Client) Get(ctx context.Context, path string) (*Response, error) {
	return c.send(ctx, http.MethodGet, path, nil)
}

// send is like Get, with a method and a body.
func (c *Client) send(ctx context.Context, method, path string, content []byte) (*Response, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, c.opt.Timeout, errTimeout)
	a, err := c.exchange(ctx, method, path, content)
	if err != nil {
		cancel()
		return nil, err
	}
	a.Body = describedBody{http.MaxBytesReader(nil, io.NopCloser(a.Body), c.opt.MaxBytes), ctx}
	release := a.close
	a.close = func() {
		cancel() // first, so that closing does not wait for the rest of the body
		release()
	}
	return a, nil
}

// Stream is like Get for a response that lasts as long as ctx: it is not limited in time or size.
func (c *Client) Stream(ctx context.Context, path string) (*Response, error) {
	return c.exchange(ctx, http.MethodGet, path, nil)
}

// exchange sends a request. It sends a body as JSON.
func (c *Client) exchange(ctx context.Context, method, path string, content []byte) (*Response, error) {
	at := c.base
	path, at.RawQuery, _ = strings.Cut(path, "?")
	if at.Path += path; strings.HasPrefix(path, "/../") {
		at.Path = urlpath.Clean(at.Path)
	}
	q, err := http.NewRequestWithContext(ctx, method, at.String(), bytes.NewReader(content))
	if err != nil {
		return nil, describeError(ctx, err)
	}
	q.Header.Set("User-Agent", "llmtop")
	if c.opt.Key != "" {
		q.Header.Set("Authorization", "Bearer "+c.opt.Key)
	}
	if len(content) > 0 {
		q.Header.Set("Content-Type", "application/json")
	}
	r, err := c.http.Do(q)
	if err != nil {
		return nil, describeError(ctx, err)
	}
	if e := r.Header.Get("Content-Encoding"); e != "" && !strings.EqualFold(e, "identity") { // the client removes gzip's
		_ = r.Body.Close()
		return nil, refusal("response has an unsupported content encoding")
	}
	return &Response{Status: r.StatusCode, Header: r.Header, Body: r.Body, close: func() { _ = r.Body.Close() }, key: c.opt.Key}, nil
}

// sameHost refuses redirects to other hosts, and too many.
func sameHost(to *http.Request, via []*http.Request) error {
	switch from := via[0].URL; {
	case to.URL.Host != from.Host || to.URL.Scheme != from.Scheme:
		return refusal(fmt.Sprintf("redirect to another host: attach to %s://%s instead", clean.Name(to.URL.Scheme), clean.Name(to.URL.Host)))
	case len(via) > maxRedirects:
		return refusal("too many redirects")
	}
	to.URL.User = nil
	return nil
}
