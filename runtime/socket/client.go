package socket

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/event/wire"
	"github.com/llmtop/llmtop/runtime"
)

// The waits between attempts to connect, and how long an engine may be silent until it counts as stale.
const (
	firstWait = 100 * time.Millisecond
	lastWait  = 5 * time.Second
	silence   = 3 * time.Second
)

// ErrVersion is the error of an engine whose protocol is too new.
var ErrVersion = wire.ErrVersion

// Client watches the engine at an address: it is a runtime.Source whose events come from another process. They are stamped on the
// client's clock, and its connection is told by engine events (see event.Remote). When the engine runs anew its requests are numbered on
// from those of the run before, so that ids stay unique.
type Client struct {
	address address
	token   string
	clock   runtime.Clock
	silence time.Duration // after which the engine is stale
	follow  follow        // of the goroutine of Run

	mu   sync.Mutex // guards what follows
	link link
}

// link is what other goroutines need to know of the connection.
type link struct {
	conn  net.Conn // nil while there is none
	caps  event.Caps
	base  event.RequestID // what is added to the engine's ids
	calls map[uint64]chan wire.Session
	last  uint64 // call
}

// Dial prepares a client; nothing happens until Run. clock is that of the other sources of the session. token is "" for an engine that
// wants none.
func Dial(at, token string, clock runtime.Clock) (*Client, error) {
	a, err := parse(at)
	if err != nil {
		return nil, fmt.Errorf("attach: %w", err)
	}
	c := &Client{address: a, token: token, clock: clock, silence: silence}
	c.follow = follow{clock: clock, settles: settles, remote: event.Remote{Address: a.String()}}
	return c, nil
}

// Run implements runtime.Source. It connects again whenever the connection breaks, for ever. Errors are for what will not go away: ErrToken, ErrVersion.
func (c *Client) Run(ctx context.Context, sink event.Sink) error {
	c.follow.sink = sink
	wait := firstWait
	for ctx.Err() == nil {
		known, err := c.connect(ctx)
		if ctx.Err() != nil {
			break
		}
		if errors.Is(err, ErrToken) || errors.Is(err, ErrVersion) {
			c.follow.linked(event.LinkRefused, err.Error())
			return fmt.Errorf("attach to %v: %w", c.address, err)
		}
		c.follow.linked(event.LinkDisconnected, plain(err))
		if known {
			wait = firstWait
		}
		select {
		case <-ctx.Done():
		case <-time.After(wait):
		}
		wait = min(2*wait, lastWait)
	}
	return nil
}

// plain is an error in the words of a user.
func plain(err error) string {
	var op *net.OpError
	if errors.As(err, &op) {
		return op.Err.Error()
	}
	return err.Error()
}

// connect follows the engine over one connection. known says that it has introduced itself.
func (c *Client) connect(ctx context.Context) (known bool, err error) {
	conn, err := (&net.Dialer{Timeout: lastWait}).DialContext(ctx, c.address.network, c.address.path)
	if err != nil {
		return false, err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	defer c.close()
	f := &c.follow
	f.begin()
	lines := newLines(conn)
	for {
		_ = conn.SetReadDeadline(time.Now().Add(c.silence))
		line, err := lines.next()
		if timeout, ok := errors.AsType[net.Error](err); ok && timeout.Timeout() {
			f.silent()
			continue
		}
		if err != nil {
			return f.known, closed(err)
		}
		f.remote.Garbage += lines.garbage
		lines.garbage = 0
		session, err := f.line(line)
		if err != nil {
			return f.known, err
		}
		if err := c.session(conn, &session); err != nil {
			return f.known, err
		}
		if !lines.ready() {
			f.release()
		}
	}
}

// closed says in words that the other end has gone.
func closed(err error) error {
	if errors.Is(err, net.ErrClosed) {
		return err
	}
	return fmt.Errorf("the connection broke: %w", err)
}

// session does what a line about the connection asks for.
func (c *Client) session(conn net.Conn, s *wire.Session) error {
	switch s.Type {
	case wire.Auth:
		return c.login(conn)
	case wire.Bye:
		if s.Why == wrongToken {
			return fmt.Errorf("wrong %w", ErrToken)
		}
		if s.Why == "" {
			s.Why = "the engine closed the connection"
		}
		return errors.New(s.Why)
	case wire.Reply:
		c.answered(s)
	case wire.Hello:
		c.open(conn)
	}
	return nil
}

// login gives the token.
func (c *Client) login(conn net.Conn) error {
	if c.token == "" {
		return fmt.Errorf("the engine wants a %w", ErrToken)
	}
	line, err := wire.AppendControl(nil, &wire.Control{Type: wire.Login, Token: c.token})
	if err != nil {
		return err
	}
	_, err = conn.Write(append(line, '\n'))
	return err
}
