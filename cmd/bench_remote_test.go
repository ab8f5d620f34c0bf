package cmd

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/llmtop/llmtop/cmd/exit"
	"github.com/llmtop/llmtop/profiler/report"
)

// answers is a server that answers like llama.cpp, or like an unknown server.
type answers struct {
	kind  string // owner of the model
	first int64  // token id of the first word

	mu   sync.Mutex
	sent []map[string]any
	keys map[string]bool
}

func (a *answers) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.keys[r.Header.Get("Authorization")] = true
	switch r.URL.Path {
	case "/v1/models":
		fmt.Fprintf(w, `{"data":[{"id":"m","owned_by":%q}]}`, a.kind)
	case "/tokenize":
		var q struct {
			Content string `json:"content"`
		}
		_ = json.NewDecoder(r.Body).Decode(&q)
		ids := []int64{1} // BOS
		for i := range strings.Fields(q.Content) {
			ids = append(ids, a.first+int64(i+2))
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"tokens": ids})
	case "/v1/completions", "/v1/chat/completions":
		var q map[string]any
		_ = json.NewDecoder(r.Body).Decode(&q)
		a.sent = append(a.sent, q)
		a.generate(w, q)
	default:
		http.NotFound(w, r)
	}
}

func (a *answers) generate(w http.ResponseWriter, q map[string]any) {
	prompt := 7
	if ids, ok := q["prompt"].([]any); ok {
		prompt = len(ids)
	}
	n := int(q["max_tokens"].(float64))
	for i := range n {
		fmt.Fprintf(w, "data: {\"choices\":[{\"text\":\" word\",\"delta\":{\"content\":\" word\"}}],\"usage\":{\"completion_tokens\":%d}}\n\n", i+1)
		w.(http.Flusher).Flush()
		time.Sleep(time.Millisecond)
	}
	fmt.Fprintf(w, "data: {\"choices\":[{\"finish_reason\":\"length\"}],\"usage\":{\"prompt_tokens\":%d,\"completion_tokens\":%d}}\n\ndata: [DONE]\n\n", prompt, n)
}

// serve starts the server and returns its address.
func (a *answers) serve(t *testing.T) string {
	t.Helper()
	a.keys = map[string]bool{}
	s := httptest.NewServer(a)
	t.Cleanup(s.Close)
	return s.URL
}

// bencher runs a benchmark and returns its report and notes.
func bencher(t *testing.T, args ...string) (*report.Report, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "report.json")
	_, stderr, err := llmtop(t, append([]string{"bench", "--json", path}, args...)...)
	if err != nil {
		t.Fatal(err)
	}
	return readReport(t, path), stderr
}

// TestBenchServer checks that prompts have exactly the requested tokens and no two are equal, and that the report has
// the metrics of the requests, and of the client.
func TestBenchServer(t *testing.T) {
	t.Setenv("LLMTOP_API_KEY", "sk-very-secret")
	a := &answers{kind: "llamacpp"}
	r, stderr := bencher(t, a.serve(t), "--prompt-tokens", "16,40", "--concurrency", "2", "-n", "5", "--requests", "3", "--repeats", "2",
		"--record", filepath.Join(t.TempDir(), "r.llmtop"))
	if len(r.Requests) != 2*(1+2*3) || r.Bench.Failed != 0 {
		t.Fatalf("%d requests, %d failed", len(r.Requests), r.Bench.Failed)
	}
	for i, p := range r.Bench.Points {
		if want := []string{"16 tokens, 2 at a time", "40 tokens, 2 at a time"}[i]; p.Name != want || p.TTFT.Count != 6 || p.TPOT.Count != 6 || p.ITL.Count != 24 {
			t.Errorf("%s: %d TTFT, %d TPOT, %d ITL", p.Name, p.TTFT.Count, p.TPOT.Count, p.ITL.Count)
		}
		if want := uint64(6 * []int{16, 40}[i]); p.Tokens.Prompt != want {
			t.Errorf("prompts of %d tokens, want %d", p.Tokens.Prompt, want)
		}
	}
	prompts := map[string]bool{}
	for _, q := range a.sent {
		prompts[fmt.Sprint(q["prompt"])] = true
		if q["ignore_eos"] != true || q["cache_prompt"] != false {
			t.Errorf("sent %v", q)
		}
	}
	if len(prompts) != len(a.sent) {
		t.Errorf("%d prompts in %d requests", len(prompts), len(a.sent))
	}
	if c := r.Bench.Client; c == nil || c.ReadLag == nil || c.ReadLag.Count < 1 || c.UncountedResponses != 0 || !c.CPU.OK() {
		t.Errorf("client %+v", c)
	}
	if r.Engine.Name != "llama.cpp" || r.Model.Name != "m" || r.Configuration["api"] != "openai" || r.Configuration["threads"] != "" {
		t.Errorf("engine %+v, model %+v, %v", r.Engine, r.Model, r.Configuration)
	}
	if !a.keys["Bearer sk-very-secret"] || len(a.keys) != 1 {
		t.Errorf("keys %v", a.keys)
	}
	written, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(written)+stderr, "sk-very-secret") {
		t.Error("the key is in a file")
	}
}

