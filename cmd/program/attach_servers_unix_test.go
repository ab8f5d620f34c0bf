//go:build unix

package program_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/llmtop/llmtop/runtime/source/discover"
	"github.com/llmtop/llmtop/runtime/source/peer"
	"github.com/llmtop/llmtop/runtime/source/probe"
)

// fakeServer answers like vLLM, with counters that the test sets.
type fakeServer struct {
	*httptest.Server
	mu     sync.Mutex
	tokens int
	down   bool
}

const fakeText = `vllm:num_requests_running{model_name="org/fake"} 3
vllm:num_requests_waiting{model_name="org/fake"} 4
vllm:generation_tokens_total{model_name="org/fake"} %[1]d
vllm:time_to_first_token_seconds_bucket{model_name="org/fake",le="0.1"} %[1]d
vllm:time_to_first_token_seconds_bucket{model_name="org/fake",le="0.25"} %[1]d
vllm:time_to_first_token_seconds_bucket{model_name="org/fake",le="+Inf"} %[1]d
vllm:time_to_first_token_seconds_sum{model_name="org/fake"} %[2]g
vllm:time_to_first_token_seconds_count{model_name="org/fake"} %[1]d
`

func newFakeServer(t *testing.T) *fakeServer {
	t.Helper()
	f := &fakeServer{tokens: 1000}
	f.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f.mu.Lock()
		defer f.mu.Unlock()
		switch {
		case f.down:
			http.Error(w, "down", http.StatusServiceUnavailable)
		case r.URL.Path == "/v1/models":
			_, _ = io.WriteString(w, `{"object":"list","data":[{"id":"org/fake","object":"model","owned_by":"vllm"}]}`)
		case r.URL.Path == "/version":
			_, _ = io.WriteString(w, `{"version":"0.11.2"}`)
		case r.URL.Path == "/metrics":
			w.Header().Set("Content-Type", "text/plain; version=0.0.4")
			f.tokens += 10
			_, _ = fmt.Fprintf(w, fakeText, f.tokens, float64(f.tokens)*0.05)
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(f.Close)
	return f
}

func (f *fakeServer) set(down bool, tokens int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.down, f.tokens = down, tokens
}

// documentOf is the part of a report that the tests read.
type documentOf struct {
	Engine struct{ Name, Version string }
	Model  struct {
		Name    string
		Layers  int
		Experts int
	}
	Totals struct {
		Generated uint64 `json:"generated_tokens"`
		Finished  json.Number
	}
}

func decoded(t *testing.T, raw []byte) (d documentOf) {
	t.Helper()
	if err := json.Unmarshal(raw, &d); err != nil {
		t.Fatalf("%v in\n%s", err, raw)
	}
	return d
}

// replayed returns the report of a recording.
func replayed(t *testing.T, file string) documentOf {
	t.Helper()
	path := binary(t)
	raw, err := exec.Command(path, "replay", file, "--headless", "--json", "-").Output()
	if err != nil {
		t.Fatalf("replay: %v\n%s", err, raw)
	}
	return decoded(t, raw)
}

// startIn runs llmtop in its own folder, where it writes reports.
func startIn(t *testing.T, dir string, args ...string) *program {
	t.Helper()
	c := exec.Command(binary(t), args...)
	c.Dir = dir
	return startCommand(t, 160, 45, c)
}

// startWithKey is startIn with an API key.
func startWithKey(t *testing.T, dir string, args ...string) *program {
	t.Helper()
	c := exec.Command(binary(t), args...)
	c.Dir = dir
	c.Env = append(c.Environ(), "LLMTOP_API_KEY=sk-very-secret")
	return startCommand(t, 160, 45, c)
}

// report makes the program write its current report, and returns it.
func (p *program) report(t *testing.T, dir string) documentOf {
	t.Helper()
	p.keys(t, "1S")
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		files, _ := filepath.Glob(filepath.Join(dir, "*.json"))
		if len(files) == 0 {
			continue
		}
		if raw, err := os.ReadFile(files[0]); err == nil && json.Valid(raw) {
			return decoded(t, raw)
		}
	}
	t.Fatalf("no report was written; the screen shows\n%s", p.text())
	return documentOf{}
}

