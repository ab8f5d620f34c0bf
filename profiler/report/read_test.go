package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/event/eventtest"
)

// TestReadRoundTrip checks that a document survives reading and writing.
func TestReadRoundTrip(t *testing.T) {
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
		t.Errorf("written:\n%s\nafter reading:\n%s", &first, &second)
	}
}

// TestReadKeepsReasons checks that the formats for people are the same from a document, reasons of absent numbers
// included.
func TestReadKeepsReasons(t *testing.T) {
	run := wholeRun()
	run.emit(0, event.Event{Kind: event.KindHost, Data: &event.Host{
		Interval: 1e9, CPU: event.Absent(event.NotYet), GPUs: []event.GPU{{Name: "card", Power: event.Absent(event.NotPermitted), MemTotal: event.Absent(event.NoDevice)}},
	}})
	whole := run.build(Meta{Version: "1"})
	whole.Requests[1].Label = "verse" // the other one is not valid UTF-8, which JSON cannot keep
	for name, r := range map[string]*Report{
		"whole": whole, "empty": newRun().build(Meta{}), "benchmark": benched(),
		"fleet": BuildFleet(Meta{Version: "1"}, []Member{replica("a", time.Second, event.LinkConnected), replica("b", 0, event.LinkStale)}),
	} {
		read, err := Read(strings.NewReader(in(t, r.WriteJSON)))
		if err != nil {
			t.Fatal(err)
		}
		for _, format := range []string{"text", "Markdown", "HTML"} {
			if was, is := in(t, formats(r)[format]), in(t, formats(read)[format]); was != is {
				t.Errorf("%s of the %s report:\n%s\nafter reading:\n%s", format, name, was, is)
			}
		}
		again := func(origin event.Origin, n Number) {
			if n.OK() || n.Origin != origin {
				t.Errorf("%s: %v, want the reason %q", name, n, origin)
			}
		}
		if name == "whole" {
			again(event.NotYet, numberNamed(event.MachineFields[:], read.Host.Readings[:], "cpu_share"))
			again(event.NoDevice, numberNamed(event.GPUFields[:], read.Host.GPUs[0].Readings[:], "memory_bytes"))
			again(event.NotPermitted, read.Host.RunUsage.GPUs[0].Power)
		}
	}
}

func TestReadRefuses(t *testing.T) {
	for doc, want := range map[string]string{
		"":                                     "read report: it is empty",
		"\n ":                                  "read report: it is empty",
		"\x89LLM":                              "read report: it is neither a report nor a recording of llmtop",
		"[":                                    "read report: it is neither a report nor a recording of llmtop",
		`{"schema_version": 1`:                 "read report: unexpected end of JSON input",
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
	var fleetDoc bytes.Buffer
	if err := BuildFleet(Meta{Version: "1"}, []Member{replica("a", time.Second, event.LinkConnected), replica("b", 0, event.LinkStale)}).WriteJSON(&fleetDoc); err != nil {
		f.Fatal(err)
	}
	f.Add(fleetDoc.Bytes())
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
		allCharts(r)
		if err := errors.Join(r.WriteText(&out), r.WriteCSV(&out), r.WriteJSONL(&out)); err != nil {
			t.Fatal(err)
		}
	})
}

// TestReadIsBounded checks the memory limit for documents that need much memory per byte, with any spelling that the
// decoder accepts as a field name.
func TestReadIsBounded(t *testing.T) {
	eventtest.SkipUnderRace(t)
	many := func(prefix, element, suffix string, n int) string {
		return `{"schema_version":1,` + prefix + strings.Repeat(element+",", n-1) + element + suffix + "}"
	}
	perMiB := func(size uintptr) int { return (1<<20)/int(size) + 1 }
	const mib = MaxDecoded >> 20
	for name, c := range map[string]struct{ doc, want string }{
		"requests":         {many(`"requests":[`, "{}", "]", MaxRequests+1), "it has more than 16384 requests"},
		"tokens":           {many(`"requests":[{"tokens":[`, "{}", "]}]", mib*perMiB(unsafe.Sizeof(Token{}))), "above 256 MiB"},
		"in other case":    {many(`"REQUE\u0053TS":[{"toKens":[`, "{}", "]}]", mib*perMiB(unsafe.Sizeof(Token{}))), "above 256 MiB"},
		"replicas":         {many(`"fleet":{"replicas":[`, `{"report":{}}`, "]}", mib*perMiB(unsafe.Sizeof(Report{}))), "above 256 MiB"},
		"components":       {many(`"requests":[{"ttft_components_s":{`, `"":1`, "}}]", mib*perMiB(memberSize)), "above 256 MiB"},
		"rows of a layer":  {many(`"experts":{"layers":[`, "[]", "]}", mib*perMiB(unsafe.Sizeof([]uint64{}))), "above 256 MiB"},
		"unknown, ignored": {many(`"surprises":[{"x":[`, "{}", "]}]", 1<<20), ""},
		"just as many":     {many(`"requests":[`, `{"id":1}`, "]", MaxRequests), ""},
	} {
		_, err := Read(strings.NewReader(c.doc))
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// TestReadEstimatesTheDecodedSize checks that the size estimate is not below the decoded size.
func TestReadEstimatesTheDecodedSize(t *testing.T) {
	var doc bytes.Buffer
	if err := wholeRun().build(Meta{Version: "1"}).WriteJSON(&doc); err != nil {
		t.Fatal(err)
	}
	w := walk{src: doc.Bytes()}
	w.value(reflect.TypeFor[Report](), "the report")
	r, err := Read(&doc)
	if err != nil || w.err != nil {
		t.Fatal(err, w.err)
	}
	least := uint64(len(r.Requests)) * uint64(unsafe.Sizeof(Request{}))
	for _, q := range r.Requests {
		least += uint64(len(q.Tokens)) * uint64(unsafe.Sizeof(Token{}))
	}
	if least == 0 || w.bytes < least || w.bytes > 100*least {
		t.Errorf("%d bytes; the requests and tokens alone take %d", w.bytes, least)
	}
}