// TestBenchPromptsAreNew checks that no prompt of one benchmark begins like a prompt of another, that --prompt-salt
// repeats them, and that --prompt-cache sends the same ones.
func TestBenchPromptsAreNew(t *testing.T) {
	a := &answers{kind: "llamacpp"}
	at := a.serve(t)
	prompts := func(more ...string) (sent []string, r *report.Report) {
		a.sent = nil
		r, _ = bencher(t, append([]string{at, "--prompt-tokens", "24", "--concurrency", "1,2", "-n", "1", "--requests", "2", "--repeats", "1"}, more...)...)
		for _, q := range a.sent {
			sent = append(sent, fmt.Sprint(q["prompt"].([]any)))
		}
		slices.Sort(sent) // two at a time arrive in any order
		return sent, r
	}
	first, r := prompts()
	second, _ := prompts()
	starts := map[string]bool{}
	for _, p := range append(slices.Clone(first), second...) {
		starts[strings.Join(strings.Fields(p)[:5], " ")] = true // BOS and four words
	}
	if len(starts) != 12 {
		t.Errorf("%d starts of 12 prompts:\n%s", len(starts), strings.Join(append(first, second...), "\n"))
	}
	if again, _ := prompts("--prompt-salt", r.Configuration["prompt-salt"]); !slices.Equal(again, first) {
		t.Errorf("with the salt of the report, prompts differ:\n%v\n%v", again, first)
	}
	cached, r := prompts("--prompt-cache")
	if again, _ := prompts("--prompt-cache"); !slices.Equal(again, cached) || r.Configuration["prompt-salt"] != "" {
		t.Errorf("with --prompt-cache, prompts differ, or salt %q", r.Configuration["prompt-salt"])
	}
}

// TestBenchLargeTokenIDs checks that a server whose token ids cannot be sent back gets texts of about that length.
func TestBenchLargeTokenIDs(t *testing.T) {
	a := &answers{kind: "llamacpp", first: 4194447388}
	r, _ := bencher(t, a.serve(t), "--prompt-tokens", "16", "-n", "2", "--requests", "1", "--repeats", "1")
	if r.Bench.Points[0].Name != "about 16 tokens, 1 at a time" || r.Bench.Failed != 0 {
		t.Errorf("%s, %d failed", r.Bench.Points[0].Name, r.Bench.Failed)
	}
}

