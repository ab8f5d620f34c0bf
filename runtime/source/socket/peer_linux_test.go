package socket

import (
	"io"
	"net"
	"os"
	"strings"
	"testing"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/event/eventtest"
)

// TestPID checks that the engine's process is known if it is the other end of the connection itself, over a Unix socket and
// over TCP: not if it says to be another one, as in a container, nor if another process forwards its socket.
func TestPID(t *testing.T) {
	check := func(t *testing.T, at string, want int) *Client {
		var l log
		client := attach(t, at, "", &l)
		eventtest.Wait(t, "a connection", func() bool { return l.remote().Link == event.LinkConnected })
		if got := client.PID(); got != want {
			t.Errorf("process %d, want %d", got, want)
		}
		return client
	}
	for name, c := range map[string]struct {
		at         string
		says, want int
	}{
		"itself": {path(t), os.Getpid(), os.Getpid()}, "another": {path(t), os.Getppid(), 0},
		"itself over TCP": {"tcp:127.0.0.1:0", os.Getpid(), os.Getpid()}, "another over TCP": {"tcp:127.0.0.1:0", os.Getppid(), 0},
	} {
		t.Run(name, func(t *testing.T) {
			s := server(t, c.at, Options{Engine: event.EngineInfo{Name: "test", PID: c.says, State: event.EngineReady}})
			client := check(t, s.Address(), c.want)
			if err := s.Close(); err != nil {
				t.Error(err)
			}
			eventtest.Wait(t, "an end", func() bool { return client.PID() == 0 })
		})
	}
	for _, network := range []string{"unix", "tcp"} {
		t.Run("forwarded "+network, func(t *testing.T) {
			at := path(t)
			engine := play(t, "engine", at)
			engine.line(t) // it listens
			check(t, at, engine.Process.Pid)
			front := strings.TrimPrefix(path(t), "unix:")
			if network == "tcp" {
				front = "127.0.0.1:0"
			}
			listener, err := net.Listen(network, front)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = listener.Close() })
			go func() {
				for {
					near, err := listener.Accept()
					if err != nil {
						return
					}
					far, err := net.Dial("unix", strings.TrimPrefix(at, "unix:"))
					if err != nil {
						_ = near.Close()
						continue
					}
					go func() { _, _ = io.Copy(far, near); _ = far.Close() }()
					go func() { _, _ = io.Copy(near, far); _ = near.Close() }()
				}
			}()
			check(t, network+":"+listener.Addr().String(), 0)
		})
	}
}