// TestAttachServer watches an HTTP server that stops and restarts with reset counters. The recording shows the same.
func TestAttachServer(t *testing.T) {
	t.Parallel()
	f, dir := newFakeServer(t), t.TempDir()
	file := filepath.Join(dir, "session.llmtop")
	p := startIn(t, dir, "attach", f.URL, "--record", file, "--interval", "100ms")
	p.waitFor(t, "vLLM", "org/fake", "connected")
	p.keys(t, "7")
	p.waitFor(t, "<100 ms", "reported") // TTFT in the first bucket
	f.set(true, 1000)
	p.waitFor(t, "DISCONNECTED", "HTTP 503")
	f.set(false, 5)
	p.waitFor(t, "RESTARTED (1)")
	r := p.report(t, dir)
	if r.Engine.Name != "vLLM" || r.Engine.Version != "0.11.2" || r.Model.Name != "org/fake" || r.Totals.Generated == 0 {
		t.Errorf("report %+v", r)
	}
	p.keys(t, "q")
	if code := p.exit(t); code != 0 {
		t.Errorf("exit code %d", code)
	}
	again := replayed(t, file)
	if again.Engine != r.Engine || again.Model != r.Model || again.Totals.Generated < r.Totals.Generated {
		t.Errorf("recorded %+v, the screen showed %+v", again, r)
	}
	q := start(t, 160, 45, "replay", file, "--speed", "16")
	q.waitFor(t, "vLLM", "org/fake")
	q.keys(t, "7\x1b[F")
	q.waitFor(t, "RESTARTED (1)", "<100 ms")
}

// TestSeveralServers checks the list of servers with their sums, and that one of them can be opened.
func TestSeveralServers(t *testing.T) {
	t.Parallel()
	p := start(t, 160, 45, "attach", newFakeServer(t).URL, newFakeServer(t).URL, newFakeServer(t).URL, "--interval", "100ms")
	p.keys(t, "7")
	p.waitFor(t, "3 engines", "sum", "9", "12") // three with 3 running requests each, 4 waiting in total
	p.keys(t, "\x1b[B\r")
	p.waitFor(t, "/3 http://127.0.0.1", "time to first token by component") // rows are sorted by name, engines by the order of the command line
}

func posted(url, body string) error {
	resp, err := http.Post(url, "application/json", strings.NewReader(body))
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	return err
}

// generate sends a server one request.
func generate(t *testing.T, url, body string) {
	t.Helper()
	if err := posted(url, body); err != nil {
		t.Fatal(err)
	}
}

// generating sends a server requests until the test calls enough.
func generating(t *testing.T, url, path, body string) (enough func()) {
	t.Helper()
	stop, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case <-stop:
				return
			default:
			}
			if posted(url+path, body) != nil { // the server was killed
				time.Sleep(10 * time.Millisecond)
			}
		}
	}()
	var once sync.Once
	enough = func() {
		once.Do(func() { close(stop) })
		<-ended
	}
	t.Cleanup(enough)
	return enough
}

// TestAttachLlamaServer watches a real llama-server: its slots under load, its end, and its restart.
func TestAttachLlamaServer(t *testing.T) {
	t.Parallel()
	server := peer.LlamaServer(t, "", "--metrics", "--parallel", "2", "--ctx-size", "2048", "--threads", "1")
	dir := t.TempDir()
	file := filepath.Join(dir, "session.llmtop")
	p := startIn(t, dir, "attach", server.URL, "--record", file, "--interval", "200ms")
	p.waitFor(t, "llama.cpp", "connected", "2 slots, all idle")
	enough := generating(t, server.URL, "/completion", `{"prompt":"Call me Ishmael.","n_predict":900,"ignore_eos":true}`)
	p.waitFor(t, "slot ", "tokens", "tok/s")
	if runtime.GOOS == "linux" {
		p.waitFor(t, " cores ", " threads") // of its process
	}
	server.Kill()
	p.waitFor(t, "DISCONNECTED since")
	again := server.Again(t)
	p.waitFor(t, "connected", "slot ")
	enough()
	p.waitFor(t, "all idle")
	if runtime.GOOS == "linux" {
		p.waitFor(t, "8L × 16E") // from the file of the model, once its new process is known
	}
	want := tokensOf(t, again.URL)
	r := p.report(t, dir)
	if r.Engine.Name != "llama.cpp" || r.Totals.Generated < want || r.Totals.Finished != "" { // it counts no requests
		t.Errorf("report %+v; the server counted %d tokens since its restart", r, want)
	}
	if runtime.GOOS == "linux" && (r.Model.Layers != 8 || r.Model.Experts != 16) {
		t.Errorf("model %+v", r.Model)
	}
	p.keys(t, "q")
	if code := p.exit(t); code != 0 {
		t.Errorf("exit code %d", code)
	}
	if again := replayed(t, file); again != r {
		t.Errorf("recorded %+v, the screen showed %+v", again, r)
	}
}

