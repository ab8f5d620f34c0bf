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

// TestReportOfAServer checks that a report has the aggregate metrics of a server: each number with its origin,
// histograms with their bounds.
func TestReportOfAServer(t *testing.T) {
	now := event.Time(time.Second)
	s := store.New(store.Options{Now: func() event.Time { return now }})
	reported := func(v float64) event.Reading { return event.Reading{V: v, Origin: event.Reported} }
	const ms = int64(time.Millisecond)
	s.Emit(event.Event{Kind: event.KindEngine, At: now, Layer: -1, Data: &event.EngineInfo{Name: "vLLM", Caps: event.CapAggregates, State: event.EngineReady}})
	for range 2 {
		now += event.Time(time.Second)
		s.Emit(event.Event{Kind: event.KindAggregates, At: now, Layer: -1, Data: &event.Aggregates{
			Interval: int64(time.Second), Running: reported(7), Decode: event.DerivedValue(900), KVUsage: reported(0.43), Generated: event.DerivedValue(900),
			Histograms: []event.Histogram{
				{Name: event.HistogramTTFT, Count: 5, Sum: 1050 * ms, Bounds: []int64{100 * ms, 250 * ms}, Counts: []uint64{4, 1, 0}},
				{Name: event.HistogramQueue, Count: 5, Sum: 100 * ms},
			},
			Counts:   []event.NamedReading{{Name: "preemptions", Reading: event.DerivedValue(2)}},
			Ratios:   []event.Ratio{{Name: event.RatioCacheHits, Part: reported(float64(now) / 1e9), Whole: reported(10)}},
			Adapters: []string{"sql"},
			Ranks:    []event.Rank{{Name: "0", Running: reported(3)}, {Name: "1", Running: reported(4)}},
			ByModel:  []event.Rank{{Name: "small", Running: reported(2), Decode: event.DerivedValue(300)}, {Name: "large", Running: reported(5)}},
			Earlier: &event.Earlier{
				Finished: reported(102), Counts: []event.NamedReading{{Name: "preemptions", Reading: event.DerivedValue(7)}},
				Histograms: []event.Histogram{{Name: event.HistogramTTFT, Count: 5, Sum: 1050 * ms, Bounds: []int64{100 * ms, 250 * ms}, Counts: []uint64{4, 1, 0}}},
			},
		}})
	}
	r := FromSnapshot(Meta{Version: "1", Remote: true}, s.Snapshot())
	if err := schema(t).Validate(decoded(t, r)); err != nil {
		t.Error(err)
	}
	got := map[string]store.ServerNumber{}
	for _, n := range r.Reported.Numbers {
		got[n.Name] = n
	}
	if n := got["running"]; n.Value.V != 7 || n.Origin != event.Reported {
		t.Errorf("running is %+v", n)
	}
	if n := got["preemptions"]; n.Value.V != 4 || n.Last.V != 2 || n.Max.OK() {
		t.Errorf("preemptions are %+v", n)
	}
	if n := got["cache_hits_share"]; n.Value.V != 0.25 || n.Last.V != 0.3 {
		t.Errorf("cache hits are %+v", n)
	}
	if n := got["decode_tokens_per_s"]; n.Value.V != 900 || n.Origin != event.Derived {
		t.Errorf("decode is %+v", n)
	}
	if _, ok := got["waiting"]; ok || !strings.Contains(strings.Join(r.Reported.Missing, " "), "waiting") {
		t.Errorf("waiting was not reported, but is not in %v", r.Reported.Missing)
	}
	if n := r.Totals.GeneratedTokens; n.V != 1800 || r.Totals.Origin["generated_tokens"] != "derived" {
		t.Errorf("generated tokens: %+v, origin %q", n, r.Totals.Origin["generated_tokens"])
	}
	for name, n := range map[string]event.Reading{"finished": r.Totals.Finished, "prompt_tokens": r.Totals.PromptTokens, "stalls": r.Totals.Stalls, "queued": r.Totals.Queued} {
		if n.OK() || r.Totals.Absent[name] != "not reported" {
			t.Errorf("%s was not reported, but is %+v (%s)", name, n, r.Totals.Absent[name])
		}
	}
	if r.Throughput.Of("decode_tokens_per_s").Origin != event.Derived || r.KV.Origin["usage"] != "reported" {
		t.Errorf("origins of rates %v, of the KV cache %v", r.Throughput, r.KV.Origin)
	}
	if p := r.Reported.Parts; len(p) != 2 || p[0].Name != "queue" || p[0].Time.V != 0.02 || p[1].Name != "other" {
		t.Errorf("TTFT components: %+v", p)
	}
	if e := r.Reported.Earlier; e == nil || e.Totals.Of("finished").V != 102 || e.Totals.Of("failed").OK() || len(e.Counts) != 1 || e.Counts[0].Name != "preemptions" || e.Counts[0].N.V != 7 || e.Latencies[0].Mean.V != 0.21 {
		t.Errorf("earlier: %+v", e)
	}
	h := r.Latency(store.TTFT)
	if h.Count != 10 || h.Mean.V != 0.21 || len(h.Edges) != 2 || h.Edges[1] != 0.25 || len(h.Counts) != 3 || h.Counts[0] != 8 {
		t.Errorf("histogram: %+v", h)
	}
	if h.Origin != "reported" || h.P50.OK() || h.AtMost["p50"] != 0.1 || !h.P99.OK() || len(h.AtMost) != 1 || h.Above != nil {
		t.Errorf("percentiles: %+v", h)
	}
	if q := r.Latency(store.STIL); q.P50.OK() || q.AtMost != nil || q.Mean.V != 0.02 {
		t.Errorf("without buckets there are no percentiles: %+v", q)
	}
	again, err := Read(bytes.NewReader(written(t, r)))
	if err != nil {
		t.Fatal(err)
	}
	for name, write := range map[string]func(*Report, *bytes.Buffer) error{
		"text": func(r *Report, b *bytes.Buffer) error { return r.WriteText(b) }, "csv": func(r *Report, b *bytes.Buffer) error { return r.WriteCSV(b) },
	} {
		var first, second bytes.Buffer
		if err := errors.Join(write(r, &first), write(again, &second)); err != nil {
			t.Fatal(err)
		}
		if first.String() != second.String() {
			t.Errorf("%s of the report after reading it:\n%s\nbefore:\n%s", name, second.String(), first.String())
		}
	}
	for name, write := range map[string]func(*bytes.Buffer) error{
		"text": func(b *bytes.Buffer) error { return r.WriteText(b) }, "markdown": func(b *bytes.Buffer) error { return r.WriteMarkdown(b) },
		"html": func(b *bytes.Buffer) error { return r.WriteHTML(b) },
	} {
		var out bytes.Buffer
		if err := write(&out); err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"aggregate metrics of the server", "preemptions", "reported", "derived", "100 ms", "210 ms", "1800 generated", "not reported: finished, cancelled, failed", "where ttft goes", "before llmtop watched", "lora adapters: sql", "data-parallel ranks"} {
			if !strings.Contains(strings.ToLower(out.String()), want) {
				t.Errorf("%s lacks %q:\n%s", name, want, out.String())
			}
		}
	}
}

