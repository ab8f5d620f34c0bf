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

// replica is a server that has told of ten requests, and is connected or not.
func replica(name string, ttft time.Duration, link event.Link) Member {
	now := event.Time(time.Second)
	s := store.New(store.Options{Now: func() event.Time { return now }})
	s.Emit(event.Event{Kind: event.KindEngine, At: now, Layer: -1, Data: &event.Engine{
		Name: "vLLM", Caps: event.CapReports, State: event.EngineReady, Remote: event.Remote{Link: link, Why: "it has gone"},
	}})
	s.Emit(event.Event{Kind: event.KindModel, At: now, Layer: -1, Data: &event.Model{Name: "org/model"}})
	counts := []uint64{0, 0, 0}
	for i, bound := range []time.Duration{100 * time.Millisecond, time.Second} {
		if ttft < bound {
			counts[i] = 10
			break
		}
	}
	s.Emit(event.Event{Kind: event.KindReport, At: now + event.Time(time.Second), Layer: -1, Data: &event.Report{
		Interval: int64(time.Second), Running: event.Reading{V: 2, Origin: event.Reported}, Generated: event.From(100),
		Times: []event.Times{{Name: event.TimesTTFT, Count: 10, Sum: 10 * int64(ttft), Bounds: []int64{1e8, 1e9}, Counts: counts}},
	}})
	now += event.Time(2 * time.Second)
	v := s.Snapshot()
	return Member{Name: name, Snapshot: v, Report: Live(Meta{Version: "1", Elsewhere: true}, v)}
}

func TestReportOfSeveral(t *testing.T) {
	members := []Member{
		replica("a", 50*time.Millisecond, event.LinkConnected), replica("b", 50*time.Millisecond, event.LinkConnected),
		replica("c", 50*time.Millisecond, event.LinkConnected), replica("d", 500*time.Millisecond, event.LinkConnected),
		replica("e", 500*time.Millisecond, event.LinkDisconnected),
	}
	members[0].Report.Requests = []Request{{ID: 1, State: "finished"}}
	r := Several(Meta{Version: "1", Elsewhere: true}, members)
	f := r.Fleet
	if m := r.Model; m == nil || m.Name != "org/model" || m.Experts.OK() {
		t.Errorf("the model is %+v; nobody has told whether it has experts", m)
	}
	if f.Connected != 4 || len(f.Replicas) != 5 || f.Replicas[4].State != "disconnected" || r.Engine.State != "ready" {
		t.Errorf("%d of %d are connected, the last one is %s", f.Connected, len(f.Replicas), f.Replicas[4].State)
	}
	if n := r.Totals.GeneratedTokens; n.V != 500 || r.Totals.Finished.OK() || r.Totals.Absent["finished"] != "not reported" || r.Totals.Running.V != 10 {
		t.Errorf("the totals are %+v", r.Totals)
	}
	if len(f.OutOfLine) != 1 || f.OutOfLine[0].Replica != "d" || f.OutOfLine[0].Bound != "within" || f.OutOfLine[0].Median.V != 0.1 {
		t.Errorf("out of line are %+v", f.OutOfLine)
	}
	for _, n := range f.Medians {
		if n.Name == "ttft_p50_s" && (n.Bound != "below" || n.Value.V != 0.1 || n.Origin != "derived") {
			t.Errorf("the median TTFT is %+v", n)
		}
	}
	if len(f.Sums) == 0 || f.Sums[0].Name != "running_requests" || f.Sums[0].Value.V != 8 {
		t.Errorf("the sums are %+v", f.Sums)
	}
	var lines bytes.Buffer
	if err := r.WriteJSONL(&lines); err != nil || !strings.Contains(lines.String(), `"replica":"a"`) {
		t.Errorf("%v: the requests are %s", err, lines.String())
	}
	f.Replicas[0].Report.Requests = []Request{} // the schema asks more of a request
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
		t.Errorf("what was read says\n%s\nwhat was written\n%s", second.String(), first.String())
	}
	for _, want := range []string{"5 engines (vLLM), 4 connected", "e: It was disconnected at the end (it has gone)", "TTFT p50", "<100 ms"} {
		if !strings.Contains(first.String(), want) {
			t.Errorf("the text lacks %q:\n%s", want, first.String())
		}
	}
	var page bytes.Buffer
	if err := errors.Join(r.WriteMarkdown(&page), r.WriteHTML(&page)); err != nil || !strings.Contains(page.String(), "Replicas out of line") {
		t.Errorf("%v\n%s", err, page.String())
	}
}

// TestNamedReplica: a name that is another one's beginning is still the name of one.
func TestNamedReplica(t *testing.T) {
	f := &Fleet{}
	for _, name := range []string{"gpu10:8000", "gpu1:80001", "gpu1:8000", "gpu2"} {
		f.Replicas = append(f.Replicas, Replica{Name: name, Report: &Report{Engine: Engine{Name: name}}})
	}
	for asked, want := range map[string]string{"gpu1:8000": "gpu1:8000", "gpu2": "gpu2", "gpu10": "gpu10:8000", "gpu": "", "gpu3": ""} {
		got := ""
		if r := f.Named(asked); r != nil {
			got = r.Engine.Name
		}
		if got != want {
			t.Errorf("%q names %q, want %q", asked, got, want)
		}
	}
}

// TestReportOfNone: there may be nobody to report.
func TestReportOfNone(t *testing.T) {
	r := Several(Meta{Version: "1"}, nil)
	if err := schema(t).Validate(decoded(t, r)); err != nil {
		t.Error(err)
	}
	if r.Totals.GeneratedTokens.OK() || r.Totals.Running.OK() {
		t.Errorf("the totals of nobody are %+v", r.Totals)
	}
}