// tokensOf returns how many tokens a llama-server has generated, from its metrics.
func tokensOf(t *testing.T, url string) (n uint64) {
	t.Helper()
	resp, err := http.Get(url + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(text), "\nllamacpp:tokens_predicted_total ")
	if _, err := fmt.Sscan(after, &n); err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	return n
}

// TestAttachOllama watches a real Ollama: with no model in memory, and when it loads one.
func TestAttachOllama(t *testing.T) {
	t.Parallel()
	server := peer.Ollama(t)
	body := func(model string, tokens int) string { // on one thread, since two models share the cores
		const text = `{"model":%q,"prompt":"Call me Ishmael.","stream":false,"options":{"num_predict":%d,"num_thread":1}}`
		return fmt.Sprintf(text, model, tokens)
	}
	p := start(t, 160, 45, "attach", server.URL, "--interval", "200ms")
	p.waitFor(t, "Ollama", "no model in memory")
	generate(t, server.URL+"/api/generate", body(peer.OllamaModel, 8))
	p.waitFor(t, peer.OllamaModel)
	if runtime.GOOS == "linux" { // requests are visible in the slots of its llama-server
		p.waitFor(t, "in memory", "CPU", " of a core ")
		defer generating(t, server.URL, "/api/generate", body(peer.OllamaModel, 900))()
		p.waitFor(t, "from slot progress between two polls", "tok/s", "#1", "+ out")
		const second = "second:latest"
		peer.OllamaAlso(t, server, second)
		defer generating(t, server.URL, "/api/generate", body(second, 900))()
		p.waitFor(t, second, peer.OllamaModel, ":latest and 1 more", "running    2 ") // Ollama lists the one used last first
		p.keys(t, "2")
		p.waitFor(t, "model", second, peer.OllamaModel[:10])
	}
	p.keys(t, "7")
	p.waitFor(t, "gpu memory", "not reported")
}

// TestLlamaServerFallsAsleep checks that watching neither keeps a llama-server with metrics awake nor wakes it.
func TestLlamaServerFallsAsleep(t *testing.T) {
	t.Parallel()
	server := peer.LlamaServer(t, "", "--metrics", "--sleep-idle-seconds", "2", "--parallel", "2", "--threads", "1")
	p := start(t, 160, 45, "attach", server.URL, "--interval", "200ms")
	p.waitFor(t, "asleep until the next request")
	generate(t, server.URL+"/completion", `{"prompt":"Call me Ishmael.","n_predict":600,"ignore_eos":true}`)
	p.waitFor(t, " 600") // of the session, or of the request if the counters were first read while it ran
	for end := time.Now().Add(time.Minute); strings.Count(server.Log(), "entering sleeping state") < 2; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("it did not fall asleep again; the screen shows\n%s", p.text())
		}
	}
	p.waitFor(t, "asleep until the next request")
}

// TestWatchAllServers checks that "a" in the list of servers found watches them all: as root by probes, which show most,
// once the user agrees.
func TestWatchAllServers(t *testing.T) {
	path := binary(t)
	one, two := peer.LlamaServer(t, "", "--metrics", "--threads", "1"), peer.LlamaServer(t, "", "--threads", "1")
	t.Setenv("XDG_RUNTIME_DIR", t.TempDir())
	c := exec.Command(path)
	c.Env = append(os.Environ(), "LLMTOP_DISCOVER=all")
	p := startCommand(t, 160, 45, c)
	first, second := one.URL, two.URL
	if discover.Privileged() && probe.Permitted() == nil {
		first, second = fmt.Sprintf("pid:%d", one.PID), fmt.Sprintf("pid:%d", two.PID)
	}
	p.waitFor(t, "engines on this machine", first, second)
	p.keys(t, "a")
	if first != one.URL {
		p.waitFor(t, "attach probes to")
		p.keys(t, "y")
	}
	p.waitFor(t, "Engines", "sum", "idle", first, second)
}

// TestKeyIsNotSentUnencrypted checks that the API key goes to another machine only over HTTPS, unless the user allows
// it.
func TestKeyIsNotSentUnencrypted(t *testing.T) {
	t.Parallel()
	p := startWithKey(t, t.TempDir(), "attach", "http://gpu1.example:8000")
	if code := p.exit(t); code != 2 {
		t.Errorf("exit code %d, want 2", code)
	}
	p.waitFor(t, "attach http://gpu1.example:8000: the API key would be sent unencrypted", "--api-key-over-http")
	if strings.Contains(p.text(), "secret") {
		t.Errorf("the key is on the screen:\n%s", p.text())
	}
	q := startWithKey(t, t.TempDir(), "attach", newFakeServer(t).URL) // on this machine
	q.waitFor(t, "org/fake")
}
