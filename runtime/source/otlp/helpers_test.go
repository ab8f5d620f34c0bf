package otlp

import (
	"encoding/binary"
	"testing"
	"time"

	common "go.opentelemetry.io/proto/otlp/common/v1"
	res "go.opentelemetry.io/proto/otlp/resource/v1"
	trace "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/event/eventtest"
	"github.com/llmtop/llmtop/runtime/engine"
)

// began is the start of the tests' spans, Unix ns. It is close to now, since late spans are dropped.
var began = time.Now().Add(-time.Minute).UnixNano()

const ms = int64(time.Millisecond)

// made returns a span as exporters send it.
func made(name string, traceID, id, parent uint64, from, to int64, facts ...*common.KeyValue) *trace.Span {
	bytes := func(n uint64, size int) []byte {
		if n == 0 {
			return nil
		}
		return binary.BigEndian.AppendUint64(make([]byte, size-8), n)
	}
	return &trace.Span{
		TraceId: bytes(traceID, 16), SpanId: bytes(id, 8), ParentSpanId: bytes(parent, 8), Name: name,
		StartTimeUnixNano: uint64(began + from), EndTimeUnixNano: uint64(began + to), Attributes: facts,
	}
}

func text(key, v string) *common.KeyValue {
	return &common.KeyValue{Key: key, Value: &common.AnyValue{Value: &common.AnyValue_StringValue{StringValue: v}}}
}

func seconds(key string, v float64) *common.KeyValue {
	return &common.KeyValue{Key: key, Value: &common.AnyValue{Value: &common.AnyValue_DoubleValue{DoubleValue: v}}}
}

func count(key string, v int64) *common.KeyValue {
	return &common.KeyValue{Key: key, Value: &common.AnyValue{Value: &common.AnyValue_IntValue{IntValue: v}}}
}

// export returns the export of one process.
func export(service string, spans ...*trace.Span) *trace.TracesData {
	return &trace.TracesData{ResourceSpans: []*trace.ResourceSpans{{
		Resource:   &res.Resource{Attributes: []*common.KeyValue{text("service.name", service)}},
		ScopeSpans: []*trace.ScopeSpans{{Spans: spans}},
	}}}
}

// desk is a gather with a log of its events.
type desk struct {
	*gather
	eventtest.Log
	t   *testing.T
	now time.Time
}

func newDesk(t *testing.T) *desk {
	d := &desk{t: t, now: time.Unix(0, began).Add(30 * time.Second)}
	d.gather = newGather("http://127.0.0.1:4318/v1/traces", engine.NewClockSince(time.Hour), &d.Log)
	return d
}

// shown returns the last state that was emitted.
func (d *desk) shown() *event.EngineInfo {
	states := d.OfKind(event.KindEngine)
	return states[len(states)-1].Data.(*event.EngineInfo)
}

// send processes an export.
func (d *desk) send(data *trace.TracesData) {
	d.t.Helper()
	body, err := proto.Marshal(data)
	if err != nil {
		d.t.Fatal(err)
	}
	b, err := readProtobuf(body)
	if err != nil {
		d.t.Fatal(err)
	}
	d.take(b, "127.0.0.1", d.now)
}

// since returns the event time ns after began.
func (d *desk) since(ns int64) event.Time { return d.gather.at(began + ns) }
