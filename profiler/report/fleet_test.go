package report

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/store"
)

// replica returns a server with ten requests in its TTFT histogram, connected or not.
func replica(name string, ttft time.Duration, link event.Link) Member {
	now := event.Time(time.Second)
	s := store.New(store.Options{Now: func() event.Time { return now }})
	s.Emit(event.Event{Kind: event.KindEngine, At: now, Layer: -1, Data: &event.EngineInfo{
		Name: "vLLM", Caps: event.CapAggregates, State: event.EngineReady, Remote: event.Remote{Link: link, Reason: "connection reset"},
	}})
	s.Emit(event.Event{Kind: event.KindModel, At: now, Layer: -1, Data: &event.Model{Name: "org/model"}})
	counts := []uint64{0, 0, 0}
	for i, bound := range []time.Duration{100 * time.Millisecond, time.Second} {
		if ttft < bound {
			counts[i] = 10
			break
		}
	}
	s.Emit(event.Event{Kind: event.KindAggregates, At: now + event.Time(time.Second), Layer: -1, Data: &event.Aggregates{
		Interval: int64(time.Second), Running: event.Reading{V: 2, Origin: event.Reported}, Generated: event.DerivedValue(100),
		Histograms: []event.Histogram{{Name: event.HistogramTTFT, Count: 10, Sum: 10 * int64(ttft), Bounds: []int64{1e8, 1e9}, Counts: counts}},
	}})
	now += event.Time(2 * time.Second)
	v := s.Snapshot()
	return Member{Name: name, Snapshot: v, Report: FromSnapshot(Meta{Version: "1", Remote: true}, v)}
}

func TestFleetReport(t *testing.T) {
	members := []Member{
		replica("a", 50*time.Millisecond, event.LinkConnected), replica("b", 50*time.Millisecond, event.LinkConnected),
		replica("c", 50*time.Millisecond, event.LinkConnected), replica("d", 500*time.Millisecond, event.LinkConnected),
		replica("e", 500*time.Millisecond, event.LinkDisconnected),
	}
	members[0].Report.Requests = []Request{{ID: 1, State: "finished"}}
	r := BuildFleet(Meta{Version: "1", Remote: true}, members)
	f := r.Fleet
	if m := r.Model; m == nil || m.Name != "org/model" || m.Experts.OK() {
		t.Errorf("model %+v; whether it has experts is unknown", m)
	}
	if f.Connected != 4 || len(f.Replicas) != 5 || f.Replicas[4].State != "disconnected" || r.Engine.State != "ready" {
		t.Errorf("%d of %d connected, the last one is %s", f.Connected, len(f.Replicas), f.Replicas[4].State)
	}
	if n := r.Totals.GeneratedTokens; n.V != 500 || r.Totals.Finished.OK() || r.Totals.Absent["finished"] != "not reported" || r.Totals.Running.V != 10 {
		t.Errorf("totals: %+v", r.Totals)
	}
	if len(f.Outliers) != 1 || f.Outliers[0].Replica != "d" || f.Outliers[0].Bound != "within" || f.Outliers[0].Name != "ttft_mean_s" || f.Outliers[0].Median.V != 0.05 {
		t.Errorf("outliers: %+v", f.Outliers)
	}
	for _, n := range f.Medians {
		if n.Name == "ttft_p50_s" && (n.Bound != "below" || n.Value.V != 0.1 || n.Origin != "derived") {
			t.Errorf("median TTFT: %+v", n)
		}
	}
	if len(f.Sums) == 0 || f.Sums[0].Name != "running_requests" || f.Sums[0].Value.V != 8 {
		t.Errorf("sums: %+v", f.Sums)
	}
	var lines bytes.Buffer
	if err := r.WriteJSONL(&lines); err != nil || !strings.Contains(lines.String(), `"replica":"a"`) {
		t.Errorf("%v: requests: %s", err, lines.String())
	}
	f.Replicas[0].Report.Requests = []Request{} // the schema requires more of a request
	if err := schema(t).Validate(decoded(t, r)); err != nil {
		t.Error(err)
	}
	again, err := Read(bytes.NewReader(written(t, r)))
	if err != nil {
		t.Fatal(err)
	}
	var first, second bytes.Buffer
	if err := errors.Join(r.WriteText(&first), r.WriteCSV(&first), again.WriteText(&second), again.WriteCSV(&second)); err != nil {
		t.Fatal(err)
	}
	if first.String() != second.String() {
		t.Errorf("after reading:\n%s\nbefore:\n%s", second.String(), first.String())
	}
	for _, want := range []string{"5 engines (vLLM), 4 connected", "e: The engine was disconnected at the end (connection reset)", "TTFT p50", "<100 ms"} {
		if !strings.Contains(first.String(), want) {
			t.Errorf("the text lacks %q:\n%s", want, first.String())
		}
	}
	var page bytes.Buffer
	if err := errors.Join(r.WriteMarkdown(&page), r.WriteHTML(&page)); err != nil || !strings.Contains(page.String(), "Outliers") {
		t.Errorf("%v\n%s", err, page.String())
	}
}

