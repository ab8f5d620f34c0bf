package sdk

import (
	"io"
	"strings"
	"testing"
)

// late joins an engine after its work, with one request that has not ended, and reads the state.
func (s Suite) late(t *testing.T) {
	p := Start(t, s.Binary, "ADDRESS=unix:"+Socket(t), "HELD=1")
	early := Connect(t, p.Address, check)
	early.Read("synced")
	p.Go()
	early.Read("log") // the last line without a request: nothing waits to be sent
	p.Done()
	var readers []*Reader
	for range 3 {
		r := Connect(t, p.Address, check)
		r.Read("synced")
		readers = append(readers, r)
	}
	p.End()
	early.Rest()
	for _, r := range readers {
		r.Rest()
		tokens := 0.0
		for _, l := range r.Of("tok", 9000) {
			n, ok := l.Keys["n"].(float64)
			if !ok {
				n = 1
			}
			tokens += n
		}
		if tokens != 10 || len(r.Of("req", 9000)) != 2 {
			t.Errorf("%v tokens and %d lines of a request with 10 tokens that was queued and dispatched", tokens, len(r.Of("req", 9000)))
		}
		if n := len(r.Of("req", 0)); n != 2 {
			t.Errorf("%d req lines, those of requests that have ended among them", n)
		}
		if len(r.Of("kv", 0)) == 0 {
			t.Error("the latest kv line is not in the state")
		}
	}
}

// stalled has one stalled reader and one that keeps up while the engine works.
func (s Suite) stalled(t *testing.T) {
	p := Start(t, s.Binary, "ADDRESS=unix:"+Socket(t), "REQUESTS=40", "TOKENS=500", "THREADS=4", "RING=1024", "BACKLOG=65536", "PAUSE_US=50")
	slow, fast := Connect(t, p.Address, check), Connect(t, p.Address, check)
	slow.Read("synced")
	fast.Read("synced")
	p.Go()
	fast.Settle(emitted(40, 500))
	p.Done()
	for slow.Syncs < 2 {
		slow.Read("synced")
	}
	slow.Settle(emitted(40, 500))
	p.End()
	slow.Rest()
	fast.Rest()
	slow.Expect(emitted(40, 500))
	fast.Expect(emitted(40, 500))
	if slow.Lost["token"] == 0 {
		t.Error("a stalled reader has lost nothing: the test has no effect")
	}
}

// killed kills an engine within a line that is longer than a socket's buffer.
func (s Suite) killed(t *testing.T) {
	p := Start(t, s.Binary, "ADDRESS=unix:"+Socket(t), "LAYERS=256", "EXPERTS=2048", "BACKLOG=8388608")
	readers := []*Reader{Connect(t, p.Address, check), Connect(t, p.Address, check)}
	for _, r := range readers {
		r.Read("synced")
	}
	p.Go()
	for _, r := range readers {
		r.Begun("experts")
	}
	p.Kill()
	for _, r := range readers {
		r.Rest()
		if last := r.Lines[len(r.Lines)-1]; last.Type == "bye" {
			t.Error("an engine that was killed sent bye")
		}
		if !strings.HasPrefix(r.Torn, `{"t":"experts"`) {
			t.Errorf("the line was not truncated, the test has no effect; the end is %.50q", r.Torn)
		}
	}
}

// hostile sends invalid input from other connections, while a normal reader loses nothing.
func (s Suite) hostile(t *testing.T) {
	p := Start(t, s.Binary, "ADDRESS=unix:"+Socket(t), "REQUESTS=20", "TOKENS=50", "THREADS=4")
	for _, input := range []string{
		strings.Repeat("x", 4<<20), strings.Repeat("[", 1<<20), "\x00\xff\n\r\n{}\n", strings.Repeat("\n", 1<<20),
		`{"t":"cancel","c":1,"r":7}` + "\n" + `{"t":"generate","c":-1e99,"ids":[-1]}` + "\n" + `{"t":"auth","token":0}` + "\n",
	} {
		conn := dial(t, p.Address)
		go func() {
			defer conn.Close()
			_, _ = io.WriteString(conn, input) // the engine may hang up
		}()
	}
	r := Connect(t, p.Address, check)
	r.Read("synced")
	p.Go()
	r.Settle(emitted(20, 50))
	p.Done()
	p.End()
	r.Rest()
	r.Expect(emitted(20, 50))
	if len(r.Lost) != 0 {
		t.Errorf("dropped %v", r.Lost)
	}
}
