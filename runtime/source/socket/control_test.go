package socket

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/event/eventtest"
	"github.com/llmtop/llmtop/profiler/event/wire"
	"github.com/llmtop/llmtop/runtime/engine"
)

// desk is a Controller that records its calls.
type desk struct {
	caps event.Caps

	mu    sync.Mutex
	asked []string
}

func (d *desk) note(format string, args ...any) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.asked = append(d.asked, fmt.Sprintf(format, args...))
	return nil
}

func (d *desk) Controls() event.Caps { return d.caps }

func (d *desk) Control(c *wire.Control) (event.RequestID, error) {
	switch c.Type {
	case wire.Generate:
		if c.Prompt == "" {
			return 0, errors.New("the prompt is empty")
		}
		return 8, d.note("generate %s %d", c.Prompt, c.MaxTokens)
	case wire.Cancel:
		return 0, d.note("cancel %d", c.Req)
	case wire.Hooks:
		return 0, d.note("hooks %+v", c.On)
	case wire.Sample:
		return 0, d.note("sample %d", c.Every)
	}
	return 0, d.note("%v", c.Type)
}

// Pause, Resume, Hooks and Sample send such a message.
func (c *Client) Pause(ctx context.Context) error {
	return c.controls(ctx, wire.Control{Type: wire.Pause})
}

func (c *Client) Resume(ctx context.Context) error {
	return c.controls(ctx, wire.Control{Type: wire.Resume})
}

func (c *Client) Hooks(ctx context.Context, on wire.Measure) error {
	return c.controls(ctx, wire.Control{Type: wire.Hooks, On: on})
}

func (c *Client) Sample(ctx context.Context, every int) error {
	return c.controls(ctx, wire.Control{Type: wire.Sample, Every: every})
}

func (c *Client) controls(ctx context.Context, m wire.Control) error {
	_, err := c.Control(ctx, &m)
	return err
}

// attached returns a connected client.
func attached(t *testing.T, s *Server, token string) *Client {
	t.Helper()
	var got log
	c := attach(t, s.Address(), token, &got)
	eventtest.Wait(t, "a connection", func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.link.conn != nil
	})
	return c
}

func TestControl(t *testing.T) {
	d := &desk{caps: controlCaps}
	c := attached(t, server(t, path(t), Options{Controller: d}), "")
	ctx := t.Context()
	if got := c.Offers(); got != controlCaps|event.CapTokens {
		t.Errorf("offers %b", got)
	}
	id, err := c.Generate(ctx, wire.Generation{Prompt: "Once", MaxTokens: 5})
	if err != nil || id != 8 {
		t.Errorf("request %d, %v", id, err)
	}
	if _, err := c.Generate(ctx, wire.Generation{}); err == nil || !strings.Contains(err.Error(), "the prompt is empty") {
		t.Errorf("without a prompt: %v", err)
	}
	for _, err := range []error{
		c.Cancel(ctx, 8), c.Pause(ctx), c.Resume(ctx), c.Hooks(ctx, wire.Measure{Experts: true}), c.Sample(ctx, 10),
	} {
		if err != nil {
			t.Error(err)
		}
	}
	want := []string{"generate Once 5", "cancel 8", "pause", "resume", "hooks {Stages:false Experts:true Picks:false}", "sample 10"}
	if diff := cmp.Diff(want, d.asked); diff != "" {
		t.Error(diff)
	}
}

// TestControlThatIsNotOffered: both sides refuse it.
func TestControlThatIsNotOffered(t *testing.T) {
	d := &desk{caps: event.CapPause}
	s := server(t, path(t), Options{Controller: d})
	c := attached(t, s, "")
	if err := c.Cancel(t.Context(), 1); !errors.Is(err, ErrNotOffered) {
		t.Errorf("cancel: %v", err)
	}
	if err := c.Pause(t.Context()); err != nil {
		t.Error(err)
	}
	conn := connection(t, s)
	fmt.Fprintln(conn, `{"t":"cancel","c":7,"r":1}`)
	if line := find(t, conn, `"reply"`); line != `{"t":"reply","c":7,"ok":false,"why":"the engine does not offer this"}` {
		t.Errorf("the answer is %s", line)
	}
	if diff := cmp.Diff([]string{"pause"}, d.asked); diff != "" {
		t.Error(diff)
	}
}