// TestNamedReplica checks that a name that is a prefix of another one still finds its replica.
func TestNamedReplica(t *testing.T) {
	f := &Fleet{}
	for _, name := range []string{"gpu10:8000", "gpu1:80001", "gpu1:8000", "gpu2"} {
		f.Replicas = append(f.Replicas, Replica{Name: name, Report: &Report{Engine: EngineInfo{Name: name}}})
	}
	for asked, want := range map[string]string{"gpu1:8000": "gpu1:8000", "gpu2": "gpu2", "gpu10": "gpu10:8000", "gpu": "", "gpu3": ""} {
		got := ""
		if r := f.Find(asked); r != nil {
			got = r.Engine.Name
		}
		if got != want {
			t.Errorf("%q finds %q, want %q", asked, got, want)
		}
	}
}

// TestEmptyFleet checks the report of an empty fleet.
func TestEmptyFleet(t *testing.T) {
	r := BuildFleet(Meta{Version: "1"}, nil)
	if err := schema(t).Validate(decoded(t, r)); err != nil {
		t.Error(err)
	}
	if r.Totals.GeneratedTokens.OK() || r.Totals.Running.OK() {
		t.Errorf("totals of an empty fleet: %+v", r.Totals)
	}
}

// Small fleets: the text never says that replicas are alike when one is ten times as slow, nor when nothing is known.
func TestSmallFleetsAreDescribed(t *testing.T) {
	fast, slow := 50*time.Millisecond, 500*time.Millisecond
	for name, c := range map[string]struct {
		ttft    []time.Duration
		says    string
		differs int
	}{
		"two alike":         {[]time.Duration{fast, fast}, "No replica is far from the median", 0},
		"one of two":        {[]time.Duration{fast, slow}, "replicas differ: TTFT mean 50.0 ms (a) to 500 ms (b)", 1},
		"one of three":      {[]time.Duration{fast, slow, fast}, "10.0 times the median", 0},
		"two of four":       {[]time.Duration{fast, slow, fast, slow}, "replicas differ: TTFT mean 50.0 ms (a) to 500 ms (b)", 1},
		"nothing in common": {[]time.Duration{fast}, "Nothing to compare", 0},
	} {
		var members []Member
		for i, d := range c.ttft {
			members = append(members, replica(string(rune('a'+i)), d, event.LinkConnected))
		}
		r := BuildFleet(Meta{Version: "1", Remote: true}, members)
		var text bytes.Buffer
		if err := r.WriteText(&text); err != nil || !strings.Contains(text.String(), c.says) || len(r.Fleet.Differ) != c.differs {
			t.Errorf("%s: %v, differences %+v, want %q in\n%s", name, err, r.Fleet.Differ, c.says, text.String())
		}
		if err := schema(t).Validate(decoded(t, r)); err != nil {
			t.Error(err)
		}
	}
}
