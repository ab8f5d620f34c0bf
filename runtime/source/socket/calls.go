package socket

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/event/wire"
	"github.com/llmtop/llmtop/runtime/host"
)

// ErrNotConnected means that a message could not be sent because there is no connection.
var ErrNotConnected = errors.New("not connected to the engine")

// open makes conn the connection for messages, once the engine has introduced itself on it.
func (c *Client) open(conn net.Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.link.conn, c.link.caps, c.link.base, c.link.process = conn, c.follow.engine.Caps, c.follow.base, host.ID{}
	if pid := c.follow.engine.PID; host.Holds(pid, conn) {
		c.link.process = host.Identify(pid)
	}
	if c.address.wellKnown() {
		c.link.name = c.follow.engine.Name
	}
	if c.link.calls == nil {
		c.link.calls = make(map[uint64]chan wire.Session)
	}
}

// close fails the calls that are waiting for an answer.
func (c *Client) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.link.conn = nil
	for call, answer := range c.link.calls {
		close(answer)
		delete(c.link.calls, call)
	}
}

// answered hands an answer to the waiting call.
func (c *Client) answered(s *wire.Session) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if answer := c.link.calls[s.Call]; answer != nil {
		answer <- *s // never blocks: the channel has capacity 1
		delete(c.link.calls, s.Call)
	}
}

// Control sends a message, which it changes, and waits for the answer: the request of a message that generates. Errors:
// ErrNotConnected, ErrNotOffered, the engine's reason, or that of ctx.
func (c *Client) Control(ctx context.Context, m *wire.Control) (event.RequestID, error) {
	fail := func(err error) (event.RequestID, error) {
		return 0, fmt.Errorf("%v at %v: %w", m.Type, c.address, err)
	}
	answer, base, err := c.send(m)
	if err != nil {
		return fail(err)
	}
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.link.calls, m.Call)
	}()
	select {
	case <-ctx.Done():
		return fail(ctx.Err())
	case s, ok := <-answer:
		switch {
		case !ok:
			return fail(ErrNotConnected)
		case !s.OK:
			return fail(errors.New(s.Reason))
		}
		if s.Req != 0 && s.Req <= maxID {
			s.Req += base
		}
		return s.Req, nil
	}
}

// send sends a message. base is the number to add to the engine's request ids.
func (c *Client) send(m *wire.Control) (answer chan wire.Session, base event.RequestID, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	l := &c.link
	switch {
	case l.conn == nil:
		return nil, 0, ErrNotConnected
	case !l.caps.Has(m.Type.Needs()):
		return nil, 0, ErrNotOffered
	}
	if m.Type == wire.Cancel {
		if m.Req <= l.base {
			return nil, 0, errors.New("the request belongs to an earlier run of the engine")
		}
		if own := m.Req - l.base; own <= maxID {
			m.Req = own
		}
	}
	l.last++
	m.Call = l.last
	line, err := wire.AppendControl(nil, m)
	if err != nil {
		return nil, 0, err
	}
	_ = l.conn.SetWriteDeadline(time.Now().Add(shortTimeout))
	if _, err := l.conn.Write(append(line, '\n')); err != nil {
		_ = l.conn.Close() // part of the line may have been sent
		return nil, 0, fmt.Errorf("%w: %w", ErrNotConnected, err)
	}
	answer = make(chan wire.Session, 1)
	l.calls[m.Call] = answer
	return answer, l.base, nil
}

// Offers returns the engine's capabilities, none while there is no connection.
func (c *Client) Offers() event.Caps {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.link.conn == nil {
		return 0
	}
	return c.link.caps
}

// Generate asks the engine to continue text and returns the request.
func (c *Client) Generate(ctx context.Context, g wire.Generation) (event.RequestID, error) {
	return c.Control(ctx, &wire.Control{Type: wire.Generate, Generation: g})
}

// Cancel asks the engine to end a request.
func (c *Client) Cancel(ctx context.Context, id event.RequestID) error {
	_, err := c.Control(ctx, &wire.Control{Type: wire.Cancel, Req: id})
	return err
}
