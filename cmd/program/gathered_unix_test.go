//go:build unix

package program_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// TestFleetReportWithoutScreen checks that each of 50 replicas of a Prometheus has an entry, one of them down, after an
// interrupt, and that the report of the recording is the same.
func TestFleetReportWithoutScreen(t *testing.T) {
	t.Parallel()
	f := newFakePrometheus(t, 50)
	f.every = 0.1            // the session is short, and counts what was scraped in it
	var queries atomic.Int64 // queries for targets
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f.Config.Handler.ServeHTTP(w, r)
		if strings.HasPrefix(r.URL.Query().Get("query"), `up{`) {
			queries.Add(1)
		}
	}))
	t.Cleanup(s.Close)
	path := binary(t)
	dir := t.TempDir()
	file, live, again := filepath.Join(dir, "session.llmtop"), filepath.Join(dir, "live.json"), filepath.Join(dir, "again.json")
	c := exec.Command(path, "attach", "--headless", "--interval", "100ms", "--record", file, "--json", live, "prometheus+"+s.URL)
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	await := func(more int64) {
		for was, end := queries.Load(), time.Now().Add(time.Minute); queries.Load() < was+more; time.Sleep(10 * time.Millisecond) {
			if time.Now().After(end) {
				_ = c.Process.Kill()
				t.Fatal("Prometheus was not queried any more")
			}
		}
	}
	await(3)
	f.later(0.3, 13)
	await(3)
	if err := c.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := c.Wait(); err != nil {
		t.Fatal(err)
	}
	r := fleetOf(t, live)
	if len(r.Fleet.Replicas) != 50 || r.Fleet.Connected != 49 || r.Totals.Generated == 0 {
		t.Errorf("%d replicas, %d connected, %v tokens", len(r.Fleet.Replicas), r.Fleet.Connected, r.Totals.Generated)
	}
	for i, one := range r.Fleet.Replicas {
		if down := one.Replica == "vllm-13"; down != (one.State == "disconnected") {
			t.Errorf("%s is %s", one.Replica, one.State)
		}
		if len(one.Report.Reported.Times) != 1 || one.Report.Reported.Times[0].Origin != "reported" || one.Report.Totals.Finished != nil {
			t.Errorf("replica %d is %+v", i, one)
		}
	}
	if out, err := exec.Command(path, "replay", file, "--headless", "--json", again).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if diff := cmp.Diff(r, fleetOf(t, again), cmpopts.EquateApprox(0.01, 0.01)); diff != "" {
		t.Errorf("live and replayed differ:\n%s", diff)
	}
}

// fleetReport is the part of a report of several engines that the test reads.
type fleetReport struct {
	Totals struct {
		Generated float64 `json:"generated_tokens"`
	}
	Fleet struct {
		Connected int
		Replicas  []struct {
			Replica, State string
			Report         struct {
				Totals   struct{ Finished *float64 }
				Reported struct {
					Times []struct {
						Name, Origin string
						Count        uint64
						Mean         float64
						Counts       []uint64
					}
				}
			}
		}
	}
}

func fleetOf(t *testing.T, name string) (r fleetReport) {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &r); err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	return r
}
