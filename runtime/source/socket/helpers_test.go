package socket

import (
	"context"
	"net"
	"os"
	"path/filepath"
	goruntime "runtime"
	"testing"

	"go.uber.org/goleak"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/event/eventtest"
	"github.com/llmtop/llmtop/runtime/engine"
)

func TestMain(m *testing.M) {
	if play := roles[os.Getenv(roleVariable)]; play != nil {
		play(os.Getenv(addressVariable))
		return
	}
	goleak.VerifyTestMain(m)
}

// log is a sink that keeps all events.
type log struct{ eventtest.Log }

// remote returns the newest state of the connection.
func (l *log) remote() event.Remote {
	all := l.OfKind(event.KindEngine)
	if len(all) == 0 {
		return event.Remote{}
	}
	return all[len(all)-1].Data.(*event.EngineInfo).Remote
}

func path(t testing.TB) string { return "unix:" + filepath.Join(t.TempDir(), "s.sock") }

// server listens for the duration of a test.
func server(t testing.TB, at string, opt Options) *Server {
	t.Helper()
	if opt.Engine.Name == "" {
		opt.Engine = event.EngineInfo{Name: "test", Caps: event.CapTokens, State: event.EngineReady}
	}
	s, err := Listen(at, opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// attach runs a client for the duration of a test.
func attach(t testing.TB, at, token string, sink event.Sink) *Client {
	t.Helper()
	c, err := Dial(at, token, engine.NewClock())
	if err != nil {
		t.Fatal(err)
	}
	watch(t, c, sink)
	return c
}

// watch runs a prepared client.
func watch(t testing.TB, c *Client, sink event.Sink) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := c.Run(ctx, sink); err != nil {
			t.Log(err)
		}
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
}

// connection opens a plain connection to a server.
func connection(t testing.TB, s *Server) net.Conn {
	t.Helper()
	conn, err := net.Dial(s.address.network, s.address.path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

func queued(id event.RequestID, at event.Time) event.Event {
	return event.Event{Kind: event.KindRequest, Req: id, State: event.StateQueued, At: at, Layer: -1, Data: &event.Request{MaxTokens: 9}}
}

func finished(id event.RequestID, at event.Time, n int) event.Event {
	return event.Event{
		Kind: event.KindRequest, Req: id, State: event.StateFinished, At: at, Layer: -1, Data: &event.Outcome{Reason: "stop", Generated: n},
	}
}

func token(id event.RequestID, at event.Time, i int) event.Event {
	return event.Event{Kind: event.KindToken, Req: id, At: at, Layer: -1, ID: int32(100 + i), Index: int32(i), N: 1, Step: uint64(i + 1)}
}

// heap returns the bytes in use after garbage collection.
func heap() int64 {
	goruntime.GC()
	goruntime.GC()
	var m goruntime.MemStats
	goruntime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// drainAll reads to the end.
func drainAll(conn net.Conn) {
	buffer := make([]byte, 1<<16)
	for {
		if _, err := conn.Read(buffer); err != nil {
			return
		}
	}
}
