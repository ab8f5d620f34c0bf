package socket

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/event/wire"
	"github.com/llmtop/llmtop/runtime/engine"
	"github.com/llmtop/llmtop/runtime/host"
)

// firstWait and lastWait are the shortest and longest wait between connection attempts, localWait the longest one for an
// engine of this machine, where an attempt costs a system call. An engine silent for the time of silence is stale.
const (
	firstWait = 100 * time.Millisecond
	localWait = 200 * time.Millisecond
	lastWait  = 5 * time.Second
	silence   = 3 * time.Second
)

// ErrVersion means that the engine's protocol version is too new.
var ErrVersion = wire.ErrVersion

// Client is an engine.Source that watches the engine at an address, in another process. It stamps events on its own
// clock and reports the state of the connection in engine events (see event.Remote). When the engine restarts, its
// request ids continue after those of the run before, so that they stay unique. An engine in the well-known folder is
// followed by its name, because another process of it has another socket.
type Client struct {
	// Claim, if it is set before Run, reports whether this client may follow the engine to another address, which no other
	// client follows from then on.
	Claim func(address string) bool

	address address // network is "" until an engine of the name was found
	token   string
	silence time.Duration // an engine silent for longer is stale
	follow  follow        // used by the goroutine of Run
	others  []os.FileInfo // sockets of engines with other names; used by the goroutine of Run

	mu   sync.Mutex // guards the fields below
	link struct {   // the part of the connection that other goroutines use
		conn    net.Conn // nil: not connected
		process host.ID  // see PID
		caps    event.Caps
		base    event.RequestID // added to the engine's request ids
		calls   map[uint64]chan wire.Session
		last    uint64 // last call id // call
		name    string // of the engine to follow; "": not introduced yet, or not in the well-known folder
	}
}

// Dial prepares a client; it connects in Run. at is an address, or the name of an engine that need not run yet. clock is
// the session's clock. token is "" for an engine that needs none. Errors: an invalid address, ErrUntrusted.
func Dial(at, token string, clock engine.Clock) (*Client, error) {
	if IsName(at) {
		if err := trustedFolder(Folder()); err != nil {
			return nil, fmt.Errorf("attach to %s: %w", at, err)
		}
		return newClient(address{}, at, at, token, clock), nil
	}
	a, err := parse(at)
	if err != nil {
		return nil, fmt.Errorf("attach: %w", err)
	}
	if err := a.trusted(); err != nil {
		return nil, fmt.Errorf("attach to %v: %w", a, err)
	}
	return newClient(a, "", a.String(), token, clock), nil
}

// newClient returns a client for an address, or for a name; shown is the one that was given.
func newClient(a address, name, shown, token string, clock engine.Clock) *Client {
	c := &Client{address: a, token: token, silence: silence}
	c.link.name = name
	c.follow = follow{clock: clock, settles: settles, remote: event.Remote{Address: shown}}
	return c
}

// Run implements engine.Source. It reconnects whenever the connection breaks. It fails only if a retry cannot help:
// ErrToken, ErrVersion, ErrUntrusted.
func (c *Client) Run(ctx context.Context, sink event.Sink) error {
	c.follow.sink = sink
	wait := firstWait
	for ctx.Err() == nil {
		greeted, err := c.connect(ctx)
		if ctx.Err() != nil {
			break
		}
		if errors.Is(err, ErrToken) || errors.Is(err, ErrVersion) || errors.Is(err, ErrUntrusted) {
			c.follow.linked(event.LinkRefused, err.Error())
			return fmt.Errorf("attach to %s: %w", c.follow.remote.Address, err)
		}
		absent := nobodyListens(err)
		c.follow.linked(c.broken(absent, err))
		if absent {
			c.follow.gone()
		}
		if greeted {
			wait = firstWait
		}
		if c.address.network != "tcp" || absent && c.address.loopback() {
			wait = min(wait, localWait)
		}
		select {
		case <-ctx.Done():
		case <-time.After(wait):
		}
		wait = min(2*wait, lastWait)
	}
	return nil
}

// broken returns the state of a connection that failed, and why: an engine of this machine that was never there may start
// later, and so may the next process of one that has ended.
func (c *Client) broken(absent bool, err error) (event.Link, string) {
	name := c.name()
	switch local := c.address.network != "tcp" || c.address.loopback(); {
	case absent && local && c.follow.run == "":
		return event.LinkWaiting, plain(err)
	case absent && name != "":
		return event.LinkDisconnected, "the engine has ended; a new process of " + name + " takes its place"
	}
	return event.LinkDisconnected, plain(err)
}

// PID returns the process of the engine if it is the other end of the connection and lives: not if the socket is forwarded,
// or if the engine sees other process IDs. 0: unknown, or not connected.
func (c *Client) PID() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.link.conn == nil {
		return 0
	}
	return c.link.process.Alive()
}

// plain formats an error for users.
func plain(err error) string {
	var op *net.OpError
	if errors.As(err, &op) {
		return op.Err.Error()
	}
	return err.Error()
}

// connect follows the engine over one connection. greeted reports whether the engine has introduced itself.
func (c *Client) connect(ctx context.Context) (greeted bool, err error) {
	dialing, cancel := context.WithTimeout(ctx, lastWait)
	defer cancel()
	conn, err := c.dial(dialing)
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
			return f.greeted, closed(err)
		}
		f.remote.Malformed += lines.malformed
		lines.malformed = 0
		session, err := f.line(line)
		if err != nil {
			return f.greeted, err
		}
		if err := c.session(conn, &session); err != nil {
			return f.greeted, err
		}
		if !lines.ready() {
			f.release()
		}
	}
}

// closed formats the error of a connection that the other side closed.
func closed(err error) error {
	if errors.Is(err, net.ErrClosed) {
		return err
	}
	return fmt.Errorf("the connection broke: %w", err)
}

// session acts on a line about the connection itself.
func (c *Client) session(conn net.Conn, s *wire.Session) error {
	switch s.Type {
	case wire.Auth:
		return c.login(conn)
	case wire.Bye:
		if s.Reason == wrongToken {
			return fmt.Errorf("wrong %w: check --token-file or $LLMTOP_TOKEN", ErrToken)
		}
		if s.Reason == "" {
			s.Reason = "the engine closed the connection"
		}
		return errors.New(s.Reason)
	case wire.Reply:
		c.answered(s)
	case wire.Hello:
		c.open(conn)
	}
	return nil
}

// login sends the token.
func (c *Client) login(conn net.Conn) error {
	if c.token == "" {
		return fmt.Errorf("the engine needs a %w: set --token-file FILE or $LLMTOP_TOKEN", ErrToken)
	}
	line, err := wire.AppendControl(nil, &wire.Control{Type: wire.Login, Token: c.token})
	if err != nil {
		return err
	}
	_, err = conn.Write(append(line, '\n'))
	return err
}
