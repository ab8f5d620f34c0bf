//go:build unix

package program_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/llmtop/llmtop/profiler/recording"
)

// requestLog is a server that answers with a function and keeps its requests.
type requestLog struct {
	*httptest.Server
	mu    sync.Mutex
	asked []string // method, path, key, body
}

func serving(t *testing.T, answer http.HandlerFunc) *requestLog {
	t.Helper()
	r := &requestLog{}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		body, _ := io.ReadAll(q.Body)
		r.mu.Lock()
		r.asked = append(r.asked, strings.Join([]string{q.Method, q.URL.String(), q.Header.Get("Authorization"), string(body)}, " "))
		r.mu.Unlock()
		answer(w, q)
	}))
	t.Cleanup(r.Close)
	return r
}

// with waits for a request that contains all words.
func (r *requestLog) with(t *testing.T, words ...string) {
	t.Helper()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		r.mu.Lock()
		all := append([]string(nil), r.asked...)
		r.mu.Unlock()
		for _, asked := range all {
			missing := false
			for _, w := range words {
				missing = missing || !strings.Contains(asked, w)
			}
			if !missing {
				return
			}
		}
	}
	t.Fatalf("no request with %q, got\n%s", words, strings.Join(r.asked, "\n"))
}

// quit ends the program with q.
func (p *program) quit(t *testing.T) {
	t.Helper()
	p.keys(t, "q")
	if code := p.exit(t); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

const serverKey = "sk-very-secret-indeed"

// locked is a handler that lists two models for requests with the key.
func locked(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.Header.Get("Authorization") != "Bearer "+serverKey:
		http.Error(w, `{"error":{"message":"no"}}`, http.StatusUnauthorized)
	case r.URL.Path == "/v1/models":
		_, _ = io.WriteString(w, `{"object":"list","data":[{"id":"small","object":"model","owned_by":"acme"},{"id":"large","object":"model","owned_by":"acme"}]}`)
	default:
		http.NotFound(w, r)
	}
}

