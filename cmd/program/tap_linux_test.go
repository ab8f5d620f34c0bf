package program_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestTapLive: the packets of a server of this machine are its requests, as root only until the socket is open: what is
// written belongs to the user who called sudo.
func TestTapLive(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("a tap of live packets needs root")
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		for range 5 {
			_, _ = io.WriteString(w, "data: {\"model\":\"tiny\",\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n")
			_ = http.NewResponseController(w).Flush()
			time.Sleep(5 * time.Millisecond)
		}
		_, _ = io.WriteString(w, "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":5}}\n\ndata: [DONE]\n\n")
	}))
	defer server.Close()
	at, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("/tmp", "llmtop") // that of the tests is root's only
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "report.json")
	c := exec.Command(binary(t), "tap", at.Port(), "--headless", "--out", file)
	c.Dir, c.Env = dir, append(os.Environ(), "LLMTOP_DISCOVER=off", fmt.Sprintf("SUDO_UID=%d", nobody), fmt.Sprintf("SUDO_GID=%d", nobody))
	var notes strings.Builder
	c.Stderr = &notes
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	stop := time.AfterFunc(2*time.Second, func() { _ = c.Process.Signal(os.Interrupt) })
	defer stop.Stop()
	asked := make(chan struct{})
	done := make(chan struct{})
	go func() { // until the tap ends: it has begun at some time
		defer close(asked)
		for {
			select {
			case <-done:
				return
			default:
			}
			if answer, err := http.Post(server.URL+"/v1/chat/completions", "application/json", strings.NewReader(`{"stream":true,"messages":[]}`)); err == nil {
				_, _ = io.Copy(io.Discard, answer.Body)
				_ = answer.Body.Close()
			}
		}
	}()
	err = c.Wait()
	close(done)
	<-asked
	raw, missing := os.ReadFile(file)
	if missing != nil {
		t.Fatalf("%v, %v: %s", err, missing, notes.String())
	}
	var report struct {
		Totals struct {
			Finished  float64 `json:"finished"`
			Generated float64 `json:"generated_tokens"`
		}
		Requests []struct {
			State     string
			Generated int      `json:"generated_tokens"`
			TTFT      *float64 `json:"ttft_s"`
		}
	}
	if err := json.Unmarshal(raw, &report); err != nil {
		t.Fatal(err)
	}
	whole := 0
	for _, r := range report.Requests {
		if r.State == "finished" && r.Generated == 5 && r.TTFT != nil {
			whole++
		}
	}
	if whole == 0 || whole < int(report.Totals.Finished)-1 {
		t.Errorf("%d whole requests of %v finished: %s", whole, report.Totals.Finished, notes.String())
	}
	info, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	if owner, ok := info.Sys().(*syscall.Stat_t); !ok || owner.Uid != nobody {
		t.Errorf("the report belongs to user %d", owner.Uid)
	}
}
