package socket

import (
	"os"
	"testing"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/event/eventtest"
)

// TestPID checks that the engine's process is known if it listens itself, and not if it says to be another one, as
// behind a forwarded socket or in a container.
func TestPID(t *testing.T) {
	for name, c := range map[string]struct{ says, want int }{"itself": {os.Getpid(), os.Getpid()}, "another": {1, 0}} {
		t.Run(name, func(t *testing.T) {
			at := path(t)
			s := server(t, at, Options{Engine: event.EngineInfo{Name: "test", PID: c.says, State: event.EngineReady}})
			var l log
			client := attach(t, at, "", &l)
			eventtest.Wait(t, "a connection", func() bool { return l.remote().Link == event.LinkConnected })
			if got := client.PID(); got != c.want {
				t.Errorf("process %d, want %d", got, c.want)
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
			eventtest.Wait(t, "an end", func() bool { return client.PID() == 0 })
		})
	}
}
