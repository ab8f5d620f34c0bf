package compare_test

import (
	"encoding/csv"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/llmtop/llmtop/profiler/compare"
	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/event/eventtest"
	"github.com/llmtop/llmtop/profiler/report"
)

// busy returns 40 runs of 12 requests each of one engine, measured one after the other by llmtop bench on a machine
// with two cores under the load of about ten other programs: medians of runs range over a factor of three.
func busy(t *testing.T) (runs []*report.Report) {
	t.Helper()
	file, err := os.Open("testdata/busy.csv")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	rows, err := csv.NewReader(file).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range rows[1:] {
		var v [4]float64
		for i := range row {
			if v[i], err = strconv.ParseFloat(row[i], 64); err != nil {
				t.Fatal(err)
			}
		}
		if int(v[0]) > len(runs) {
			runs = append(runs, &report.Report{SchemaVersion: report.SchemaVersion, Started: time.Unix(int64(v[0]), 0)})
		}
		r := runs[len(runs)-1]
		r.Requests = append(r.Requests, report.Request{
			ID: event.RequestID(len(r.Requests) + 1), Label: "128 tokens", State: "finished", Prompt: report.Measured(128), Generated: 96,
			TTFT: number(v[1]), TPOT: number(v[2]), E2EL: number(v[3]), DecodeRate: number(1 / v[2]),
		})
	}
	return runs
}

// TestRealNoiseIsNoRegression compares ten runs with ten interleaved ones, drawn from measurements of one engine on a
// busy machine: at most 5 of 200 comparisons may find a regression.
func TestRealNoiseIsNoRegression(t *testing.T) {
	eventtest.SkipUnderRace(t)
	all := busy(t)
	rng := rand.New(rand.NewPCG(5, 6))
	outcomes := map[compare.Outcome]int{}
	for range 200 {
		var a, b []*report.Report
		first := rng.IntN(len(all) - 19)
		for i := first; i < first+20; i += 2 {
			x, y := all[i], all[i+1]
			if rng.IntN(2) == 0 {
				x, y = y, x
			}
			a, b = append(a, x), append(b, y)
		}
		outcomes[compare.Sides(side(t, "a", a...), side(t, "b", b...), options).Outcome]++
	}
	t.Logf("of 200 comparisons of the same engine on a busy machine: %v", outcomes)
	if n := outcomes[compare.Worse]; n > 5 {
		t.Errorf("%d of 200 comparisons of the same engine found a regression", n)
	}
}

// TestRealSlowdownIsFound checks that a slowdown by a factor of two is found in spite of such noise.
func TestRealSlowdownIsFound(t *testing.T) {
	all := busy(t)
	var a, b []*report.Report
	for i := 0; i < 20; i += 2 {
		slow := *all[i+1]
		slow.Requests = append([]report.Request{}, slow.Requests...)
		for j := range slow.Requests {
			q := &slow.Requests[j]
			q.E2EL.V += q.TPOT.V * float64(q.Generated-1)
			q.TPOT.V *= 2
		}
		a, b = append(a, all[i]), append(b, &slow)
	}
	if r := compare.Sides(side(t, "a", a...), side(t, "b", b...), options); r.Outcome != compare.Worse {
		t.Errorf("%v: %+v", r.Outcome, r.Rows)
	}
}
