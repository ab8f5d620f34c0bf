package report

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/store"
)

// TestReportOfAServer: what a server has told of itself is in its report, each number with its origin, histograms with their bounds.
func TestReportOfAServer(t *testing.T) {
	now := event.Time(time.Second)
	s := store.New(store.Options{Now: func() event.Time { return now }})
	told := func(v float64) event.Reading { return event.Reading{V: v, Origin: event.Reported} }
	const ms = int64(time.Millisecond)
	s.Emit(event.Event{Kind: event.KindEngine, At: now, Layer: -1, Data: &event.Engine{Name: "vLLM", Caps: event.CapReports, State: event.EngineReady}})
	for range 2 {
		now += event.Time(time.Second)
		s.Emit(event.Event{Kind: event.KindReport, At: now, Layer: -1, Data: &event.Report{
			Interval: int64(time.Second), Running: told(7), Decode: event.From(900), KVUsage: told(0.43),
			Times: []event.Times{{Name: event.TimesTTFT, Count: 5, Sum: 1050 * ms, Bounds: []int64{100 * ms, 250 * ms}, Counts: []uint64{4, 1, 0}}},
			More:  []event.Number{{Name: "preemptions", Reading: event.From(2)}},
		}})
	}
	r := Live(Meta{Version: "1", Elsewhere: true}, s.Snapshot())
	if err := schema(t).Validate(decoded(t, r)); err != nil {
		t.Error(err)
	}
	got := map[string]ReportedNumber{}
	for _, n := range r.Reported.Numbers {
		got[n.Name] = n
	}
	if n := got["running"]; n.Value.V != 7 || n.Origin != "reported" {
		t.Errorf("running is %+v", n)
	}
	if n := got["decode_tokens_per_s"]; n.Value.V != 900 || n.Origin != "derived" {
		t.Errorf("decode is %+v", n)
	}
	if _, told := got["waiting"]; told || !strings.Contains(strings.Join(r.Reported.Missing, " "), "waiting") {
		t.Errorf("waiting was not told, and is missing from %v", r.Reported.Missing)
	}
	h := r.Reported.Times[0]
	if h.Count != 10 || h.Mean.V != 0.21 || len(h.Bounds) != 2 || h.Bounds[1] != 0.25 || len(h.Counts) != 3 || h.Counts[0] != 8 {
		t.Errorf("the histogram is %+v", h)
	}
	for name, write := range map[string]func(*bytes.Buffer) error{
		"text": func(b *bytes.Buffer) error { return r.WriteText(b) }, "markdown": func(b *bytes.Buffer) error { return r.WriteMarkdown(b) },
		"html": func(b *bytes.Buffer) error { return r.WriteHTML(b) },
	} {
		var out bytes.Buffer
		if err := write(&out); err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"what the server tells of itself", "preemptions", "reported", "derived", "100 ms", "210 ms"} {
			if !strings.Contains(strings.ToLower(out.String()), want) {
				t.Errorf("%s lacks %q:\n%s", name, want, out.String())
			}
		}
	}
}
