package recording

import (
	"bytes"
	"compress/gzip"
	"context"
	"io"
	"math"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/store"
)

// imported imports and replays a file, and returns the last snapshot.
func imported(t *testing.T, file string) (v *store.Snapshot, in ImportResult) {
	t.Helper()
	text, err := os.ReadFile("testdata/" + file)
	if err != nil {
		t.Fatal(err)
	}
	return show(t, bytes.NewReader(text))
}

func show(t *testing.T, file io.Reader) (v *store.Snapshot, in ImportResult) {
	t.Helper()
	rec, in, err := Import(file, newWire())
	if err != nil {
		t.Fatal(err)
	}
	defer rec.Close()
	synctest.Test(t, func(t *testing.T) {
		p, err := NewPlayer(rec, PlayOptions{Codec: newWire, Speed: Unpaced, StopAtEnd: true})
		if err != nil {
			t.Fatal(err)
		}
		s := store.New(store.Options{Now: p.Now, Wall: p.Wall})
		if err := p.Run(context.Background(), s); err != nil {
			t.Fatal(err)
		}
		v = s.Snapshot()
	})
	return v, in
}

// near compares a reading with the value in the trace.
func near(t *testing.T, what string, got event.Reading, want float64) {
	t.Helper()
	if !got.OK() || math.Abs(got.V-want) > 1e-9 {
		t.Errorf("%s is %+v, want %v", what, got, want)
	}
}

func TestRequestTraceOfFewFields(t *testing.T) {
	v, in := imported(t, "dynamo_request_trace.jsonl")
	if in != (ImportResult{Rows: 1}) || len(v.Requests) != 1 {
		t.Fatalf("%+v, %d requests", in, len(v.Requests))
	}
	r := v.Requests[0]
	if r.Label != "r-1" || r.PromptTokens != 128 || r.Generated != 16 || r.State != event.StateFinished || v.Counts.GeneratedTokens != 16 {
		t.Errorf("request %+v", r)
	}
	if took := time.Duration(r.Closed - r.Enqueued); took != time.Second {
		t.Errorf("duration %v, want 1s", took)
	}
	if r.TTFT.OK() || r.TPOT.OK() || r.STIL.OK() || r.Dispatched != 0 || !r.AnyCached {
		t.Errorf("numbers that the trace lacks are present: TTFT %v, TPOT %v, STIL %v", r.TTFT, r.TPOT, r.STIL)
	}
	if want := time.UnixMilli(1787400001000); !v.Wall.Equal(want) {
		t.Errorf("the end is at %v, want %v", v.Wall, want)
	}
}

func TestRequestTraceOfManyFields(t *testing.T) {
	v, in := imported(t, "dynamo_agent_trace.jsonl")
	if in != (ImportResult{Rows: 3, Skipped: 1}) || len(v.Requests) != 2 || v.Model.Name != "m-1" || v.Engine.Name != "dynamo" {
		t.Fatalf("%+v, %d requests of %q", in, len(v.Requests), v.Model.Name)
	}
	r, early := v.Requests[0], v.Requests[1]
	if r.Label != "r-2" || r.Group != "m-1" || r.PromptTokens != 4096 || r.CachedTokens != 3584 || r.Generated != 101 || r.Reason != "tool_calls" {
		t.Errorf("request %+v", r)
	}
	near(t, "TTFT", r.TTFT, .0825)
	near(t, "STIL", r.STIL, .0125)
	near(t, "prefill", r.Prefill, .07)
	near(t, "TPOT", r.TPOT, .01)
	if r.ITL.Count != 100 {
		t.Errorf("%d gaps, want 100", r.ITL.Count)
	}
	if early.Label != "r-0" || early.State != event.StateCancelled || early.Generated != 2 || time.Duration(early.Closed-early.Enqueued) != 250*time.Millisecond {
		t.Errorf("request %+v", early)
	}
	if n := len(v.Log); n != 2 || v.Log[1].Text != "tool_end web_search succeeded after 420 ms" {
		t.Errorf("log %+v", v.Log)
	}
}