// TestServerThatNeverAnswered checks that no number of a server that never answered is 0.
func TestServerThatNeverAnswered(t *testing.T) {
	now := event.Time(time.Second)
	s := store.New(store.Options{Now: func() event.Time { return now }})
	s.Emit(event.Event{Kind: event.KindEngine, At: now, Layer: -1, Data: &event.EngineInfo{
		Caps: event.CapAggregates, Remote: event.Remote{Link: event.LinkDisconnected, Reason: "nothing listens there", Since: now},
	}})
	r := FromSnapshot(Meta{Version: "1", Remote: true}, s.Snapshot())
	if err := schema(t).Validate(decoded(t, r)); err != nil {
		t.Error(err)
	}
	for name, n := range map[string]event.Reading{"finished": r.Totals.Finished, "generated_tokens": r.Totals.GeneratedTokens, "running": r.Totals.Running} {
		if n.OK() {
			t.Errorf("%s is %v", name, n.V)
		}
	}
	var out bytes.Buffer
	if err := r.WriteText(&out); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), "The engine was disconnected at the end (nothing listens there).") || strings.Contains(out.String(), "finished 0") {
		t.Errorf("report:\n%s", out.String())
	}
}

// TestReportOfARequestInASlot checks that unknown numbers of a polled request are null with a reason.
func TestReportOfARequestInASlot(t *testing.T) {
	now := event.Time(time.Second)
	s := store.New(store.Options{Now: func() event.Time { return now }})
	s.Emit(event.Event{Kind: event.KindEngine, At: now, Layer: -1, Data: &event.EngineInfo{Name: "llama.cpp", Caps: event.CapAggregates, State: event.EngineReady}})
	for i, slot := range []event.Slot{{Request: 1, Prompt: 8, Processed: 8, Generated: 10}, {Request: 1, Prompt: 8, Processed: 8, Generated: 30}, {}} {
		s.Emit(event.Event{Kind: event.KindAggregates, At: now + event.Time(i)*event.Time(time.Second), Layer: -1, Data: &event.Aggregates{
			Interval: int64(time.Second), Slots: []event.Slot{slot},
		}})
	}
	now += event.Time(3 * time.Second)
	r := FromSnapshot(Meta{Version: "1", Remote: true}, s.Snapshot())
	if err := schema(t).Validate(decoded(t, r)); err != nil {
		t.Error(err)
	}
	if q := r.Requests[0]; !q.Polled || q.Padding.OK() || q.TTFT.OK() || q.Generated != 30 || q.TPOT.V != 0.05 {
		t.Errorf("request: %+v", q)
	}
	var text, table strings.Builder
	if err := r.WriteText(&text); err != nil || !strings.Contains(text.String(), "finished 1+") || !strings.Contains(text.String(), "TPOT of all requests: not reported, polls miss") {
		t.Errorf("%v in\n%s", err, text.String())
	}
	if err := writeReportedCSV(r, &table); err != nil || !strings.Contains(table.String(), ",finished,1,above,derived\n") {
		t.Errorf("CSV: %v in\n%s", err, table.String())
	}
	if r.Latency(store.TPOT) != nil || r.Undistributed["tpot_s"] == "" || r.Totals.FinishedSeen == nil || r.Totals.FinishedSeen.V != 1 {
		t.Errorf("percentiles %+v, absent %v, finished %+v", r.Latency(store.TPOT), r.Undistributed, r.Totals.FinishedSeen)
	}
	if r.Totals.Finished.OK() || r.Totals.Absent["finished"] != "not reported" || r.Totals.PaddingTokens.OK() { // other requests may have ended between polls
		t.Errorf("totals: %+v", r.Totals)
	}
}

