package report

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
)

// TestReadWhatWasWritten: what is read is what was written.
func TestReadWhatWasWritten(t *testing.T) {
	var first, second bytes.Buffer
	if err := wholeRun().build(Meta{Version: "1"}).WriteJSON(&first); err != nil {
		t.Fatal(err)
	}
	r, err := Read(bytes.NewReader(first.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	if err := r.WriteJSON(&second); err != nil {
		t.Fatal(err)
	}
	var was, is any
	for _, doc := range []struct {
		src []byte
		to  *any
	}{{first.Bytes(), &was}, {second.Bytes(), &is}} {
		if err := json.Unmarshal(doc.src, doc.to); err != nil {
			t.Fatal(err)
		}
	}
	if !reflect.DeepEqual(was, is) {
		t.Errorf("wrote\n%s\nand after reading it\n%s", &first, &second)
	}
}

func TestReadRefuses(t *testing.T) {
	for doc, want := range map[string]string{
		"":                                     "read report: unexpected end of JSON input",
		"{}":                                   "no schema_version: not a report of llmtop",
		`{"schema_version": 99}`:               "schema version 99, this llmtop reads 1",
		`{"schema_version": 1, "requests": 7}`: "cannot unmarshal number",
		`{"schema_version": 1, "requests": [{"ttft_components_s": []}]}`: "want an object",
	} {
		if _, err := Read(strings.NewReader(doc)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", doc, err, want)
		}
	}
}

func FuzzRead(f *testing.F) {
	var doc bytes.Buffer
	if err := wholeRun().build(Meta{Version: "1"}).WriteJSON(&doc); err != nil {
		f.Fatal(err)
	}
	f.Add(doc.Bytes())
	f.Add([]byte(`{"schema_version": 1, "requests": [{"ttft_components_s": {"a": 1e999}}]}`))
	f.Fuzz(func(t *testing.T, src []byte) {
		r, err := Read(bytes.NewReader(src))
		if err != nil {
			return
		}
		var out bytes.Buffer
		if err := r.WriteJSON(&out); err != nil {
			t.Fatal(err)
		}
		if _, err := Read(&out); err != nil {
			t.Fatal(err)
		}
	})
}
