package exposition

import (
	"crypto/rand"
	"encoding/hex"
	"net/url"
	"strconv"
	"sync"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/store"
)

// schemaURL names the version of OpenTelemetry's semantic conventions that the gen_ai names follow. Later versions keep
// these names, and refer to a repository of their own without a release.
const schemaURL = "https://opentelemetry.io/schemas/1.41.0"

const (
	// maxSpans is how many requests wait for the next push at most; about 1 KiB each. Further ones are counted.
	maxSpans = 8192
	// spanBatch is how many spans a message has at most.
	spanBatch = 1024
	// maxStages is how many stages of a request become events of its span.
	maxStages = 64
)

// spanQueue holds the spans of ended requests until they are pushed. It is safe for concurrent use.
type spanQueue struct {
	mu      sync.Mutex
	open    bool // spans are pushed
	spans   []span
	dropped uint64 // spans, beyond maxSpans
}

// start empties the queue, which then keeps spans or drops them silently.
func (q *spanQueue) start(open bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.open, q.spans = open, nil
}

// add adds the span of a request that has ended, if spans are pushed. now is the clock of the engine.
func (q *spanQueue) add(l labelSet, r *store.Request, now func() event.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.open || !spanned(r) {
		return
	}
	if len(q.spans) >= maxSpans {
		q.dropped++
		return
	}
	q.spans = append(q.spans, *newSpan(l, r, time.Now().UnixNano()-int64(now())))
}

// next returns the oldest spans for a message. They stay in the queue until sent is called.
func (q *spanQueue) next() []span {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.spans[:min(len(q.spans), spanBatch)]
}

// sent removes the n oldest spans.
func (q *spanQueue) sent(n int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.spans = append([]span(nil), q.spans[min(n, len(q.spans)):]...)
}

// lost returns how many spans were dropped, because too many waited.
func (q *spanQueue) lost() uint64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.dropped
}

// Spans in OTLP's JSON: ids are hexadecimal, times are Unix ns as strings.
type (
	span struct {
		TraceID       string      `json:"traceId"`
		ID            string      `json:"spanId"`
		Name          string      `json:"name"`
		Kind          int         `json:"kind"`
		Start         string      `json:"startTimeUnixNano"`
		End           string      `json:"endTimeUnixNano"`
		Attributes    attributes  `json:"attributes"`
		Events        []spanEvent `json:"events,omitempty"`
		DroppedEvents int         `json:"droppedEventsCount,omitempty"`
		Status        struct {
			Code    int    `json:"code,omitempty"`
			Message string `json:"message,omitempty"`
		} `json:"status,omitzero"`
	}
	spanEvent struct {
		Time       string     `json:"timeUnixNano"`
		Name       string     `json:"name"`
		Attributes attributes `json:"attributes,omitempty"`
	}
	attributes []attribute
	attribute  struct {
		Key   string `json:"key"`
		Value struct {
			Text   string   `json:"stringValue,omitempty"`
			Int    string   `json:"intValue,omitempty"`
			Double *float64 `json:"doubleValue,omitempty"`
			Array  any      `json:"arrayValue,omitempty"`
		} `json:"value"`
	}
)

// Values of OTLP's enumerations.
const (
	kindInternal, kindClient = 1, 3
	statusError              = 2
)

// add adds an attribute whose value is to be set.
func (a *attributes) add(key string) *attribute {
	*a = append(*a, attribute{Key: key})
	return &(*a)[len(*a)-1]
}

// text adds a text, unless it is "".
func (a *attributes) text(key, value string) {
	if value != "" {
		a.add(key).Value.Text = value
	}
}

// count adds a number of things, unless it is 0: not reported.
func (a *attributes) count(key string, n int) {
	if n > 0 {
		a.add(key).Value.Int = strconv.Itoa(n)
	}
}

// seconds adds a time, if it has a value.
func (a *attributes) seconds(key string, v event.Reading) {
	if v.OK() {
		a.add(key).Value.Double = &v.V
	}
}

// spanned reports whether a request has a span: its start is known, and it did not come out of a trace. Pushed back to
// where they came from, requests of traces would come again.
func spanned(r *store.Request) bool {
	return !r.Probe && !r.Polled && !r.MissedStart && !r.Retrospective && r.Closed >= r.Enqueued
}

// newSpan returns the span of an ended request. offset is the Unix time of the zero of the engine's clock, in ns.
func newSpan(s labelSet, r *store.Request, offset int64) *span {
	var id [24]byte
	_, _ = rand.Read(id[:]) // never fails
	stamp := func(t event.Time) string { return strconv.FormatInt(int64(t)+offset, 10) }
	out := &span{
		TraceID: hex.EncodeToString(id[:16]), ID: hex.EncodeToString(id[16:]), Kind: kindClient,
		Name: s.operation, Start: stamp(r.Enqueued), End: stamp(r.Closed),
	}
	if s.model != "" {
		out.Name += " " + s.model
	}
	if u, err := url.Parse(s.engine); err == nil && u.Hostname() != "" {
		out.Attributes.text("server.address", u.Hostname())
		port, _ := strconv.Atoi(u.Port())
		out.Attributes.count("server.port", port)
	} else {
		out.Kind = kindInternal
	}
	out.describe(s, r)
	for i, stage := range r.Spans {
		if i == maxStages {
			break
		}
		e := spanEvent{Time: stamp(stage.Start), Name: cleanLabel(stage.Label())}
		e.Attributes.seconds("llmtop.stage.duration", event.DerivedValue(stage.Dur().Seconds()))
		e.Attributes.count("llmtop.stage.tokens", stage.Tokens)
		out.Events = append(out.Events, e)
	}
	out.DroppedEvents = max(len(r.Spans)-maxStages, 0) + r.Omitted.Spans
	if r.First != 0 {
		out.Events = append(out.Events, spanEvent{Time: stamp(r.First), Name: "first token"})
	}
	return out
}

// describe adds the attributes of a request. Latencies have the names that vLLM and SGLang use in their traces.
func (s *span) describe(l labelSet, r *store.Request) {
	a := &s.Attributes
	a.text(engineAttr, l.engine)
	a.text(operationAttr, l.operation)
	a.text(providerAttr, l.provider)
	a.text(modelAttr, l.model)
	a.text("llmtop.request.outcome", r.State.String())
	a.text("llmtop.request.group", cleanLabel(r.Group))
	a.count("gen_ai.request.max_tokens", r.MaxTokens)
	a.count("gen_ai.usage.input_tokens", r.PromptTokens)
	a.count("gen_ai.usage.cache_read.input_tokens", r.CachedTokens)
	a.count("gen_ai.usage.output_tokens", r.Generated)
	a.seconds("gen_ai.latency.time_to_first_token", r.TTFT)
	a.seconds("gen_ai.latency.time_in_queue", r.STIL)
	a.seconds("gen_ai.latency.time_in_model_prefill", r.Prefill)
	a.seconds("gen_ai.latency.time_in_model_decode", r.Decode)
	a.seconds("gen_ai.latency.e2e", r.E2EL)
	switch r.State {
	case event.StateFinished:
		if reason := cleanLabel(r.Reason); reason != "" {
			a.add("gen_ai.response.finish_reasons").Value.Array = map[string]any{"values": []map[string]any{{"stringValue": reason}}}
		}
	case event.StateFailed:
		a.text("error.type", "_OTHER") // OpenTelemetry's word for an error without a class
		s.Status.Code, s.Status.Message = statusError, cleanLabel(r.Reason)
	}
}