// TestBenchUnknownServer checks that approximate numbers are marked as such.
func TestBenchUnknownServer(t *testing.T) {
	a := &answers{kind: "somebody"}
	r, stderr := bencher(t, a.serve(t)+"/v1", "--prompt-tokens", "32", "-n", "3", "--requests", "2", "--repeats", "1")
	if r.Bench.Points[0].Name != "about 32 tokens, 1 at a time" || r.Requests[0].Prompt.V != 7 || r.Requests[0].Generated != 3 {
		t.Errorf("%s: %+v", r.Bench.Points[0].Name, r.Requests[0])
	}
	for _, want := range []string{"model m, API openai-chat", "outputs may be shorter than --tokens", "may be served from it"} {
		if !strings.Contains(stderr, want) {
			t.Errorf("%q is not printed:\n%s", want, stderr)
		}
	}
	if _, beyond := a.sent[0]["ignore_eos"]; beyond {
		t.Errorf("sent %v", a.sent[0])
	}
}

// TestBenchSocketEngine benchmarks an engine over its event socket.
func TestBenchSocketEngine(t *testing.T) {
	folder, err := os.MkdirTemp("", "llmtop") // paths of sockets must be short
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(folder)
	at := "unix:" + filepath.Join(folder, "e.sock")
	ctx, stop := context.WithCancel(t.Context())
	served, serve := make(chan error, 1), command(t, "serve", "--listen", at)
	go func() { served <- serve.ExecuteContext(ctx) }()
	defer func() {
		stop()
		<-served
	}()
	r, _ := bencher(t, at, "-p", "Call me Ishmael.", "-n", "6", "--requests", "2", "--repeats", "2")
	p := r.Bench.Points[0]
	if p.TTFT.Count+countOf(p.ColdTTFT) != 4 || p.TPOT.Count != 4 || r.Engine.Name != "native" || r.Bench.Client == nil || r.Bench.Failed != 0 {
		t.Errorf("%+v of %+v", p, r.Engine)
	}
	if p.Tokens.Generated != 24 {
		t.Errorf("%d tokens", p.Tokens.Generated)
	}
}

func countOf(s *report.Statistics) int {
	if s == nil {
		return 0
	}
	return s.Count
}

// TestBenchRefuses checks that errors about remote engines are one line.
func TestBenchRefuses(t *testing.T) {
	a := &answers{kind: "somebody"}
	at := a.serve(t)
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	for want, args := range map[string][]string{
		"--threads applies only to engines that llmtop runs":              {at, "--threads", "2"},
		"--cold applies only to engines that llmtop runs":                 {at, "--cold", "1"},
		"--model needs the address of a server":                           {"--model", "m"},
		"--api-key-file needs the address of a server":                    {"unix:/x", "--api-key-file", "k"},
		`--api "grpc": must be openai-chat`:                               {at, "--api", "grpc"},
		"API ollama needs Ollama":                                         {at, "--api", "ollama"},
		"read API key missing: no such":                                   {at, "--api-key-file", "missing"},
		"refused":                                                         {gone.URL},
		"remove the user and password":                                    {"http://a:b@127.0.0.1:1"},
		"connect to unix:/nowhere/e.sock: no answer":                      {"unix:/nowhere/e.sock"},
		"--concurrency 20000: must be 1 to 10000":                         {at, "--concurrency", "20000"},
		"--prompt-cache needs the address of a server: llmtop bench http": {"--prompt-cache"},
		"--prompt-salt: --prompt-cache sends the same prompts":            {at, "--prompt-cache", "--prompt-salt", "3"},
	} {
		_, _, err := llmtop(t, append([]string{"bench"}, args...)...)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") || exit.Code(err) != exit.CodeUsage {
			t.Errorf("%v: %v, exit code %d; want %s", args, err, exit.Code(err), want)
		}
	}
}

