package fetch

import (
	"bufio"
	"context"
	"errors"
	"io"
	"math"
	"net"
	"net/http"
	"net/url"
	"time"
)

// conn is a connection that takes one request after the other. A transport of net/http keeps two goroutines and 12 KB for
// each connection, and hundreds of servers are polled.
type conn struct {
	net.Conn
	reader   *bufio.Reader
	left     int64 // bytes that may still be read: of the header, at most maxHeader
	lastUsed time.Time
}

// errLargeHeader is the error of a response with more than maxHeader.
var errLargeHeader = errors.New("response header too large")

// Read implements io.Reader.
func (k *conn) Read(p []byte) (int, error) {
	if k.left <= 0 {
		return 0, errLargeHeader
	}
	n, err := k.Conn.Read(p)
	k.left -= int64(n)
	return n, err
}

// get sends a GET request, without encryption and proxy.
func (c *Client) get(ctx context.Context, at *url.URL) (*http.Response, error) {
	if k := c.idle.Swap(nil); k != nil {
		if time.Since(k.lastUsed) < idleTimeout {
			answer, err := c.ask(ctx, k, at)
			if closed := err != nil && k.left == maxHeader; !closed || ctx.Err() != nil {
				return answer, err
			}
		}
		_ = k.Close()
	}
	k, err := dial(ctx, at)
	if err != nil {
		return nil, err
	}
	return c.ask(ctx, k, at)
}

// dial opens a connection. It is not part of get, so that the stack of hundreds of polls stays below 4 KB.
func dial(ctx context.Context, at *url.URL) (*conn, error) {
	address := at.Host
	if at.Port() == "" {
		address = net.JoinHostPort(at.Hostname(), "80")
	}
	made, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	k := &conn{Conn: made}
	k.reader = bufio.NewReaderSize(k, 1<<10) // for headers: readers of large responses have their own buffer
	return k, nil
}

// ask sends a request over a connection, which is closed on an error, or if the context ends before the response.
func (c *Client) ask(ctx context.Context, k *conn, at *url.URL) (*http.Response, error) {
	b := &body{conn: k, client: c, stop: context.AfterFunc(ctx, func() { _ = k.Close() })}
	answer, err := k.exchange("GET " + at.RequestURI() + c.request)
	if err != nil {
		_ = b.Close()
		return nil, err
	}
	b.reader, b.last = answer.Body, answer.Close
	answer.Body = b
	return answer, nil
}

// exchange sends a request and reads the header of its response.
func (k *conn) exchange(request string) (*http.Response, error) {
	k.left = maxHeader
	if _, err := k.Write([]byte(request)); err != nil {
		return nil, err
	}
	if _, err := k.reader.Peek(1); err != nil {
		return nil, err
	}
	for {
		answer, err := http.ReadResponse(k.reader, nil)
		if err != nil {
			return nil, err
		}
		if answer.StatusCode >= http.StatusOK {
			k.left = math.MaxInt64
			return answer, nil
		}
	}
}

// body is the body of a response. At its end, the connection is free for the next request.
type body struct {
	reader io.Reader
	conn   *conn // nil once it is free or closed
	client *Client
	stop   func() bool
	last   bool // the server closes the connection
}

// Read implements io.Reader.
func (b *body) Read(p []byte) (int, error) {
	n, err := b.reader.Read(p)
	if k := b.conn; err == io.EOF && k != nil && !b.last && b.stop() && k.reader.Buffered() == 0 {
		b.conn, k.lastUsed = nil, time.Now()
		if other := b.client.idle.Swap(k); other != nil {
			_ = other.Close()
		}
	}
	return n, err
}

// Close implements io.Closer.
func (b *body) Close() error {
	if b.conn == nil {
		return nil
	}
	b.stop()
	return b.conn.Close()
}