// TestServerWithAKey checks that a server that needs a key is watched with the key of a file, which appears nowhere.
func TestServerWithAKey(t *testing.T) {
	t.Parallel()
	s, dir := serving(t, locked), t.TempDir()
	file, recording := filepath.Join(dir, "key"), filepath.Join(dir, "session.llmtop")
	if err := os.WriteFile(file, []byte(serverKey+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	q := start(t, 160, 45, "attach", s.URL, "--interval", "100ms")
	q.waitFor(t, "UNREACHABLE since llmtop started", "API key required: set --api-key-file FILE")
	q.quit(t)
	p := startIn(t, dir, "attach", s.URL, "--api-key-file", file, "--record", recording, "--interval", "100ms")
	p.waitFor(t, "OpenAI-compatible", "connected", "small and 1 more")
	s.with(t, "GET /v1/models Bearer "+serverKey)
	if r := p.report(t, dir); r.Engine.Name != "OpenAI-compatible" {
		t.Errorf("report %+v", r)
	}
	shown := p.text()
	p.quit(t)
	texts := append(linesOf(t, recording), shown)
	p.mu.Lock()
	texts = append(texts, string(p.tail))
	p.mu.Unlock()
	files, err := filepath.Glob(filepath.Join(dir, "*.*"))
	if err != nil || len(files) < 2 {
		t.Fatalf("%v, %v", files, err)
	}
	for _, name := range files {
		raw, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		texts = append(texts, string(raw))
	}
	for _, text := range texts {
		if strings.Contains(text, "very-secret") {
			t.Errorf("the key is in\n%.300s", text)
		}
	}
}

// linesOf returns the lines of a recording.
func linesOf(t *testing.T, path string) (lines []string) {
	t.Helper()
	rec, err := recording.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer rec.Close()
	for c := rec.Cursor(0); ; {
		e, err := c.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, string(e.Line))
	}
	if all := strings.Join(lines, ""); !strings.Contains(all, "OpenAI-compatible") || !strings.Contains(all, "small and 1 more") {
		t.Errorf("%d lines of the screen are recorded:\n%.2000s", len(lines), all)
	}
	return lines
}

// TestKeyOverHTTPIfAllowed checks --api-key-over-http to another machine, which a proxy redirects here.
func TestKeyOverHTTPIfAllowed(t *testing.T) {
	t.Parallel()
	s := serving(t, locked)
	path := binary(t)
	c := exec.Command(path, "attach", "http://gpu1.example:8000", "--api-key-over-http", "--interval", "100ms")
	c.Env = append(os.Environ(), "LLMTOP_API_KEY="+serverKey, "HTTP_PROXY="+s.URL, "http_proxy="+s.URL, "NO_PROXY=", "no_proxy=")
	p := startCommand(t, 160, 45, c)
	p.waitFor(t, "OpenAI-compatible", "connected", "small and 1 more")
	s.with(t, "GET http://gpu1.example:8000/v1/models Bearer "+serverKey)
	p.quit(t)
}

// TestDrain checks that the one-shot iterations of TensorRT-LLM are read only with --drain, and that the screen says
// so.
func TestDrain(t *testing.T) {
	t.Parallel()
	const iteration = `[{"iter":1,"iterLatencyMS":7.5,"numActiveRequests":4,"kvCacheStats":{"usedNumBlocks":50,"maxNumBlocks":100,"tokensPerBlock":32,"cacheHitRate":0.25}}]`
	for _, drain := range []bool{false, true} {
		s := serving(t, func(w http.ResponseWriter, r *http.Request) {
			switch r.URL.Path {
			case "/v1/models":
				_, _ = io.WriteString(w, `{"object":"list","data":[{"id":"m","object":"model","owned_by":"tensorrt_llm"}]}`)
			case "/version":
				_, _ = io.WriteString(w, `{"version":"1.2.0"}`)
			case "/metrics":
				_, _ = io.WriteString(w, iteration)
			default:
				http.NotFound(w, r)
			}
		})
		p := start(t, 160, 45, "attach", s.URL, fmt.Sprintf("--drain=%v", drain), "--interval", "100ms")
		p.waitFor(t, "TensorRT-LLM", "connected")
		if drain {
			p.waitFor(t, "--drain: other readers miss the iterations that llmtop reads", "50 %")
			s.with(t, "GET /metrics ")
		} else {
			p.waitFor(t, "read the iterations with --drain")
		}
		p.keys(t, "7")
		p.waitFor(t, "TensorRT-LLM · 1.2.0 · m")
		p.quit(t)
		s.mu.Lock()
		for _, asked := range s.asked {
			if !drain && strings.HasPrefix(asked, "GET /metrics ") {
				t.Errorf("unexpected request for %s", asked)
			}
		}
		s.mu.Unlock()
	}
}

// TestMatch checks that only the selected targets are queried from Prometheus.
func TestMatch(t *testing.T) {
	t.Parallel()
	const match = `job="vllm",cluster=~"eu-.*"`
	s := serving(t, func(w http.ResponseWriter, r *http.Request) {
		query, now := r.URL.Query().Get("query"), time.Now().Unix()
		var out []string
		add := func(labels string, v float64) {
			out = append(out, fmt.Sprintf(`{"metric":{%s},"value":[%d,"%v"]}`, labels, now, v))
		}
		const target = `"instance":"gpu1:8000","job":"vllm"`
		switch {
		case !strings.Contains(query, match):
		case strings.HasPrefix(query, "up{"):
			add(`"__name__":"up",`+target, 1)
		case strings.HasPrefix(query, "timestamp("):
			add(target, float64(now))
		case strings.HasPrefix(query, "count by"):
			add(`"__name__":"vllm:num_requests_running"`, 1)
		case strings.HasPrefix(query, "{__name__=~"):
			add(`"__name__":"vllm:num_requests_running","model_name":"org/matched",`+target, 5)
		}
		w.Header().Set("Content-Type", "application/json")
		raw, _ := json.Marshal(map[string]any{"status": "success", "data": map[string]any{
			"resultType": "vector", "result": json.RawMessage("[" + strings.Join(out, ",") + "]"),
		}})
		_, _ = w.Write(raw)
	})
	p := start(t, 160, 45, "attach", "prometheus+"+s.URL, "--match", "{"+match+"}", "--interval", "100ms")
	p.waitFor(t, "vLLM", "org/matched", "gpu1:8000")
	p.quit(t)
}

// TestWrongContentLength checks that the bytes after a too short Content-Length, which the HTTP client logs, do not
// reach the screen.
func TestWrongContentLength(t *testing.T) {
	t.Parallel()
	s := serving(t, func(w http.ResponseWriter, _ *http.Request) {
		c, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer c.Close()
		for range 20 { // the client may or may not notice
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}lies, and lies")
			time.Sleep(time.Millisecond)
		}
	})
	p := start(t, 120, 30, "attach", s.URL, "--interval", "100ms")
	p.waitFor(t, "UNREACHABLE since llmtop started", "no supported inference engine found at this address")
	for asked := 0; asked < 12; time.Sleep(5 * time.Millisecond) {
		s.mu.Lock()
		asked = len(s.asked)
		s.mu.Unlock()
	}
	p.quit(t)
	<-p.done
	p.mu.Lock()
	defer p.mu.Unlock()
	if strings.Contains(string(p.tail), "lies") || strings.Contains(string(p.tail), "nsolicited") {
		t.Errorf("its body is on the terminal: %q", p.tail)
	}
}