// TestLowerBound: generated tokens that were seen in slots are a lower bound in each format, also in the sum of replicas.
func TestLowerBound(t *testing.T) {
	now := event.Time(time.Second)
	s := store.New(store.Options{Now: func() event.Time { return now }})
	s.Emit(event.Event{Kind: event.KindEngine, At: now, Layer: -1, Data: &event.EngineInfo{Name: "Ollama", Caps: event.CapAggregates, State: event.EngineReady}})
	s.Emit(event.Event{Kind: event.KindAggregates, At: now, Layer: -1, Data: &event.Aggregates{
		Interval: int64(time.Second), Generated: event.DerivedValue(609), AtLeast: true, Decode: event.DerivedValue(80),
	}})
	r := FromSnapshot(Meta{Version: "1", Remote: true}, s.Snapshot())
	if err := schema(t).Validate(decoded(t, r)); err != nil {
		t.Error(err)
	}
	if got := r.Totals.orMore("ttps", event.DerivedValue(2.6), "2.60 tokens/s over the run"); got != "2.60+ tokens/s over the run" {
		t.Errorf("TTPS: %q", got)
	}
	_, tokens := r.Totals.describe()
	if !r.Totals.AtLeast || !strings.HasPrefix(tokens, "609+ generated (not reported: ") {
		t.Errorf("totals %+v: %q", r.Totals, tokens)
	}
	var table strings.Builder
	if err := writeReportedCSV(r, &table); err != nil || !strings.Contains(table.String(), ",generated_tokens,609,above,derived\n") || !strings.Contains(table.String(), ",decode_tokens_per_s,80,above,derived\n") {
		t.Errorf("CSV: %v in\n%s", err, table.String())
	}
	sum := Totals{GeneratedTokens: event.DerivedValue(1)}
	if sum.add(&r.Totals); !sum.AtLeast || sum.GeneratedTokens.V != 610 {
		t.Errorf("sum: %+v", sum)
	}
}