func TestForwardPassTrace(t *testing.T) {
	v, in := imported(t, "dynamo_fpm_trace.jsonl")
	if in != (ImportResult{Rows: 1}) || v.Counts.Steps != 1 || v.KV.Used != 64+1024 || v.KV.Usage.OK() {
		t.Errorf("%+v, %d steps, KV %+v", in, v.Counts.Steps, v.KV)
	}
	near(t, "prefill", v.Throughput.Prefill, 256/.0251)
	if len(v.Log) != 1 || !strings.Contains(v.Log[0].Text, "a sample") {
		t.Errorf("log %+v", v.Log)
	}
}

func TestForwardPassKeepsAllFields(t *testing.T) {
	text, err := os.ReadFile("testdata/dynamo_fpm_trace.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	var in importer
	if err := in.read(bytes.NewReader(text)); err != nil {
		t.Fatal(err)
	}
	value := func(v float64) event.Reading { return event.Reading{V: v, Origin: event.Reported} }
	want := &event.Pass{
		Worker: "4192", Rank: value(0), Counter: value(42), Wall: value(.0251),
		Scheduled: event.PassLoad{Prefills: value(2), PrefillTokens: value(256), PrefillVariance: value(100), PrefillKV: value(64), Decodes: value(3), DecodeKV: value(1024), DecodeVariance: value(50)},
		Queued:    event.PassLoad{Prefills: value(1), PrefillTokens: value(128), PrefillVariance: value(0), Decodes: value(0), DecodeKV: value(0), DecodeVariance: value(0)},
	}
	if d := cmp.Diff(any(want), in.events[0].Data); d != "" {
		t.Errorf("pass (-trace +event):\n%s", d)
	}
}

func TestCompressedTracesAndTornTails(t *testing.T) {
	text, err := os.ReadFile("testdata/dynamo_agent_trace.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	for range 100 { // more than the decompressor buffers
		if _, err := z.Write(text); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	if v, in := show(t, bytes.NewReader(b.Bytes())); in.Rows != 300 || v.Counts.Finished != 100 || v.Counts.Cancelled != 100 {
		t.Errorf("%+v, %+v", in, v.Counts)
	}
	if _, in := show(t, bytes.NewReader(b.Bytes()[:b.Len()-9])); in.Rows != 300 {
		t.Errorf("of a file without its end: %+v", in)
	}
	if _, in := show(t, bytes.NewReader(append(text, text[:100]...))); in != (ImportResult{Rows: 3, Skipped: 2}) {
		t.Errorf("of a line without its end: %+v", in)
	}
}

func TestOtherFilesAreRefused(t *testing.T) {
	long := strings.Repeat("x", MaxLine+5) + "\n"
	for name, text := range map[string]string{
		"nothing": "", "text": "hello\nworld\n", "binary": "\x00\xff\x1f", "other JSON": `{"a": 1}` + "\n",
		"half a gzip": "\x1f\x8b\x08", "a long line": long, "no time": `{"schema":"dynamo.request.trace.v1","event_type":"request_end","request":{}}`,
		"an odd time": `{"schema":"dynamo.fpm.trace.v1","observed_at_unix_ms":-1e300,"fpm":{"wall_time":1}}`,
	} {
		if _, _, err := Import(strings.NewReader(text), plain{}); err == nil || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", name, err)
		}
	}
	good, err := os.ReadFile("testdata/dynamo_fpm_trace.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	if _, in := show(t, io.MultiReader(strings.NewReader(long), bytes.NewReader(good))); in != (ImportResult{Rows: 1, Skipped: 1}) {
		t.Errorf("after a long line: %+v", in)
	}
}

func FuzzImport(f *testing.F) {
	for _, name := range []string{"dynamo_request_trace.jsonl", "dynamo_agent_trace.jsonl", "dynamo_fpm_trace.jsonl"} {
		text, err := os.ReadFile("testdata/" + name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Add([]byte(`{"schema":"dynamo.request.trace.v1","event_type":"request_end","event_time_unix_ms":4e12,"request":{"output_tokens":2e9,"ttft_ms":0,"total_time_ms":8e7,"avg_itl_ms":8e7}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		rec, in, err := Import(bytes.NewReader(text), plain{})
		if err != nil {
			return
		}
		defer rec.Close()
		if in.Rows == 0 {
			t.Fatal("a recording of no rows")
		}
		last := rec.Begin
		for c := rec.Cursor(0); ; {
			e, err := c.Next()
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			if e.At < last || e.At < 1 || e.At > rec.End {
				t.Fatalf("an event at %d after %d, in a recording up to %d", e.At, last, rec.End)
			}
			last = e.At
		}
	})
}
