// Package fetch sends requests to untrusted servers: it limits the size of each response, also after decompression,
// and the time; it follows redirects only on the same host; and it sends the API key only to its server and never
// includes it in an error.
package fetch

import (
	"bytes"
	"compress/gzip"
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
	header    http.Header // of every request without a body; never modified
	transport *http.Transport
	malformed atomic.Int64 // numbers of answers in JSON that are not plausible, since they were last asked for
}

// New prepares requests to an address; it sends nothing yet. Errors: an invalid address.
func New(address string, opt Options) (*Client, error) {
	base, err := ParseAddress(address)
	if err != nil {
		return nil, err
	}
	if opt.Timeout <= 0 {
		opt.Timeout = DefaultTimeout
	}
	if opt.MaxBytes <= 0 {
		opt.MaxBytes = DefaultMaxBytes
	}
	header := http.Header{"User-Agent": {"llmtop"}, "Accept-Encoding": {"gzip"}}
	if opt.Key != "" {
		header.Set("Authorization", "Bearer "+opt.Key)
	}
	return &Client{base: *base, opt: opt, header: header, transport: &http.Transport{
		Proxy:       http.ProxyFromEnvironment,
		DialContext: (&net.Dialer{Timeout: dialTimeout}).DialContext, TLSHandshakeTimeout: dialTimeout,
		MaxResponseHeaderBytes: maxHeader, DisableCompression: true, // decompressed here, where the size is limited
		MaxIdleConnsPerHost: 2, MaxConnsPerHost: 4, IdleConnTimeout: idleTimeout,
	}}, nil
}

// Address returns the address of the server.
func (c *Client) Address() string { return c.base.String() }

// Close closes idle connections.
func (c *Client) Close() { c.transport.CloseIdleConnections() }

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
		err = describeError(ctx, err)
		cancel()
		return nil, err
	}
	body := a.Body
	a.key = c.opt.Key
	a.Body = &boundedBody{reader: body, left: c.opt.MaxBytes, ctx: ctx}
	release := a.close
	a.close = func() {
		cancel() // first, so that closing does not wait for the rest of the body
		release()
	}
	return a, nil
}

// Stream is like Get for a response that lasts as long as ctx: it is not limited in time or size.
func (c *Client) Stream(ctx context.Context, path string) (*Response, error) {
	a, err := c.exchange(ctx, http.MethodGet, path, nil)
	if err != nil {
		return nil, describeError(ctx, err)
	}
	a.key = c.opt.Key
	return a, nil
}

// exchange follows redirects on the same host. It sends a body as JSON.
func (c *Client) exchange(ctx context.Context, method, path string, content []byte) (*Response, error) {
	at := c.base
	path, at.RawQuery, _ = strings.Cut(path, "?")
	if at.Path += path; strings.HasPrefix(path, "/../") {
		at.Path = urlpath.Clean(at.Path)
	}
	for range maxRedirects + 1 {
		answer, err := c.roundTrip(ctx, method, &at, content)
		if err != nil {
			return nil, err
		}
		next, err := redirectTarget(&at, answer)
		if err != nil || next != nil {
			_ = answer.Body.Close()
		}
		if err != nil {
			return nil, err
		}
		if next == nil {
			return decompress(answer)
		}
		at = *next
	}
	return nil, refusal("too many redirects")
}

// roundTrip sends a request through the transport.
func (c *Client) roundTrip(ctx context.Context, method string, at *url.URL, content []byte) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, method, at.String(), bytes.NewReader(content))
	if err != nil {
		return nil, err
	}
	if r.Header = c.header; len(content) > 0 {
		r.Header = c.header.Clone()
		r.Header.Set("Content-Type", "application/json")
	}
	return c.transport.RoundTrip(r)
}

// decompress returns a response with decompressed body.
func decompress(r *http.Response) (*Response, error) {
	a := &Response{Status: r.StatusCode, Header: r.Header, Body: r.Body, close: func() { _ = r.Body.Close() }}
	switch strings.ToLower(r.Header.Get("Content-Encoding")) {
	case "", "identity":
	case "gzip", "x-gzip":
		unpacked, err := gzip.NewReader(r.Body)
		if err != nil {
			_ = r.Body.Close()
			return nil, refusal("decompress response: " + err.Error())
		}
		a.Body = unpacked
	default:
		_ = r.Body.Close()
		return nil, refusal("response has an unsupported content encoding")
	}
	return a, nil
}

// redirectTarget returns the target of a redirect; nil for any other response.
func redirectTarget(from *url.URL, r *http.Response) (*url.URL, error) {
	switch r.StatusCode {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
	default:
		return nil, nil
	}
	to, err := from.Parse(r.Header.Get("Location"))
	switch {
	case err != nil || r.Header.Get("Location") == "":
		return nil, refusal("redirect without a location")
	case to.Host != from.Host || to.Scheme != from.Scheme:
		return nil, refusal(fmt.Sprintf("redirect to another host: attach to %s://%s instead", clean.Name(to.Scheme), clean.Name(to.Host)))
	}
	to.User = nil
	return to, nil
}
