package otlp

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"testing"
	"time"

	trace "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime/engine"
)

// exported is the number of spans per export of OpenTelemetry's libraries.
const exported = 512

// first is the id of the first span of an export. The bytes before its last four are a mark.
const first = uint64(0xc0ffee) << 40

// reused is an export that can be sent repeatedly as new spans.
type reused struct {
	body   []byte
	places []int // offsets of the ids
	round  uint32
	hex    bool
}

// newReused finds the ids in a body.
func newReused(b *testing.B, body []byte, inHex bool) *reused {
	b.Helper()
	r := &reused{body: bytes.Clone(body), hex: inHex}
	for i := range exported {
		id := binary.BigEndian.AppendUint64(nil, first+uint64(i))
		if inHex {
			id = []byte(hex.EncodeToString(id))
		}
		at := bytes.Index(body, id)
		if at < 0 {
			b.Fatalf("span %d is not in the export", i)
		}
		r.places = append(r.places, at+len(id)/2) // after the mark
	}
	return r
}

// renew gives all spans unused ids: round and number.
func (r *reused) renew() {
	r.round++
	for i, at := range r.places {
		id := binary.BigEndian.AppendUint32(nil, r.round<<10|uint32(i))
		if r.hex {
			hex.Encode(r.body[at:], id)
			continue
		}
		copy(r.body[at:], id)
	}
}

// BenchmarkReceive measures receiving an export of 512 vLLM requests over HTTP and converting it to events, per span.
func BenchmarkReceive(b *testing.B) {
	var spans []*trace.Span
	for i := range exported {
		spans = append(spans, vllm(first+uint64(i)))
	}
	all := export("vllm", spans...)
	wire, err := proto.Marshal(all)
	if err != nil {
		b.Fatal(err)
	}
	text, err := protojson.Marshal(all)
	if err != nil {
		b.Fatal(err)
	}
	text = ids.ReplaceAllFunc(text, func(found []byte) []byte {
		parts := ids.FindSubmatch(found)
		id, err := base64.StdEncoding.DecodeString(string(parts[2]))
		if err != nil {
			b.Fatal(err)
		}
		return fmt.Appendf(nil, "%s%x", parts[1], id)
	})
	b.Run("protobuf", func(b *testing.B) { receive(b, newReused(b, wire, false), protobufType) })
	b.Run("JSON", func(b *testing.B) { receive(b, newReused(b, text, true), jsonType) })
}

// ids are the JSON ids, in base64 where OTLP uses hexadecimal digits.
var ids = regexp.MustCompile(`("(?:traceId|spanId)": *")([^"]+)`)

// receive sends an export repeatedly.
func receive(b *testing.B, r *reused, kind string) {
	receiver, err := New(Options{Listen: "127.0.0.1:0"})
	if err != nil {
		b.Fatal(err)
	}
	defer receiver.Close()
	events := 0
	receiver.gather = newGather("", engine.NewClockSince(time.Hour), counting{&events})
	server := httptest.NewServer(receiver.handler())
	defer server.Close()
	b.SetBytes(int64(len(r.body)))
	b.ReportAllocs()
	for b.Loop() {
		r.renew()
		answer, err := http.Post(server.URL+tracesPath, kind, bytes.NewReader(r.body))
		if err != nil {
			b.Fatal(err)
		}
		_ = answer.Body.Close()
		if answer.StatusCode != http.StatusOK {
			b.Fatal(answer.Status)
		}
	}
	if want := 6 * b.N * exported; events < want { // queued, dispatched, two stages, a token, ended
		b.Fatalf("%d events of %d spans: %+v", events, b.N*exported, receiver.gather.counts)
	}
	all := float64(b.N * exported)
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/all, "ns/span")
	b.ReportMetric(all/b.Elapsed().Seconds(), "spans/s")
	b.ReportMetric(float64(len(r.body))/exported, "B/span")
}

// counting counts events.
type counting struct{ n *int }

// Emit implements event.Sink.
func (c counting) Emit(event.Event) { *c.n++ }