// find reads up to a line that contains text, or to the end.
func find(t *testing.T, from io.Reader, text string) string {
	t.Helper()
	l := newLines(from)
	for {
		line, err := l.next()
		if err != nil {
			return err.Error()
		}
		if strings.Contains(string(line), text) {
			return string(line)
		}
	}
}

// TestControlOverTCP: over TCP messages need a token, since web pages can reach the port.
func TestControlOverTCP(t *testing.T) {
	d := &desk{caps: controlCaps}
	open := server(t, "tcp:127.0.0.1:0", Options{Controller: d})
	if err := attached(t, open, "").Pause(t.Context()); !errors.Is(err, ErrNotOffered) {
		t.Errorf("pause without a token: %v", err)
	}
	conn := connection(t, open)
	fmt.Fprint(conn, "POST / HTTP/1.1\r\nHost: localhost\r\n\r\n{\"t\":\"pause\",\"c\":1}\n")
	if line := find(t, conn, `"bye"`); !strings.Contains(line, "malformed") {
		t.Errorf("the answer to a web page is %s", line)
	}
	if len(d.asked) > 0 {
		t.Errorf("accepted without a token: %v", d.asked)
	}
	secret := server(t, "tcp:127.0.0.1:0", Options{Controller: d, Token: "x"})
	if err := attached(t, secret, "x").Pause(t.Context()); err != nil {
		t.Errorf("pause with a token: %v", err)
	}
}

// TestReaderThatAsksButDoesNotRead: the server drops it, even while blocked writing to it.
func TestReaderThatAsksButDoesNotRead(t *testing.T) {
	s := server(t, path(t), Options{Controller: &desk{caps: controlCaps}})
	conn := connection(t, s)
	eventtest.Wait(t, "the reader", func() bool { return s.Readers() == 1 })
	for i := range DefaultBuffer { // more than the system buffers
		s.Emit(token(1, 1, i))
	}
	for {
		if _, err := io.WriteString(conn, strings.Repeat(`{"t":"pause","c":1}`+"\n", 1000)); err != nil {
			break
		}
	}
	eventtest.Wait(t, "its end", func() bool { return s.Readers() == 0 })
}

// TestControlWithoutConnection: calls fail at once, and waiting ones fail when the connection ends.
func TestControlWithoutConnection(t *testing.T) {
	f := newFake(t)
	c, err := Dial(f.address(), "", engine.NewClock())
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Pause(t.Context()); !errors.Is(err, ErrNotConnected) || c.Offers() != 0 {
		t.Errorf("pause before Run: %v", err)
	}
	var got log
	c = attach(t, f.address(), "", &got)
	f.greet("one")
	f.send(`{"t":"engine","a":5,"name":"fake","caps":["pause"]}`)
	f.logged(&got, "ready")
	if err := c.Pause(t.Context()); !errors.Is(err, ErrNotOffered) {
		t.Errorf("the offers of the introduction: %v", err)
	}
	f.hangUp()
	f.conn, _ = f.listener.Accept()
	f.send(`{"t":"hello","v":"1.0","name":"fake","a":1,"caps":["pause"]}`)
	eventtest.Wait(t, "the offer", func() bool { return c.Offers().Has(event.CapPause) })
	answer := make(chan error)
	go func() { answer <- c.Pause(context.Background()) }()
	if line := find(t, f.conn, "pause"); line != `{"t":"pause","c":1}` {
		t.Errorf("the message is %s", line)
	}
	f.hangUp()
	if err := <-answer; !errors.Is(err, ErrNotConnected) {
		t.Errorf("the connection broke: %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	f.conn, _ = f.listener.Accept()
	f.send(`{"t":"hello","v":"1.0","name":"fake","a":1,"caps":["pause"]}`)
	eventtest.Wait(t, "the offer", func() bool { return c.Offers().Has(event.CapPause) })
	if err := c.Pause(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("after the call ended: %v", err)
	}
}
