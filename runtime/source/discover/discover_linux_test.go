package discover

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime/source/scrape/engine"
	"github.com/llmtop/llmtop/runtime/source/socket"
)

// find searches a test's machine, with enough time for a slow one.
func find(t *testing.T, tr *tree, ports ...uint16) Result {
	t.Helper()
	return Find(context.Background(), Options{Root: tr.root, Ports: append([]uint16{}, ports...), NoSockets: true, Within: 20 * time.Second})
}

// row holds the fields of an engine that tests compare.
type row struct {
	kind           engine.Kind
	model, version string
	at             netip.AddrPort
	pid            int
	how            How
	state          State
}

func rows(r Result) (out []row) {
	for _, f := range r.Engines {
		one := row{kind: f.Kind, model: f.Model, version: f.Version, pid: f.PID, how: f.How, state: f.State}
		if at, ok := strings.CutPrefix(f.Address, "http://"); ok {
			one.at = netip.MustParseAddrPort(at)
		}
		out = append(out, one)
	}
	return out
}

func same(t *testing.T, got Result, want ...row) {
	t.Helper()
	if diff := cmp.Diff(want, rows(got), cmp.AllowUnexported(row{}), cmp.Comparer(func(a, b netip.AddrPort) bool { return a == b })); diff != "" {
		t.Errorf("found (-want +got):\n%s", diff)
	}
}

func TestEnginesAreFoundByProcess(t *testing.T) {
	llama, vllm, sglang := serve(t, 200, llamaAnswers(t)), serve(t, 200, vllmAnswers(t)), serve(t, 200, sglangAnswers(t))
	web := serve(t, 200, answers{"/": "<html>"})
	tr := newTree(t)
	tr.process(1, 0, "/sbin/init")
	tr.process(10, 1, "/usr/bin/llama-server|-m|/m/a.gguf|--port|"+port(llama), llama.at())
	tr.process(20, 1, "python3|/venv/bin/vllm|serve|Qwen/Qwen3-30B-A3B", vllm.at(), web.at())
	tr.process(21, 20, "python3|/venv/bin/vllm|serve|Qwen/Qwen3-30B-A3B") // a forked worker
	tr.process(30, 1, "python3|-m|sglang.launch_server|--model-path|Qwen/Qwen3-30B-A3B", sglang.at())
	got := find(t, tr)
	same(t, got,
		row{engine.Llama, "qwen3-30b-a3b", "b10582-e85caa81e", llama.at(), 10, ByProcess, Ready},
		row{engine.SGLang, "Qwen/Qwen3-30B-A3B", got.Engines[1].Version, sglang.at(), 30, ByProcess, Ready},
		row{engine.VLLM, "Qwen/Qwen3-30B-A3B", "0.22.0", vllm.at(), 20, ByProcess, Ready},
	)
	if want := (engine.Load{Running: event.Reading{V: 2, Origin: event.Reported}}); got.Engines[0].Load != want {
		t.Errorf("llama.cpp's load is %+v", got.Engines[0].Load)
	}
	reported := func(v float64) event.Reading { return event.Reading{V: v, Origin: event.Reported} }
	if want := (engine.Load{Running: reported(6), Waiting: reported(2), Decode: reported(388.1)}); got.Engines[1].Load != want {
		t.Errorf("SGLang's load is %+v", got.Engines[1].Load)
	}
	if got.Engines[2].Load.Running.OK() || len(got.Notes) != 0 {
		t.Errorf("vLLM's load is %+v; notes %q", got.Engines[2].Load, got.Notes)
	}
	for _, f := range []*fake{llama, vllm, sglang, web} {
		f.harmless(t)
	}
}

func port(f *fake) string {
	_, p, _ := net.SplitHostPort(f.Listener.Addr().String())
	return p
}