// TestCompareBenchesOfServer checks that benchmarks of a server, each with prompts of its own, can be compared, as
// reports and as recordings, several of a side and single ones.
func TestCompareBenchesOfServer(t *testing.T) {
	for _, kind := range []string{"llamacpp", "me"} {
		at, dir := (&answers{kind: kind}).serve(t), t.TempDir()
		name := func(i int, ext string) string { return filepath.Join(dir, fmt.Sprint(i, ext)) }
		for i := range 4 {
			if _, _, err := llmtop(t, "bench", at, "--prompt-tokens", "16", "-n", "3", "--requests", "2", "--repeats", "1", "--json", name(i, ".json"), "--record", name(i, ".llmtop")); err != nil {
				t.Fatal(err)
			}
		}
		for _, ext := range []string{".json", ".llmtop"} {
			out, _, err := llmtop(t, "compare", name(0, ext)+","+name(2, ext), name(1, ext)+","+name(3, ext))
			if exit.Code(err) == exit.CodeNotCompared || !strings.Contains(out, "tpot") || strings.Contains(out, "different conditions") {
				t.Errorf("%s, %s: %v\n%s", kind, ext, err, out)
			}
		}
		out, _, err := llmtop(t, "compare", name(0, ".json"), name(1, ".llmtop"))
		if exit.Code(err) == exit.CodeNotCompared || strings.Contains(out, "different conditions") {
			t.Errorf("%s, a report with a recording: %v\n%s", kind, err, out)
		}
	}
}

// limited refuses requests beyond a burst and a rate per second.
type limited struct {
	*answers
	rate, burst float64

	mu   sync.Mutex
	room float64
	last time.Time
}

func (l *limited) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodPost && r.URL.Path != "/tokenize" {
		l.mu.Lock()
		now := time.Now()
		l.room = min(l.room+now.Sub(l.last).Seconds()*l.rate, l.burst)
		l.last = now
		refused := l.room < 1
		if !refused {
			l.room--
		}
		l.mu.Unlock()
		if refused {
			http.Error(w, `{"error":{"message":"rate limit"}}`, http.StatusTooManyRequests)
			return
		}
	}
	l.answers.ServeHTTP(w, r)
}

// TestCapacityOfLimitedServer checks that a server that refuses requests above a rate has a capacity, which is no failure
// of the benchmark, and that one that refuses all has none.
func TestCapacityOfLimitedServer(t *testing.T) {
	s := httptest.NewServer(&limited{answers: &answers{kind: "me", keys: map[string]bool{}}, rate: 100, burst: 20})
	defer s.Close()
	path := filepath.Join(t.TempDir(), "report.json")
	out, _, err := llmtop(t, "bench", s.URL, "-p", "x", "-n", "1", "--find-capacity", "--slo", "ttft=30s", "--requests", "40", "--json", path)
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	c := readReport(t, path).Bench.Capacity
	if c.Rate == nil || c.Knee() == nil || c.Client || *c.Rate > 400 {
		t.Fatalf("capacity %+v", c)
	}
	if last := c.Trials[len(c.Trials)-1]; last.Failed == 0 || last.Met+last.Failed != last.Requests {
		t.Errorf("%+v", last)
	}
	out, _, err = llmtop(t, "report", path)
	if err != nil || !strings.Contains(out, "requests failed") || !strings.Contains(out, "Capacity: ") {
		t.Errorf("%v\n%s", err, out)
	}
	none := httptest.NewServer(&limited{answers: &answers{kind: "me", keys: map[string]bool{}}})
	defer none.Close()
	_, _, err = llmtop(t, "bench", none.URL, "-p", "x", "-n", "1", "--find-capacity", "--slo", "ttft=30s", "--requests", "40")
	if exit.Code(err) != exit.CodeFailed || !strings.Contains(err.Error(), "429") {
		t.Errorf("all requests refused: %v", err)
	}
}

// TestBenchServerFails checks that failed requests are counted and fail the run.
func TestBenchServerFails(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			_, _ = io.WriteString(w, `{"data":[{"id":"m"}]}`)
			return
		}
		http.Error(w, "overloaded", http.StatusServiceUnavailable)
	}))
	defer s.Close()
	out, _, err := llmtop(t, "bench", s.URL, "-p", "x", "-n", "2", "--requests", "2", "--repeats", "1", "--warmup", "0")
	if err == nil || exit.Code(err) != exit.CodeFailed || !strings.Contains(err.Error(), "503 (Service Unavailable): overloaded") || !strings.Contains(out, "2 requests failed") {
		t.Errorf("%v, exit code %d:\n%s", err, exit.Code(err), out)
	}
}
