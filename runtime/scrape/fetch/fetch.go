// Package fetch asks servers that nobody vouches for: every answer is bounded in size and time, compression included, redirects stay on the host,
// and a key goes to the server that it is for and is never part of an error.
package fetch

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// The bounds of an exchange.
const (
	DefaultWithin = 3 * time.Second // for an answer as a whole
	DefaultBytes  = 16 << 20        // of an answer, unpacked
	maxHeader     = 64 << 10        // bytes
	maxRedirects  = 3
	dialWithin    = 2 * time.Second
	idleFor       = 90 * time.Second // connections are kept, longer than the longest wait between two questions
)

// Options say how a server is asked.
type Options struct {
	Key    string        // sent as a bearer token; "": none
	Within time.Duration // for an answer as a whole; 0: DefaultWithin
	Bytes  int64         // of an answer, unpacked; 0: DefaultBytes
}

// Client asks the server at one address. It is safe for use by several goroutines.
type Client struct {
	base      url.URL
	opt       Options
	transport *http.Transport
}

// New prepares to ask the server at an address; nothing is sent yet. Errors: the address.
func New(address string, opt Options) (*Client, error) {
	base, err := ParseAddress(address)
	if err != nil {
		return nil, err
	}
	if opt.Within <= 0 {
		opt.Within = DefaultWithin
	}
	if opt.Bytes <= 0 {
		opt.Bytes = DefaultBytes
	}
	return &Client{base: *base, opt: opt, transport: &http.Transport{
		Proxy:       http.ProxyFromEnvironment,
		DialContext: (&net.Dialer{Timeout: dialWithin}).DialContext, TLSHandshakeTimeout: dialWithin,
		MaxResponseHeaderBytes: maxHeader, DisableCompression: true, // unpacked here, where it is bounded
		MaxIdleConnsPerHost: 2, MaxConnsPerHost: 4, IdleConnTimeout: idleFor,
		ReadBufferSize: 4 << 10, WriteBufferSize: 1 << 10, // whoever reads a large answer has a buffer of its own
	}}, nil
}

// Address is where the server is.
func (c *Client) Address() string { return c.base.String() }

// Close lets go of the connections.
func (c *Client) Close() { c.transport.CloseIdleConnections() }

// Answer is what a server has answered. Its body is bounded.
type Answer struct {
	Status int
	Header http.Header
	Body   io.Reader
	close  func()
	key    string // that was sent
}

// Close must be called when the body has been read.
func (a *Answer) Close() { a.close() }

// Is reports whether the body says to be of the given media type.
func (a *Answer) Is(media string) bool {
	kind, _, _ := strings.Cut(a.Header.Get("Content-Type"), ";")
	return strings.EqualFold(strings.TrimSpace(kind), media)
}

// Get asks for a path below the address, with its query. An answer of any status is no error; errors are that none came, or one that no
// client should take. The context bounds the exchange in addition to Options.Within.
func (c *Client) Get(ctx context.Context, path string) (*Answer, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, c.opt.Within, errLate)
	a, err := c.get(ctx, path)
	if err != nil {
		err = plain(ctx, err)
		cancel()
		return nil, err
	}
	body := a.Body
	a.key = c.opt.Key
	a.Body = &bounded{read: body, left: c.opt.Bytes, ctx: ctx}
	release := a.close
	a.close = func() {
		cancel() // first: what is left of the body is not waited for
		release()
	}
	return a, nil
}

// Stream is Get for an answer that goes on for as long as the context: it is bounded neither in time nor in size.
func (c *Client) Stream(ctx context.Context, path string) (*Answer, error) {
	a, err := c.get(ctx, path)
	if err != nil {
		return nil, plain(ctx, err)
	}
	a.key = c.opt.Key
	return a, nil
}

func (c *Client) get(ctx context.Context, path string) (*Answer, error) {
	at := c.base
	path, at.RawQuery, _ = strings.Cut(path, "?")
	at.Path += path
	for range maxRedirects + 1 {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), nil)
		if err != nil {
			return nil, err
		}
		r.Header.Set("User-Agent", "llmtop")
		r.Header.Set("Accept-Encoding", "gzip")
		if c.opt.Key != "" {
			r.Header.Set("Authorization", "Bearer "+c.opt.Key)
		}
		answer, err := c.transport.RoundTrip(r)
		if err != nil {
			return nil, err
		}
		next, err := redirect(&at, answer)
		if err != nil || next != nil {
			_ = answer.Body.Close()
		}
		if err != nil {
			return nil, err
		}
		if next == nil {
			return open(answer)
		}
		at = *next
	}
	return nil, errors.New("redirects again and again")
}

// open unpacks an answer.
func open(r *http.Response) (*Answer, error) {
	a := &Answer{Status: r.StatusCode, Header: r.Header, Body: r.Body, close: func() { _ = r.Body.Close() }}
	switch strings.ToLower(r.Header.Get("Content-Encoding")) {
	case "", "identity":
	case "gzip", "x-gzip":
		unpacked, err := gzip.NewReader(r.Body)
		if err != nil {
			_ = r.Body.Close()
			return nil, fmt.Errorf("answers what is no gzip: %w", err)
		}
		a.Body = unpacked
	default:
		_ = r.Body.Close()
		return nil, errors.New("answers in an encoding that was not asked for")
	}
	return a, nil
}

// redirect is where an answer redirects to, nil if it does not.
func redirect(from *url.URL, r *http.Response) (*url.URL, error) {
	switch r.StatusCode {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
	default:
		return nil, nil
	}
	to, err := from.Parse(r.Header.Get("Location"))
	switch {
	case err != nil || r.Header.Get("Location") == "":
		return nil, errors.New("redirects to nowhere")
	case to.Host != from.Host || to.Scheme != from.Scheme:
		return nil, fmt.Errorf("redirects to %s://%s: give that address if it is to be watched", to.Scheme, to.Host)
	}
	to.User = nil
	return to, nil
}