// TestOllamaIsListedOnce: the llama-servers that it started are listed as its runners.
func TestOllamaIsListedOnce(t *testing.T) {
	ollama, child := serve(t, 200, ollamaAnswers(t)), serve(t, 200, llamaAnswers(t))
	tr := newTree(t)
	tr.process(100, 1, "/usr/local/bin/ollama|serve", ollama.at())
	tr.process(101, 100, "/usr/lib/ollama/llama-server|--model|/b/sha256-0b28|--port|"+port(child)+"|--host|127.0.0.1", child.at())
	got := find(t, tr, ollama.at().Port(), child.at().Port())
	same(t, got, row{engine.Ollama, "qwen3:30b-a3b", "0.33.0", ollama.at(), 100, ByProcess, Ready})
	if want := []Runner{{PID: 101, Address: child.URL, Model: "sha256-0b28"}}; !cmp.Equal(want, got.Engines[0].Runners) {
		t.Errorf("it runs %+v, want %+v", got.Engines[0].Runners, want)
	}
	if len(child.asked) != 0 {
		t.Errorf("its child got the requests %q", child.asked)
	}
}

// TestUsualPorts: a listener that answers like an engine is one, one that needs a key may be one, and others are not.
func TestUsualPorts(t *testing.T) {
	open, locked := serve(t, 200, vllmAnswers(t)), serve(t, 401, answers{})
	page, json := serve(t, 200, answers{"/": "<html>", "/v1/models": "<html>"}), serve(t, 200, answers{"/v1/models": `{"users":[]}`})
	own := serve(t, 200, vllmAnswers(t))
	tr := newTree(t)
	tr.process(7, 1, "/usr/local/bin/llmtop|proxy", own.at())
	tr.listen(open.at(), locked.at(), page.at(), json.at())
	got := find(t, tr, open.at().Port(), locked.at().Port(), page.at().Port(), json.at().Port(), own.at().Port(), 1)
	same(t, got,
		row{engine.VLLM, "Qwen/Qwen3-30B-A3B", "0.22.0", open.at(), 0, ByPort, Ready},
		row{"", "", "", locked.at(), 0, ByPort, NeedsKey},
	)
	if got.Engines[1].Attachable() || got.Engines[1].Known() {
		t.Error("a listener that needs a key counts as an engine")
	}
	if len(own.asked) != 0 {
		t.Errorf("llmtop got the requests %q", own.asked)
	}
}

// TestLockedEngine: a known process counts as an engine even if it needs a key.
func TestLockedEngine(t *testing.T) {
	locked := serve(t, http.StatusUnauthorized, answers{})
	tr := newTree(t)
	tr.process(10, 1, "vllm|serve|org/model", locked.at())
	got := find(t, tr)
	same(t, got, row{engine.VLLM, "org/model", "", locked.at(), 10, ByProcess, NeedsKey})
	if !got.Engines[0].Attachable() {
		t.Error("it cannot be attached to with a key")
	}
}

// TestSilentEngines: engines that hang, listen nowhere, or give unknown answers.
func TestSilentEngines(t *testing.T) {
	hangs, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer hangs.Close()
	at := netip.MustParseAddrPort(hangs.Addr().String())
	page := serve(t, 200, answers{"/v1/models": "<html>"})
	tr := newTree(t)
	tr.process(10, 1, "llama-server", at)
	tr.process(11, 1, "vllm|serve|x")
	tr.process(12, 1, "python3|-m|sglang.launch_server", page.at())
	got := Find(context.Background(), Options{Root: tr.root, Ports: []uint16{}, NoSockets: true, Within: 2 * time.Second})
	same(t, got,
		row{engine.Llama, "", "", at, 10, ByProcess, Silent},
		row{engine.SGLang, "", "", page.at(), 12, ByProcess, Silent},
		row{engine.VLLM, "x", "", netip.AddrPort{}, 11, ByProcess, Silent},
	)
	for _, f := range got.Engines {
		if f.Why == "" || f.Attachable() {
			t.Errorf("%s: why %q, attachable %t", f.Kind, f.Why, f.Attachable())
		}
	}
}

// TestWhatIsNotPermitted: it is noted, and the port on the command line is tried.
func TestWhatIsNotPermitted(t *testing.T) {
	open := serve(t, 200, vllmAnswers(t))
	tr := newTree(t)
	tr.process(10, 1, "vllm|serve|x|--port|"+port(open), open.at())
	tr.remove("10/fd")
	got := find(t, tr)
	same(t, got, row{engine.VLLM, "Qwen/Qwen3-30B-A3B", "0.22.0", open.at(), 10, ByProcess, Ready})
	if len(got.Notes) != 1 || !strings.Contains(got.Notes[0], "the ports of 1 process could not be read") {
		t.Errorf("notes: %q", got.Notes)
	}
	s := sight{unread: 12}
	if notes := s.notes(); len(notes) != 1 || notes[0] != "12 processes could not be read: not permitted" {
		t.Errorf("notes: %q", notes)
	}
	if got := Find(context.Background(), Options{Root: filepath.Join(tr.root, "none"), Ports: []uint16{}, NoSockets: true}); len(got.Notes) == 0 {
		t.Error("no note reports that there is no /proc")
	}
}

