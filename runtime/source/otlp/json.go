package otlp

import (
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	trace "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

var (
	errJSON    = errors.New("the body is not a trace export in JSON")
	errObjects = fmt.Errorf("export too large: limit %d JSON objects", maxObjects)
)

// maxObjects limits the JSON objects of one export, because an object of three bytes becomes a message of up to 300. An
// export of 16 MiB with the attributes of vLLM has 350,000. maxDepth limits the nesting of messages and of skipped values.
const (
	maxObjects = 1 << 19
	maxDepth   = 100
)

// readJSON reads an ExportTraceServiceRequest in OTLP's JSON. It translates the export to protobuf, so that both
// encodings mean the same.
func readJSON(body []byte) (*batch, error) {
	if objects(body) > maxObjects {
		return nil, errObjects
	}
	var data trace.TracesData // has the same fields as ExportTraceServiceRequest, whose package imports gRPC
	err := protojson.UnmarshalOptions{DiscardUnknown: true, RecursionLimit: maxDepth}.Unmarshal(body, &data)
	if err != nil {
		return nil, fmt.Errorf("%w%s", errJSON, place(err))
	}
	for _, r := range data.ResourceSpans {
		for _, s := range r.ScopeSpans {
			for _, span := range s.Spans {
				span.TraceId, span.SpanId, span.ParentSpanId = unhex(span.TraceId), unhex(span.SpanId), unhex(span.ParentSpanId)
			}
		}
	}
	wire, err := proto.Marshal(&data)
	if err != nil {
		return nil, fmt.Errorf("%w%s", errJSON, place(err))
	}
	return readProtobuf(wire)
}

// objects counts the objects of a JSON text.
func objects(body []byte) (n int) {
	quoted := false
	for i := 0; i < len(body); i++ {
		switch body[i] {
		case '"':
			quoted = !quoted
		case '\\':
			i++
		case '{':
			if !quoted {
				n++
			}
		}
	}
	return n
}

// unhex returns an id that protojson has read. OTLP writes ids as hexadecimal digits, which protojson takes for base64:
// encoding the bytes again restores the digits. The result is empty for anything else, which makes a span invalid.
func unhex(id []byte) []byte {
	raw, err := hex.DecodeString(base64.StdEncoding.EncodeToString(id))
	if err != nil {
		return nil
	}
	return raw
}

// place returns the place in an error of protojson, " (line 1:5)". The rest of the error quotes the export.
func place(err error) string {
	_, at, _ := strings.Cut(err.Error(), " (line ")
	at, _, ok := strings.Cut(at, ")")
	if !ok {
		return ""
	}
	return " (line " + at + ")"
}
