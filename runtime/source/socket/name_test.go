package socket

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	goruntime "runtime"
	"sync"
	"testing"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/event/eventtest"
	"github.com/llmtop/llmtop/runtime/engine"
)

// ownFolder gives a test a well-known folder of its own.
func ownFolder(t *testing.T) {
	t.Helper()
	t.Setenv("XDG_RUNTIME_DIR", t.TempDir())
	if goruntime.GOOS == "windows" {
		t.Setenv("LOCALAPPDATA", t.TempDir())
	}
}

// named starts a run of an engine with a name, at NAME-number.sock. Each has an epoch, and with it a run, of its own.
func named(t *testing.T, name string, number int, token string) *Server {
	t.Helper()
	at := "unix:" + filepath.Join(Folder(), fmt.Sprintf("%s-%d.sock", name, number))
	s, err := Listen(at, Options{Clock: engine.NewClock(), Token: token, Engine: event.EngineInfo{Name: name, Caps: event.CapTokens, State: event.EngineReady}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() }) // the test may have closed it
	return s
}

// stale leaves the socket of an engine that was killed.
func stale(t *testing.T, name string) {
	t.Helper()
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(Folder(), name), Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	_ = l.Close()
}

func TestIsName(t *testing.T) {
	for text, want := range map[string]bool{
		"my-engine": true, "vllm": true, "My engine (2)": true, "llama.cpp": true, "moë": true, "gpu1": true,
		"": false, "8080": false, "gpu1:8000": false, "unix:/x.sock": false, "./engine": false, "a/b": false, `C:\x`: false,
		"model.gguf": false, "engine.sock": false, "run.llmtop": false, "10.0.0.4": false, "fe80::1": false, "-h": false,
		".x": false, " x": false, "x\n": false, "x\x1b[0m": false, "a=b": false, "30s": false, "1h5m": false, "me@gpu1": false,
	} {
		if IsName(text) != want {
			t.Errorf("IsName(%q) is %v", text, !want)
		}
	}
}

// TestNewerEngineIsRefused: a client does not wait for an engine of its name whose protocol is too new.
func TestNewerEngineIsRefused(t *testing.T) {
	ownFolder(t)
	if err := os.MkdirAll(Folder(), 0o700); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", filepath.Join(Folder(), "my-engine-1.sock"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for conn, err := l.Accept(); err == nil; conn, err = l.Accept() {
			_, _ = fmt.Fprintln(conn, `{"t":"hello","v":"9.0","name":"my-engine","a":1}`)
		}
	}()
	c, err := Dial("my-engine", "", engine.NewClock())
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Run(t.Context(), new(log)); !errors.Is(err, ErrVersion) {
		t.Errorf("ended with %v", err)
	}
}

// TestFollowName: a client that was given a name waits for the engine, ignores others, follows it to the socket of its
// next process, and counts a restart. So does one that was given its first address.
func TestFollowName(t *testing.T) {
	for _, given := range []string{"name", "address", "token"} {
		t.Run(given, func(t *testing.T) {
			ownFolder(t)
			token := ""
			if given == "token" {
				token = "secret"
			}
			at := "my-engine"
			if given == "address" {
				at = "unix:" + filepath.Join(Folder(), "my-engine-1.sock")
			}
			var got log
			other := named(t, "other", 1, "")
			attach(t, at, token, &got)
			eventtest.Wait(t, "waiting", func() bool {
				r := got.remote()
				return r.Link == event.LinkWaiting && r.Address == at && r.Reason != ""
			})
			first := named(t, "my-engine", 1, token)
			eventtest.Wait(t, "a connection", func() bool { return got.remote().Link == event.LinkConnected })
			first.Emit(event.Event{Kind: event.KindModel, At: 1, Layer: -1, Data: &event.Model{Name: "old", Layers: 4}})
			first.Emit(queued(7, 2))
			eventtest.Wait(t, "the request", func() bool { return len(got.OfKind(event.KindRequest)) == 1 })
			_ = first.Close()
			for i := range 100 { // as an engine that crashes in a loop leaves them
				stale(t, fmt.Sprintf("my-engine-9%03d.sock", i))
			}
			eventtest.Wait(t, "its end", func() bool { return got.remote().Link == event.LinkDisconnected })
			next := named(t, "my-engine", 2, token)
			eventtest.Wait(t, "the next process", func() bool { return got.remote().Link == event.LinkConnected })
			if r := got.remote(); r.Restarts != 1 || r.Address != next.Address() {
				t.Errorf("connection %+v", r)
			}
			next.Emit(queued(1, 2))
			eventtest.Wait(t, "its request", func() bool { return len(got.OfKind(event.KindRequest)) == 3 })
			if all := got.OfKind(event.KindRequest); all[1].State != event.StateCancelled || all[2].Req != 8 {
				t.Errorf("requests %+v", all)
			}
			if all := got.OfKind(event.KindModel); len(all) != 2 || *all[1].Data.(*event.Model) != (event.Model{}) {
				t.Errorf("models %+v, want the old one and none", all)
			}
			if other.Readers() != 0 {
				t.Error("another engine is watched")
			}
		})
	}
}

// TestSameNames: of two clients with one name, each follows its engine, and a new process replaces only the one that has
// ended.
func TestSameNames(t *testing.T) {
	ownFolder(t)
	var mu sync.Mutex
	taken := map[string]*Client{}
	var clients [2]*Client
	var logs [2]log
	var servers [2]*Server
	for i := range clients {
		servers[i] = named(t, "twin", 1+i, "")
		c, err := Dial(servers[i].Address(), "", engine.NewClock())
		if err != nil {
			t.Fatal(err)
		}
		taken[servers[i].Address()] = c
		c.Claim = func(at string) bool {
			mu.Lock()
			defer mu.Unlock()
			if o := taken[at]; o != nil && o != c {
				return false
			}
			taken[at] = c
			return true
		}
		clients[i] = c
	}
	for i, c := range clients {
		watch(t, c, &logs[i])
		eventtest.Wait(t, "a connection", func() bool { return logs[i].remote().Link == event.LinkConnected })
	}
	_ = servers[0].Close()
	eventtest.Wait(t, "its end", func() bool { return clients[0].Awaits("twin") })
	if clients[1].Awaits("twin") || clients[0].Awaits("other") {
		t.Error("a client awaits what it has, or another engine")
	}
	next := named(t, "twin", 3, "")
	eventtest.Wait(t, "the next process", func() bool { return logs[0].remote().Restarts == 1 })
	if a, b := logs[0].remote(), logs[1].remote(); a.Address != next.Address() || b.Address != servers[1].Address() || b.Restarts != 0 {
		t.Errorf("%+v and %+v", a, b)
	}
}