// TestContainers: a process in its own network is reached by its published port, if any.
func TestContainers(t *testing.T) {
	open := serve(t, 200, vllmAnswers(t))
	tr := newTree(t)
	tr.process(10, 1, "vllm|serve|x")
	tr.link("10/ns/net", "net:[2]")
	same(t, find(t, tr), row{engine.VLLM, "x", "", netip.AddrPort{}, 10, ByProcess, Elsewhere})
	tr.listen(open.at())
	same(t, find(t, tr, open.at().Port()), row{engine.VLLM, "Qwen/Qwen3-30B-A3B", "0.22.0", open.at(), 10, ByPort, Ready})
	tr.process(11, 1, "vllm|serve|y")
	tr.link("11/ns/net", "net:[3]")
	if got := find(t, tr, open.at().Port()); len(got.Engines) != 3 {
		t.Errorf("one of two containers was chosen: %+v", rows(got))
	}
}

// TestEventSockets: an engine with an event socket reports its model and load, and is not listed twice.
func TestEventSockets(t *testing.T) {
	t.Setenv("XDG_RUNTIME_DIR", t.TempDir())
	listen := func(name, token string, pid int) *socket.Server {
		s, err := socket.Listen(socket.Address(name), socket.Options{Token: token, Engine: event.EngineInfo{Name: name, Version: "1.2", PID: pid}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		return s
	}
	open := listen("mine", "", 10)
	listen("locked", "secret", 11)
	open.Emit(event.Event{Kind: event.KindModel, Layer: -1, Data: &event.Model{Name: "a model"}})
	open.Emit(event.Event{Kind: event.KindRequest, Req: 7, State: event.StateQueued, Layer: -1})
	server := serve(t, 200, vllmAnswers(t))
	tr := newTree(t)
	tr.process(10, 1, "vllm|serve|x", server.at())
	got := Find(context.Background(), Options{Root: tr.root, Ports: []uint16{}, Within: 5 * time.Second})
	if len(got.Engines) != 2 {
		t.Fatalf("found %+v", got.Engines)
	}
	mine, locked := got.Engines[0], got.Engines[1]
	want := Found{
		Kind: "mine", Version: "1.2", Model: "a model", Address: open.Address(), Other: server.URL, PID: 10, Program: "vllm serve", How: BySocket,
		Load: engine.Load{Running: event.Reading{V: 1, Origin: event.Reported}},
	}
	if diff := cmp.Diff(want, mine, cmpopts.IgnoreUnexported(Found{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if locked.State != NeedsKey || !strings.HasPrefix(locked.Address, "unix:") {
		t.Errorf("locked is %+v", locked)
	}
}

// TestLateEventSocket: an engine that needs longer than servers may take introduces itself on its event socket.
func TestLateEventSocket(t *testing.T) {
	t.Setenv("XDG_RUNTIME_DIR", t.TempDir())
	early, err := socket.Listen("unix:"+filepath.Join(t.TempDir(), "s"), socket.Options{Engine: event.EngineInfo{Name: "mine"}})
	if err != nil {
		t.Fatal(err)
	}
	defer early.Close()
	if err := os.MkdirAll(socket.Folder(), 0o700); err != nil {
		t.Fatal(err)
	}
	late, err := net.Listen("unix", filepath.Join(socket.Folder(), "late.sock"))
	if err != nil {
		t.Fatal(err)
	}
	defer late.Close()
	go func() {
		for conn, err := late.Accept(); err == nil; conn, err = late.Accept() {
			time.Sleep(2 * within)
			if from, err := net.Dial("unix", strings.TrimPrefix(early.Address(), "unix:")); err == nil {
				_, _ = io.Copy(conn, from) // until llmtop hangs up
				_ = from.Close()
			}
			_ = conn.Close()
		}
	}()
	got := Find(context.Background(), Options{NoServers: true})
	if len(got.Engines) != 1 || got.Engines[0].Kind != "mine" {
		t.Errorf("found %+v", got.Engines)
	}
}

// TestIdentifyIsAskedOnce: each address is queried once, all concurrently, within the time limit.
func TestIdentifyIsAskedOnce(t *testing.T) {
	tr := newTree(t)
	const n = 20
	for i := range n {
		tr.process(10+i, 1, "llama-server", netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), uint16(40000+i)))
	}
	all := make(chan struct{})
	var arrived atomic.Int32
	identified := func(ctx context.Context, _ string, _ bool) (Found, error) {
		if arrived.Add(1) == n {
			close(all)
		}
		select {
		case <-all:
			return Found{Kind: engine.Llama}, nil
		case <-ctx.Done():
			return Found{}, errors.New("the others were not asked meanwhile")
		}
	}
	r := Find(context.Background(), Options{Root: tr.root, Ports: []uint16{}, NoSockets: true, identify: identified, Within: 20 * time.Second})
	if len(r.Engines) != n || r.Engines[0].State != Ready || arrived.Load() != n {
		t.Errorf("%d engines, %d questions, the first is %+v", len(r.Engines), arrived.Load(), r.Engines[0])
	}
}

// BenchmarkFind searches a machine with 400 processes, 8 of them engines that answer at once.
func BenchmarkFind(b *testing.B) {
	tr := newTree(b)
	for i := range 400 {
		tr.process(1000+i, 1, "/usr/bin/something|--with|arguments")
	}
	for i, texts := range []func(testing.TB) answers{
		llamaAnswers, ollamaAnswers, vllmAnswers, sglangAnswers, llamaAnswers, ollamaAnswers, vllmAnswers, sglangAnswers,
	} {
		tr.process(10+i, 1, "llama-server", serve(b, 200, texts(b)).at())
	}
	for b.Loop() {
		if r := Find(context.Background(), Options{Root: tr.root, NoSockets: true}); len(r.Engines) != 8 {
			b.Fatalf("found %d engines", len(r.Engines))
		}
	}
}

// TestSlotsOfSleepersAreNotRead: only of a llama-server whose model never sleeps: reading them would keep it awake.
func TestSlotsOfSleepersAreNotRead(t *testing.T) {
	for name, c := range map[string]struct {
		command, environ string
		reads            bool
	}{
		"without sleep":      {"llama-server|-m|m.gguf", "HOME=/root\x00", true},
		"with sleep":         {"llama-server|-m|m.gguf|--sleep-idle-seconds|60", "HOME=/root\x00", false},
		"with sleep, in one": {"llama-server|--sleep-idle-seconds=60", "HOME=/root\x00", false},
		"by a variable":      {"llama-server|-m|m.gguf", "LLAMA_ARG_SLEEP_IDLE_SECONDS=60\x00", false},
		"by presets":         {"llama-server|--models-preset|m.ini", "HOME=/root\x00", false},
		"of another user":    {"llama-server|-m|m.gguf", "", false},
	} {
		tr, f := newTree(t), serve(t, 200, llamaAnswers(t))
		tr.process(10, 1, c.command, f.at())
		if tr.write("10/environ", c.environ); c.environ == "" {
			if err := os.Remove(filepath.Join(tr.root, "proc/10/environ")); err != nil {
				t.Fatal(err)
			}
		}
		r := find(t, tr)
		if len(r.Engines) != 1 || r.Engines[0].Load.Running.OK() != c.reads {
			t.Errorf("%s: %+v", name, r.Engines)
		}
		if asked := slices.ContainsFunc(f.asked, func(a string) bool { return strings.Contains(a, "slots") }); asked != c.reads {
			t.Errorf("%s: it got the requests %s", name, f.asked)
		}
	}
}

// TestSleepersAreNotWoken: reading the slots of a sleeping llama.cpp would load its model.
func TestSleepersAreNotWoken(t *testing.T) {
	texts := llamaAnswers(t)
	texts["/props"] = strings.Replace(texts["/props"], `"is_sleeping": false`, `"is_sleeping": true`, 1)
	f := serve(t, 200, texts)
	id, err := new(Watch).identify(context.Background(), f.URL, false)
	if err != nil || id.Kind != engine.Llama || id.Load.Running.OK() {
		t.Errorf("%+v, %v", id, err)
	}
	for _, asked := range f.asked {
		if strings.Contains(asked, "slots") {
			t.Errorf("it got the request %s", asked)
		}
	}
}
