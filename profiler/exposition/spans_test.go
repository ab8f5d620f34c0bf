package exposition

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
)

// spansOf parses the spans of a message in OTLP's JSON into what a test compares: attributes and events as text.
func spansOf(t *testing.T, body []byte) (out []span) {
	t.Helper()
	var message struct {
		ResourceSpans []struct {
			SchemaURL  string
			ScopeSpans []struct{ Spans []span }
		}
	}
	if err := json.Unmarshal(body, &message); err != nil {
		t.Fatal(err)
	}
	if len(message.ResourceSpans) != 1 || message.ResourceSpans[0].SchemaURL != schemaURL {
		t.Fatalf("message %s", body)
	}
	return message.ResourceSpans[0].ScopeSpans[0].Spans
}

// attr returns the value of an attribute as text; "" if it is absent.
func (a attributes) attr(key string) string {
	for _, x := range a {
		if x.Key == key {
			switch v := x.Value; {
			case v.Double != nil:
				return fmt.Sprint(*v.Double)
			case v.Array != nil:
				return fmt.Sprint(v.Array)
			default:
				return v.Text + v.Int
			}
		}
	}
	return ""
}

// TestPushSpans checks that each request becomes one span with its times, attributes and stages, and that probes,
// requests without a start, and requests out of traces become none.
func TestPushSpans(t *testing.T) {
	r := newReceiver(t, accept)
	x := New("1.0")
	p, err := x.Push(r.URL, "", func(err error) { t.Error(err) })
	if err != nil {
		t.Fatal(err)
	}
	engine := addEngine(x, "http://gpu1:8000")
	engine.introduce("native", "tiny")
	engine.request(1, event.Request{Chat: true, MaxTokens: 64, Group: "tenant"}, 4)
	engine.state(ms, 2, event.StateQueued, &event.Request{})
	engine.state(ms, 2, event.StateFailed, &event.Outcome{Reason: "out of memory"})
	engine.request(3, event.Request{Probe: true}, 4)
	engine.request(4, event.Request{Retrospective: true}, 4)
	before := time.Now().UnixNano()
	p.Close()
	if len(r.spans) != 1 {
		t.Fatalf("%d messages of spans", len(r.spans))
	}
	spans := spansOf(t, r.spans[0])
	if len(spans) != 2 {
		t.Fatalf("spans %+v", spans)
	}
	first := spans[0]
	for key, want := range map[string]string{
		"engine": "http://gpu1:8000", "server.address": "gpu1", "server.port": "8000", operationAttr: "chat", modelAttr: "tiny",
		"gen_ai.usage.input_tokens": "10", "gen_ai.usage.cache_read.input_tokens": "4", "gen_ai.usage.output_tokens": "4",
		"gen_ai.request.max_tokens": "64", "llmtop.request.outcome": "finished", "llmtop.request.group": "tenant",
		"gen_ai.latency.time_in_queue": "0.002", "gen_ai.response.finish_reasons": "map[values:[map[stringValue:stop]]]",
	} {
		if got := first.Attributes.attr(key); got != want {
			t.Errorf("%s is %q, want %q", key, got, want)
		}
	}
	if first.Name != "chat tiny" || first.Kind != kindClient || len(first.TraceID) != 32 || len(first.ID) != 16 || first.Status.Code != 0 {
		t.Errorf("span %+v", first)
	}
	var start, end int64
	_, _ = fmt.Sscan(first.Start, &start)
	_, _ = fmt.Sscan(first.End, &end)
	if want := 2*ms + 100*us + 3*ms + 400*us + 3*ms; end-start != want || end > before+int64(time.Second) || start < before-int64(time.Minute) {
		t.Errorf("from %d to %d (%d ns), want %d ns before %d", start, end, end-start, want, before)
	}
	var names []string
	for _, e := range first.Events {
		names = append(names, e.Name+" "+e.Attributes.attr("llmtop.stage.duration"))
	}
	if got := strings.Join(names, ", "); !strings.Contains(got, "prompt 0.003") || !strings.HasSuffix(got, "first token ") {
		t.Errorf("events %s", got)
	}
	failed := spans[1]
	if failed.Status.Code != statusError || failed.Status.Message != "out of memory" ||
		failed.Attributes.attr("error.type") != "_OTHER" || failed.Attributes.attr("gen_ai.latency.time_to_first_token") != "" {
		t.Errorf("failed request: %+v", failed)
	}
}

// TestSpansAreKeptUntilSent checks that a failed push loses no span, that spans beyond the bound are counted, and that
// spans stop for a receiver without a path for them.
func TestSpansAreKeptUntilSent(t *testing.T) {
	var status int
	r := newReceiver(t, accept)
	r.answerSpans = func(w http.ResponseWriter) {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, "{}")
	}
	x := New("1.0")
	p, err := x.Push(r.URL, "", func(error) {})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	engine := addEngine(x, "local")
	engine.introduce("native", "tiny")
	for i := range maxSpans + 3 {
		if i%1000 == 0 {
			samples(t, x) // the store applies events
		}
		engine.state(ms, event.RequestID(i+1), event.StateQueued, &event.Request{})
		engine.state(ms, event.RequestID(i+1), event.StateCancelled, &event.Outcome{})
	}
	if got := find(samples(t, x), droppedSpans.promName)[""]; got != 3 {
		t.Errorf("%v spans dropped", got)
	}
	status = http.StatusServiceUnavailable
	p.push(t.Context())
	if x.failures.Load() != 1 || len(x.spans.spans) != maxSpans {
		t.Errorf("%d failures, %d spans left", x.failures.Load(), len(x.spans.spans))
	}
	status, r.spans = http.StatusOK, nil
	p.push(t.Context())
	if len(r.spans) != maxSpans/spanBatch || len(x.spans.spans) != 0 {
		t.Errorf("%d messages, %d spans left", len(r.spans), len(x.spans.spans))
	}
	status = http.StatusNotFound
	engine.request(1<<20, event.Request{}, 2)
	p.push(t.Context())
	engine.request(1<<20+1, event.Request{}, 2)
	if x.failures.Load() != 1 || p.traces != nil || len(x.spans.spans) != 0 {
		t.Errorf("%d failures, %d spans kept for a receiver without traces", x.failures.Load(), len(x.spans.spans))
	}
}
