//go:build unix

package program_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// chatServer streams three tokens, or sends the whole answer if the request does not stream.
func chatServer(tb testing.TB) *httptest.Server {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if strings.Contains(string(body), `"stream":false`) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"model":"tiny-chat","choices":[{"message":{"content":"said"},"finish_reason":"length"}],"usage":{"prompt_tokens":5,"completion_tokens":8}}`)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		for range 3 {
			_, _ = io.WriteString(w, `data: {"model":"tiny-chat","choices":[{"delta":{"content":"said"}}]}`+"\n\n")
			_ = http.NewResponseController(w).Flush()
			time.Sleep(5 * time.Millisecond)
		}
		_, _ = io.WriteString(w, `data: {"choices":[{"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":5,"completion_tokens":3}}`+"\n\ndata: [DONE]\n\n")
	}))
	tb.Cleanup(server.Close)
	return server
}

// say sends a request with a key through a proxy.
func say(t *testing.T, at, body string) {
	t.Helper()
	req, err := http.NewRequest(http.MethodPost, at+"/v1/chat/completions", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer sk-secret")
	req.Header.Set("X-Tenant", "blue")
	req.Close = true
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if text, err := io.ReadAll(res.Body); err != nil || !strings.Contains(string(text), "said") {
		t.Fatalf("%q, %v", text, err)
	}
}

// TestProxyReports forwards requests through a proxy, ends it, and reads its report and recording.
func TestProxyReports(t *testing.T) {
	t.Parallel()
	path := binary(t)
	server := chatServer(t)
	dir := t.TempDir()
	report, again, recording := filepath.Join(dir, "report.json"), filepath.Join(dir, "again.json"), filepath.Join(dir, "session.llmtop")
	c := exec.Command(path, "proxy", "--to", server.URL+"/v1", "--listen", "127.0.0.1:0", "--group-header", "X-Tenant",
		"--headless", "--json", report, "--record", recording, "--metrics-listen", "127.0.0.1:0")
	notes, err := c.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(notes)
	var at, to string
	first, err := lines.ReadString('\n')
	if _, scanErr := fmt.Sscanf(first, "listening: %s forwarding to %s", &at, &to); err != nil || scanErr != nil || to != server.URL {
		t.Fatalf("%q, %v, %v", first, err, scanErr)
	}
	at = strings.TrimSuffix(at, ",")
	var metrics string
	second, err := lines.ReadString('\n')
	if _, scanErr := fmt.Sscanf(second, "metrics: %s", &metrics); err != nil || scanErr != nil {
		t.Fatalf("%q, %v, %v", second, err, scanErr)
	}
	say(t, at, `{"model":"alias","messages":[{"role":"user","content":"asked"}],"stream":true,"max_tokens":9}`)
	say(t, at, `{"model":"alias","messages":[{"role":"user","content":"asked"}],"stream":false}`)
	want := fmt.Sprintf(`llmtop_requests_total{engine=%q,outcome="finished"} 2`, server.URL)
	for deadline := time.Now().Add(20 * time.Second); !strings.Contains(get(t, metrics), want); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("the metrics lack %s:\n%s", want, get(t, metrics))
		}
	}
	if err := c.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	rest, _ := io.ReadAll(lines)
	if err := c.Wait(); err != nil || string(rest) != "wrote "+recording+"\n" {
		t.Fatalf("%v: %s", err, rest)
	}
	checkReport(t, report)
	if out, err := exec.Command(path, "replay", recording, "--headless", "--json", again).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	checkReport(t, again)
}

// get returns the body at an address.
func get(t *testing.T, at string) string {
	t.Helper()
	res, err := http.Get(at)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// checkReport checks the two requests of a report, and that it has no secrets.
func checkReport(t *testing.T, name string) {
	t.Helper()
	raw, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	for _, secret := range []string{"sk-secret", "asked", "said"} {
		if strings.Contains(string(raw), secret) {
			t.Errorf("%s holds %q", name, secret)
		}
	}
	var r struct {
		Model    struct{ Name string }
		Requests []struct {
			Group, Label, Model, State, Reason string
			TTFT                               *float64 `json:"ttft_s"`
			Prompt                             int      `json:"prompt_tokens"`
			Generated                          int      `json:"generated_tokens"`
			Tokens                             []any
		}
	}
	if err := json.Unmarshal(raw, &r); err != nil {
		t.Fatal(err)
	}
	if r.Model.Name != "tiny-chat" || len(r.Requests) != 2 {
		t.Fatalf("%s: %+v", name, r)
	}
	a, b := r.Requests[0], r.Requests[1]
	if a.Group != "blue" || a.Label != "chat" || a.Model != "alias" || a.State != "finished" || a.Reason != "stop" || a.TTFT == nil || a.Prompt != 5 || a.Generated != 3 || len(a.Tokens) == 0 {
		t.Errorf("%s: what streams: %+v", name, a)
	}
	if b.State != "finished" || b.Reason != "length" || b.TTFT != nil || b.Prompt != 5 || b.Generated != 8 || len(b.Tokens) != 0 {
		t.Errorf("%s: what does not: %+v", name, b)
	}
}

// TestProxyOnTheScreen shows requests, and a server that stops, and saves a report.
func TestProxyOnTheScreen(t *testing.T) {
	t.Parallel()
	server := chatServer(t)
	front := httptest.NewServer(nil) // reserves a free address
	at := front.Listener.Addr().String()
	front.Close()
	c := exec.Command(binary(t), "proxy", "--to", server.URL, "--listen", at)
	c.Dir = t.TempDir()
	p := startCommand(t, 160, 45, c)
	p.waitFor(t, "connected", "proxy http://"+at)
	say(t, "http://"+at, `{"stream":true}`)
	p.keys(t, "2")
	p.waitFor(t, "finished", "stop", "chat")
	p.keys(t, "1")
	p.waitFor(t, "not reported: stages, experts, text,")
	server.Close()
	res, err := http.Post("http://"+at+"/v1/models", "application/json", nil)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	p.waitFor(t, "DISCONNECTED since")
	p.keys(t, "S") // of what was measured
	p.waitFor(t, "wrote llmtop-")
	p.keys(t, "q")
	if code := p.exit(t); code != 0 {
		t.Errorf("exit code %d", code)
	}
}
