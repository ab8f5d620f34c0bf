package otlp

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/llmtop/llmtop/profiler/event/eventtest"
)

// nested returns a JSON text that is nested deeper than allowed.
func nested(start, left, right, end string) []byte {
	return []byte(start + strings.Repeat(left, maxDepth+1) + strings.Repeat(right, maxDepth+1) + end)
}

// spansJSON returns the start and the end of an export around its spans.
func spansJSON(spans string) []byte {
	return []byte(`{"resourceSpans":[{"scopeSpans":[{"spans":[` + spans + `]}]}]}`)
}

var deepAttribute = spansJSON(`{"attributes":[{"key":"rid","value":` +
	string(nested("", `{"arrayValue":{"values":[`, `]}}`, "")) + `}]}`)

// manySpans returns an export of n empty spans.
func manySpans(n int) []byte { return spansJSON(strings.Repeat("{},", n-1) + "{}") }

// TestManyObjects: an export just below the limit is read, its empty spans are rejected.
func TestManyObjects(t *testing.T) {
	eventtest.SkipUnderRace(t)
	b, err := readJSON(manySpans(maxObjects - 3))
	if err != nil || b.rejected != maxObjects-3 {
		t.Errorf("%+v, %v", b, err)
	}
	text := fmt.Sprintf(`{"x":"%s"}`, strings.Repeat(`{\"\\{`, maxObjects))
	if _, err := readJSON([]byte(text)); err != nil {
		t.Errorf("braces in a text: %v", err)
	}
}

// TestJSONSpans: ids are hexadecimal, numbers may be strings, enumerations have numbers or names, and what is unknown is
// skipped.
func TestJSONSpans(t *testing.T) {
	const ids = `"traceId":"5B8EFFF798038103D269B633813FC60C","spanId":"eee19b7ec3c1b174"`
	const times = `"startTimeUnixNano":"1544712660000000000","endTimeUnixNano":1544712661000000000`
	for spans, valid := range map[string]bool{
		`{"name":"x",` + ids + `,` + times + `,"status":{"code":2},"kind":3,"later":{"x":[1,null]}}`:                   true,
		`{"name":"x",` + ids + `,` + times + `,"status":{"code":"STATUS_CODE_ERROR"},"kind":"SPAN_KIND_OF_LATER"}`:     true,
		`{"name":"x",` + ids + `,` + times + `,"status":{"code":2},"parentSpanId":"","attributes":[{"key":"rid"}]}`:    true,
		`{"name":"x",` + times + `,"traceId":"W47/95gDgQPSabYzgT/GDA==","spanId":"7uGbfsPBsXQ="}`:                      false, // base64
		`{"name":"x",` + times + `,"traceId":"5B8EFFF798038103D269B633813FC6","spanId":"eee19b7ec3c1b174"}`:            false, // short
		`{"name":"x",` + times + `,"traceId":"5B8EFFF798038103D269B633813FC60","spanId":"eee19b7ec3c1b174"}`:           false, // odd
		`{"name":"x",` + times + `,"traceId":"5B8EFFF798038103D269B633813FC6zz","spanId":"eee19b7ec3c1b174"}`:          false,
		`{"name":"x",` + ids + `,"startTimeUnixNano":"18446744073709551615","endTimeUnixNano":"18446744073709551615"}`: false,
		`{"name":"x",` + ids + `,"endTimeUnixNano":"1544712661000000000"}`:                                             false,
	} {
		b, err := readJSON(spansJSON(spans))
		if err != nil || len(b.spans)+b.rejected != 1 || (b.rejected == 0) != valid {
			t.Errorf("%s: %+v, %v", spans, b, err)
			continue
		}
		if !valid {
			continue
		}
		s := b.spans[0]
		if s.trace[1] != 0x8e || s.trace[15] != 0x0c || s.id[0] != 0xee || s.parent != [8]byte{} || !s.failed || s.end-s.start != 1e9 {
			t.Errorf("%s: %+v", spans, s)
		}
	}
}

// TestJSONErrors: an error quotes nothing of the export.
func TestJSONErrors(t *testing.T) {
	for _, body := range [][]byte{
		{},
		[]byte("7"), []byte("[]"), []byte(`{"resourceSpans":7}`), []byte("{\x1b[31m"), spansJSON(`{"name":7}`), spansJSON("{\"name\":\"\xff\"}"),
		spansJSON(`{"startTimeUnixNano":"` + strings.Repeat("x", 1<<20) + `"}`),
	} {
		_, err := readJSON(body)
		if err == nil {
			t.Errorf("%.100q: no error", body)
			continue
		}
		text := err.Error()
		if len(text) > 500 || !utf8.ValidString(text) || strings.ContainsAny(text, "\x1b\u00a0") || strings.Contains(text, "proto:") || strings.Contains(text, "xx") {
			t.Errorf("%.100q: %q", body, text)
		}
	}
}
