//go:build unix

package scrape

import (
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime/source/discover"
)

// withOpenFile makes the server's process have a snapshot file open during a test, as SGLang has.
func withOpenFile(t *testing.T, f *fake, text []byte) (path string) {
	t.Helper()
	folder := t.TempDir()
	path, handle := filepath.Join(folder, "sglang_loads_test_0.shm"), filepath.Join(folder, "7")
	if err := errors.Join(os.WriteFile(path, text, 0o600), os.Symlink(path, handle)); err != nil {
		t.Fatal(err)
	}
	findOpenFile = func(at netip.AddrPort, wanted func(string) bool) (string, error) {
		if at.String() != f.Listener.Addr().String() || !wanted(path) {
			return "", errors.New("no such file is open")
		}
		return handle, nil
	}
	t.Cleanup(func() { findOpenFile = discover.Opened })
	return path
}

func sglangPages(t *testing.T, metrics bool) map[string]string {
	pages := map[string]string{
		"/v1/models": modelList("sglang"), "/v1/loads": sampleOf(t, "sglang_v1_loads.json"), "/server_info": `{"version":"0.5.17","enable_metrics":false}`,
	}
	if metrics {
		pages["/server_info"], pages["/metrics"] = `{"version":"0.5.17","enable_metrics":true}`, "sglang:num_running_reqs 3\n"
	}
	return pages
}

func snapshots(t *testing.T) []byte {
	t.Helper()
	text, err := os.ReadFile("shm/testdata/sglang_loads.shm")
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// TestSharedMemory reads the load of an SGLang server on this machine from the file that its process has open.
func TestSharedMemory(t *testing.T) {
	for _, metrics := range []bool{true, false} {
		f := newFake(t, sglangPages(t, metrics))
		text := snapshots(t)
		path := withOpenFile(t, f, text)
		w := startPoller(t, Options{Address: f.URL})
		p, n := waitFor(w, event.KindAggregates, 3, func(p *event.Aggregates) bool {
			why, there := endpoint(p, path)
			loads, _ := endpoint(p, "/v1/loads")
			return there && why == "" && strings.Contains(loads, "shared memory")
		})
		if p.Running.V != 6 || p.Waiting.V != 2 || p.KVUsed.V != 167936 || p.KVTotal.V != 409600 || p.KVUsage.V != 0.41 || p.Running.Origin != event.Reported {
			t.Errorf("metrics %v: %+v", metrics, p)
		}
		if requests := f.requestCount("/v1/loads"); metrics && requests > 0 || !metrics && requests != 1 {
			t.Errorf("metrics %v: %d requests for /v1/loads", metrics, requests)
		}
		// The scheduler writes a new value; then an unsupported version, so that /v1/loads is polled.
		text[53]++ // num_running_reqs
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		_, n = waitFor(w, event.KindAggregates, n, func(p *event.Aggregates) bool { return p.Running.V == 7 })
		text[4] = 9
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		waitFor(w, event.KindAggregates, n, func(p *event.Aggregates) bool {
			why, _ := endpoint(p, sharedPattern)
			loads, there := endpoint(p, "/v1/loads")
			return strings.Contains(why, "version 9") && there && loads == "" && p.Running.V == 6
		})
	}
}

// TestSharedMemoryOfUnknownProcess: a file of another process is not read, and the report has the reason.
func TestSharedMemoryOfUnknownProcess(t *testing.T) {
	other, f := newFake(t, nil), newFake(t, sglangPages(t, true))
	withOpenFile(t, other, snapshots(t))
	w := startPoller(t, Options{Address: f.URL})
	p, _ := waitFor(w, event.KindAggregates, 0, func(*event.Aggregates) bool { return true })
	if why, _ := endpoint(p, sharedPattern); !strings.Contains(why, "no such file is open") || p.Running.V != 6 {
		t.Errorf("%q, %+v", why, p)
	}
	if why, there := endpoint(p, "/v1/loads"); !there || why != "" {
		t.Errorf("loads: %q, %v", why, there)
	}
}