// TestUndivided: a TTFT without a component is not broken down into "other".
func TestUndivided(t *testing.T) {
	st := store.New(store.Options{Now: func() event.Time { return event.Time(time.Second) }})
	st.Emit(event.Event{Kind: event.KindEngine, Layer: -1, Data: &event.EngineInfo{Name: "TensorRT-LLM", Caps: event.CapAggregates, State: event.EngineReady}})
	st.Emit(event.Event{Kind: event.KindAggregates, Layer: -1, Data: &event.Aggregates{
		Interval:   int64(time.Second),
		Histograms: []event.Histogram{{Name: event.HistogramTTFT, Count: 2, Sum: int64(time.Second), Bounds: []int64{int64(time.Second)}, Counts: []uint64{2, 0}}},
	}})
	r := FromSnapshot(Meta{Version: "1", Remote: true}, st.Snapshot())
	var text strings.Builder
	if err := r.WriteText(&text); err != nil || strings.Contains(text.String(), "other") || len(r.Reported.Parts) != 0 {
		t.Errorf("%v, parts %v in\n%s", err, r.Reported.Parts, text.String())
	}
}

// TestReportedModels: a model in memory is reported with the values that the engine gives.
func TestReportedModels(t *testing.T) {
	m := reportedModel(&event.LoadedModel{Name: "m", Bytes: 400, GPU: 100, Context: 1024, Until: 5e9}, 2e9)
	if m.Bytes.V != 400 || m.GPU.V != 0.25 || m.Context.V != 1024 || m.Until.V != 3 {
		t.Errorf("known: %+v", m)
	}
	if m = reportedModel(&event.LoadedModel{Name: "m", Stays: true}, 2e9); !m.Stays || m.Until.OK() {
		t.Errorf("stays: %+v", m)
	}
	m = reportedModel(&event.LoadedModel{Name: "m", Until: 1e9}, 2e9)
	if m.Bytes.OK() || m.GPU.OK() || m.Context.OK() || m.Until.OK() {
		t.Errorf("unknown: %+v", m)
	}
}

// TestGeneratedText: only what polls or packets may have missed is marked as a lower bound.
func TestGeneratedText(t *testing.T) {
	for want, f := range map[string][]store.Request{
		"7+": {{Generated: 7, Polled: true, State: event.StateFinished}, {Generated: 7, AtLeast: true, State: event.StateFinished}},
		"7":  {{Generated: 7, Polled: true, State: event.StateDispatched}, {Generated: 7, State: event.StateFinished}},
	} {
		for i := range f {
			if q := NewRequest(&store.Snapshot{}, &f[i]); q.generatedText() != want {
				t.Errorf("%+v: %q, want %q", f[i], q.generatedText(), want)
			}
		}
	}
}

// TestLossesOfAConnection checks that a report counts what was lost between the engine and llmtop.
func TestLossesOfAConnection(t *testing.T) {
	for want, remote := range map[string]event.Remote{
		"Missed 3 events of the engine: the numbers below lack them.": {Missed: 3},
		"Skipped 2 malformed lines of the engine.":                    {Malformed: 2},
	} {
		remote.Link = event.LinkConnected
		st := store.New(store.Options{Now: func() event.Time { return 1 }})
		st.Emit(event.Event{Kind: event.KindEngine, At: 1, Layer: -1, Data: &event.EngineInfo{Remote: remote}})
		c := Build(Meta{}, st.Snapshot()).Engine.Connection
		if got := c.notes(); len(got) != 1 || got[0] != want || c.Missed != remote.Missed || c.Malformed != remote.Malformed {
			t.Errorf("%+v: %q, want %q", c, got, want)
		}
	}
}

// TestStaleWithoutAReason checks the note of an engine that fell silent: it gave no reason.
func TestStaleWithoutAReason(t *testing.T) {
	c := &Connection{State: event.LinkStale.String()}
	if got := c.notes(); len(got) != 1 || got[0] != "The engine was stale at the end." {
		t.Errorf("%q", got)
	}
}
