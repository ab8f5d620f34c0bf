package report

import (
	"bufio"
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// laid returns a value as the report formats it.
func laid(t testing.TB, v any) string {
	t.Helper()
	compact, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	l := writer{bufio.NewWriter(&b)}
	l.json(compact, 0)
	if err := l.Flush(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestShortValuesStayOnOneLine(t *testing.T) {
	if got, want := laid(t, map[string]any{"a": []int{1, 2}, "b": `x,"\`}), `{"a": [1, 2], "b": "x,\"\\"}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	long := strings.Repeat("x", lineWidth)
	if got, want := laid(t, map[string]any{"a": []string{long}, "b": 1}), "{\n  \"a\": [\n    \""+long+"\"\n  ],\n  \"b\": 1\n}"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// TestLayoutKeepsTheDocument checks that the layout does not change a document, for any strings.
func TestLayoutKeepsTheDocument(t *testing.T) {
	words := rapid.SliceOf(rapid.OneOf(rapid.String(), rapid.StringMatching(`[\\",:{}\[\]]{0,80}`)))
	rapid.Check(t, func(rt *rapid.T) {
		doc := rapid.MapOfN(rapid.String(), words, 0, 8).Draw(rt, "doc")
		got := laid(t, doc)
		want, _ := json.Marshal(doc)
		var compact bytes.Buffer
		if err := json.Compact(&compact, []byte(got)); err != nil || compact.String() != string(want) {
			rt.Fatalf("%s became %s (%v)", want, got, err)
		}
	})
}
