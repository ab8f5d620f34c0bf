package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"

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
		again := func(origin event.Origin, n event.Reading) {
			if n.OK() || n.Origin != origin {
				t.Errorf("%s: %v, want the reason %q", name, n, origin)
			}
		}
		if name == "whole" {
			again(event.NotYet, read.Host.Machine.Of("cpu_share"))
			again(event.NoDevice, read.Host.GPUs[0].Of("memory_bytes"))
			again(event.NotPermitted, read.Host.RunUsage.GPUs[0].Of("power_w"))
		}
	}
}

// manyOf returns a document with n elements in a list, which head opens and tail closes.
func manyOf(n int, head, element, tail string) string {
	return `{"schema_version": 1, ` + head + strings.TrimSuffix(strings.Repeat(element+",", n), ",") + tail + "}"
}

// dense are documents with lists of many elements that would take many times their size in memory.
func dense(many int) []string {
	return []string{
		manyOf(many, `"requests": [`, "{}", "]"),
		manyOf(many, `"requests": [`, " null\n", "]"),
		manyOf(many, `"requests": [`, "0", "]"),
		manyOf(many, `"Re\u0071ueſts": [`, "[]", "]"),
		manyOf(many, `"requests": [`, `""`, "]"),
		manyOf(many, `"requests": [`, "{               }", "]"), // more bytes for each
		manyOf(many, `"requests": [{"tokens": [`, `{"i":1}`, "]}]"),
		manyOf(many, `"requests": [{"ttft_components_s": {`, `"":0`, "}}]"),
		manyOf(many, `"verdicts": [`, "true", "]"),
		manyOf(many, `"host": {"gpus": [`, "0", "]}"),
		manyOf(many, `"host": {"over_run": {"gpus": [`, "{}", "]}}"),
		manyOf(many, `"reported": {"ranks": [`, "0", "]}"),
		manyOf(many, `"reported": {"numbers": [`, "0", "]}"),
		manyOf(many, `"reported": {"earlier": {"times": [`, "0", "]}}"),
		manyOf(many, `"fleet": {"replicas": [{"report": {"requests": [`, "0", "]}}]}"),
		manyOf(many, `"fleet": {"replicas": [`, `{"report":{}}`, "]}"),
		manyOf(many, `"bench": {"points": [`, "{}", "]}"),
		manyOf(many, `"bench": {"points": [{"runs": [`, "0", "]}]}"),
	}
}

// TestReadRefusesDense checks that a small document cannot take many times its size in memory, and that quotes, lists of
// absent numbers and small objects do not make a report look like one.
func TestReadRefusesDense(t *testing.T) {
	for _, doc := range dense(1 << 16) {
		if _, err := Read(strings.NewReader(doc)); err == nil || !strings.Contains(err.Error(), "its size in memory") {
			t.Errorf("%.60s: %v", doc, err)
		}
	}
	const many = 1 << 17
	for _, doc := range []string{
		manyOf(100, `"requests": [`, "{}", "]"),
		manyOf(many, `"command": "`, `{\"{\\`, `"`),
		manyOf(many, `"other": [`, "0", "]"),
		manyOf(many, `"experts": {"layers": [[`, "0", "]]}"),
		manyOf(many, `"host": {"core_shares": [`, "0", "]}"),
		manyOf(many, `"configuration": {`, `"max-tokens": "64"`, "}"),
		manyOf(many, `"requests": [{"tokens": [`, `{"i":1,"token":5,"text":"a","logprob":-0.5,"dur_s":1e-3}`, "]}]"),
	} {
		if _, err := Read(strings.NewReader(doc)); err != nil {
			t.Errorf("%.60s: %v", doc, err)
		}
	}
}

func TestReadRefuses(t *testing.T) {
	for doc, want := range map[string]string{
		"":                                     "read report: it is empty",
		`{"recording":"start"}` + "\n{}":       "read report: it is the text of a recording: name the recording itself",
		"\n ":                                  "read report: it is empty",
		"\x89LLM":                              "read report: it is neither a report nor a recording of llmtop",
		"[":                                    "read report: it is neither a report nor a recording of llmtop",
		`{"schema_version": 1`:                 "read report: unexpected end of JSON input",
		"{}":                                   "no schema_version: not a report of llmtop",
		`{"schema_version": 99}`:               "schema version 99, this llmtop reads 1",
		`{"schema_version": 1, "requests": 7}`: "requests holds a number: not a report of llmtop",
		`{"schema_version": "1.5", "request_count": {"unit": "requests", "avg": 3}}`: "schema_version is no number: not a report of llmtop",
		`{"mean_ttft_ms": 8}`:                                            "no schema_version: not a report of llmtop",
		`{"benchmarks": []}` + "\n" + `{"benchmarks": []}`:               "it has several JSON documents: not a report of llmtop",
		`[{"avg_ts": 9}]`:                                                "it is neither a report nor a recording of llmtop",
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
	f.Add([]byte(`{"schema_version": 1, "reported": {"times": [{"name": "ttft", "counts": [1, 2], "bounds_s": null, "p50": {"value_s": 1}}]}}`))
	var fleetDoc bytes.Buffer
	if err := BuildFleet(Meta{Version: "1"}, []Member{replica("a", time.Second, event.LinkConnected), replica("b", 0, event.LinkStale)}).WriteJSON(&fleetDoc); err != nil {
		f.Fatal(err)
	}
	f.Add(fleetDoc.Bytes())
	for _, doc := range dense(1 << 14) {
		f.Add([]byte(doc))
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		r, err := Read(bytes.NewReader(src))
		runtime.ReadMemStats(&after)
		if took := after.TotalAlloc - before.TotalAlloc; took > uint64(16<<20+128*len(src)) { // lists grow in steps
			t.Errorf("%d bytes took %d in memory", len(src), took)
		}
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

func TestReadRefusesLargeDocuments(t *testing.T) {
	eventtest.SkipUnderRace(t)
	doc := bytes.Repeat([]byte(" "), MaxDocument+1)
	if _, err := Read(bytes.NewReader(doc)); err == nil || err.Error() != "read report: larger than 128 MiB" {
		t.Errorf("%v", err)
	}
}
