package engine

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/llmtop/llmtop/profiler/event"
)

// TestLlamaSwap: requests of its log count once, those of before the session do not, and those that failed have no tokens.
func TestLlamaSwap(t *testing.T) {
	var rows atomic.Int64
	rows.Store(40)
	f := newFake(t, map[string]string{"/v1/models": modelList("llama-swap"), "/running": `{"running":[{"model":"m","state":"ready"}]}`})
	f.setHandler(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != activityPath {
			f.servePage(w, r)
			return
		}
		q, last := r.URL.Query(), rows.Load()
		from, _ := strconv.ParseInt(q.Get("min_id"), 10, 64)
		if q.Get("limit") == "1" {
			from = last
		}
		var list []string
		for id := max(from, 1); id <= last; id++ {
			status := 200
			if id%4 == 0 {
				status = 502
			}
			list = append(list, fmt.Sprintf(`{"id":%d,"resp_status_code":%d,"duration_ms":1500,"tokens":{"input_tokens":9,"output_tokens":70,"cache_tokens":-1}}`, id, status))
		}
		_, _ = io.WriteString(w, `{"data":[`+strings.Join(list, ",")+`],"page":1}`)
	})
	w := startPoller(t, Options{Address: f.URL})
	_, n := waitFor(w, event.KindAggregates, 1, func(p *event.Aggregates) bool { return p.Finished.OK() })
	rows.Store(44)
	p, _ := waitFor(w, event.KindAggregates, n, func(p *event.Aggregates) bool { return p.Finished.V > 0 })
	if p.Finished.V != 3 || p.Failed.V != 1 || p.Generated.V != 210 || len(p.Histograms) != 1 || p.Histograms[0].Count != 3 || p.Histograms[0].Sum != 4500e6 {
		t.Errorf("%s", describe(p))
	}
	waitFor(w, event.KindModel, 0, func(m *event.Model) bool { return m.Name == "m" })
	f.setHandler(nil) // an older version
	old, _ := waitFor(w, event.KindAggregates, n, func(p *event.Aggregates) bool {
		why, _ := endpoint(p, activityPath)
		return why != ""
	})
	if why, _ := endpoint(old, activityPath); !strings.Contains(why, "/api/events") || old.Finished.OK() {
		t.Errorf("%s: %v", why, old.Finished)
	}
	sum := 0.0
	for _, e := range w.log.OfKind(event.KindAggregates) {
		sum += e.Data.(*event.Aggregates).Finished.V
	}
	if sum != 3 {
		t.Errorf("%v finished requests", sum)
	}
}

// TestLlamaSwapRestart: without a database, the numbers of requests begin again.
func TestLlamaSwapRestart(t *testing.T) {
	l := new(llamaSwap)
	count := func(ids ...int64) float64 {
		rows, page, report := []string(nil), activity{}, &event.Aggregates{Interval: 1}
		for _, id := range ids {
			rows = append(rows, fmt.Sprintf(`{"id":%d}`, id))
		}
		if err := json.Unmarshal([]byte(`{"data":[`+strings.Join(rows, ",")+`]}`), &page); err != nil {
			t.Fatal(err)
		}
		l.count(&page, report)
		return report.Finished.V
	}
	got := []float64{count(90), count(91, 92), count()}
	l.recheck(nil)
	got = append(got, count(92), count(93)) // the connection broke
	l.recheck(nil)
	got = append(got, count(2), count(3, 4))
	if want := []float64{0, 2, 0, 0, 1, 0, 2}; fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%v finished, want %v", got, want)
	}
}
