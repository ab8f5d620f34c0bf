package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
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
	f.Add([]byte(`{"schema_version": 1, "fleet": {"replicas": [{"report": null}]}}`))
	f.Add([]byte(`{"schema_version": 1, "reported": {"times": [{"name": "ttft", "counts": [1, 2], "bounds_s": null}]}}`))
	var several bytes.Buffer
	if err := Several(Meta{Version: "1"}, []Member{replica("a", time.Second, event.LinkConnected), replica("b", 0, event.LinkStale)}).WriteJSON(&several); err != nil {
		f.Fatal(err)
	}
	f.Add(several.Bytes())
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
		r.charts()
		if err := errors.Join(r.WriteText(&out), r.WriteCSV(&out), r.WriteJSONL(&out)); err != nil {
			t.Fatal(err)
		}
	})
}
