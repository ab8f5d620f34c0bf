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
	"github.com/llmtop/llmtop/runtime/discover"
)

// holding says that the process of a server has a file with snapshots open, as SGLang's have, for the length of a test.
func holding(t *testing.T, f *fake, text []byte) (path string) {
	t.Helper()
	folder := t.TempDir()
	path, handle := filepath.Join(folder, "sglang_loads_test_0.shm"), filepath.Join(folder, "7")
	if err := errors.Join(os.WriteFile(path, text, 0o600), os.Symlink(path, handle)); err != nil {
		t.Fatal(err)
	}
	opened = func(at netip.AddrPort, wanted func(string) bool) (string, error) {
		if at.String() != f.Listener.Addr().String() || !wanted(path) {
			return "", errors.New("it is nobody's")
		}
		return handle, nil
	}
	t.Cleanup(func() { opened = discover.Opened })
	return path
}

func sglangPages(t *testing.T, metrics bool) map[string]string {
	pages := map[string]string{
		"/v1/models": models("sglang"), "/v1/loads": sampleOf(t, "sglang_v1_loads.json"), "/server_info": `{"version":"0.5.17","enable_metrics":false}`,
	}
	if metrics {
		pages["/server_info"], pages["/metrics"] = `{"version":"0.5.17","enable_metrics":true}`, "sglang:num_running_reqs 3\n"
	}
	return pages
}

func snapshots(t *testing.T) []byte {
	t.Helper()
	text, err := os.ReadFile("snapshot/testdata/sglang_loads.shm")
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// TestSharedMemory reads where an SGLang of this machine stands out of the file that its process has open.
func TestSharedMemory(t *testing.T) {
	for _, metrics := range []bool{true, false} {
		f := newFake(t, sglangPages(t, metrics))
		text := snapshots(t)
		path := holding(t, f, text)
		w := watchIt(t, Options{Address: f.URL})
		p, n := until(w, event.KindReport, 3, func(p *event.Report) bool {
			why, there := source(p, path)
			loads, _ := source(p, "/v1/loads")
			return there && why == "" && strings.Contains(loads, "shared memory")
		})
		if p.Running.V != 6 || p.Waiting.V != 2 || p.KVUsed.V != 167936 || p.KVTotal.V != 409600 || p.KVUsage.V != 0.41 || p.Running.Origin != event.Reported {
			t.Errorf("with metrics %v: %+v", metrics, p)
		}
		if asked := f.times("/v1/loads"); metrics && asked > 0 || !metrics && asked != 1 {
			t.Errorf("with metrics %v it was asked %d times for its loads", metrics, asked)
		}
		// The scheduler writes something else; then something that is not understood, so that the server is asked.
		text[53]++ // num_running_reqs
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		_, n = until(w, event.KindReport, n, func(p *event.Report) bool { return p.Running.V == 7 })
		text[4] = 9
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		until(w, event.KindReport, n, func(p *event.Report) bool {
			why, _ := source(p, sharedName)
			loads, there := source(p, "/v1/loads")
			return strings.Contains(why, "version 9") && there && loads == "" && p.Running.V == 6
		})
	}
}

// TestSharedMemoryOfNobodyKnown is left alone, and it is said why.
func TestSharedMemoryOfNobodyKnown(t *testing.T) {
	other, f := newFake(t, nil), newFake(t, sglangPages(t, true))
	holding(t, other, snapshots(t))
	w := watchIt(t, Options{Address: f.URL})
	p, _ := until(w, event.KindReport, 0, func(*event.Report) bool { return true })
	if why, _ := source(p, sharedName); !strings.Contains(why, "it is nobody's") || p.Running.V != 6 {
		t.Errorf("%q, %+v", why, p)
	}
	if why, there := source(p, "/v1/loads"); !there || why != "" {
		t.Errorf("loads: %q, %v", why, there)
	}
}
