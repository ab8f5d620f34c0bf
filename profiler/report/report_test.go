package report

import (
	"bytes"
	"encoding/json"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/store"
)

// strict makes every field that the schema does not list an error.
func strict(v any) {
	switch v := v.(type) {
	case map[string]any:
		for _, inner := range v {
			strict(inner)
		}
		if _, ok := v["properties"].(map[string]any); ok && v["type"] != nil {
			v["additionalProperties"] = false
		}
	case []any:
		for _, inner := range v {
			strict(inner)
		}
	}
}

// list adds the numbers of the catalogue to the properties of a definition, which refers to them as further members.
func list[T any](doc any, definition string, rows []event.Field[T]) {
	def := doc.(map[string]any)["$defs"].(map[string]any)[definition].(map[string]any)
	for _, f := range rows {
		if f.JSON != "" {
			def["properties"].(map[string]any)[f.JSON] = def["additionalProperties"]
		}
	}
}

func schema(t testing.TB) *jsonschema.Schema {
	t.Helper()
	file, err := os.ReadFile("../../docs/report.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	list(doc, "host", event.MachineFields[:])
	list(doc, "process", event.ProcessFields[:])
	list(doc, "gpu", event.GPUFields[:])
	strict(doc)
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	if err := c.AddResource("report.json", doc); err != nil {
		t.Fatal(err)
	}
	compiled, err := c.Compile("report.json")
	if err != nil {
		t.Fatal(err)
	}
	return compiled
}

func written(t testing.TB, r *Report) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := r.WriteJSON(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// decoded returns a report as a program reads it.
func decoded(t testing.TB, r *Report) map[string]any {
	t.Helper()
	var doc map[string]any
	if err := json.Unmarshal(written(t, r), &doc); err != nil {
		t.Fatal(err)
	}
	return doc
}

func TestReportsFollowTheirSchema(t *testing.T) {
	compiled := schema(t)
	for name, r := range map[string]*run{"nothing happened": newRun(), "everything happened": wholeRun()} {
		t.Run(name, func(t *testing.T) {
			doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(written(t, r.build(Meta{Version: "v1", Configuration: map[string]string{"seed": "1"}}))))
			if err != nil {
				t.Fatal(err)
			}
			if err := compiled.Validate(doc); err != nil {
				t.Errorf("%v", err)
			}
		})
	}
}

func TestSchemaRejectsOtherDocuments(t *testing.T) {
	compiled := schema(t)
	for name, spoil := range map[string]func(doc map[string]any){
		"another version": func(doc map[string]any) { doc["schema_version"] = 2 },
		"a new field":     func(doc map[string]any) { doc["totals"].(map[string]any)["gpus"] = 1 },
		"no other":        func(doc map[string]any) { delete(first(doc)["ttft_components_s"].(map[string]any), "other") },
		"a word":          func(doc map[string]any) { first(doc)["ttft_s"] = "fast" },
	} {
		doc := decoded(t, wholeRun().build(Meta{}))
		spoil(doc)
		if compiled.Validate(doc) == nil {
			t.Errorf("%s: the schema accepts it", name)
		}
	}
}

func first(doc map[string]any) map[string]any { return doc["requests"].([]any)[0].(map[string]any) }

func TestRequestNumbers(t *testing.T) {
	doc := decoded(t, wholeRun().build(Meta{}))
	requests := doc["requests"].([]any)
	if len(requests) != 5 {
		t.Fatalf("%d requests, want 5", len(requests))
	}
	cold, warm := requests[0].(map[string]any), requests[1].(map[string]any)
	for name, want := range map[string]float64{
		"ttft_s": .059, "stil_s": .002, "prefill_s": .012, "decode_s": .015, "tpot_s": .005, "paced_s": .009,
		"prompt_tokens": 8, "cached_tokens": 2, "generated_tokens": 4,
		"prefill_tokens_per_s": 6 / .012, "decode_tokens_per_s": 200,
	} {
		if got := cold[name].(float64); math.Abs(got-want) > 1e-9*want {
			t.Errorf("%s = %v, want %v", name, got, want)
		}
	}
	if got := warm["ttft_s"].(float64); math.Abs(got-.019) > 1e-12 {
		t.Errorf("warm ttft_s = %v, want 0.019", got)
	}
	if cold["dominant_component"] != "model_load" || warm["dominant_component"] != "prompt" {
		t.Errorf("dominant %v and %v, want model_load and prompt", cold["dominant_component"], warm["dominant_component"])
	}
	layer := warm["layers"].([]any)[1].(map[string]any)
	if layer["attention_s"] != .003 || layer["router_s"] != .001 || layer["experts_s"] != .002 {
		t.Errorf("layer 1 took %v, want 3, 1 and 2 ms", layer)
	}
	token := warm["tokens"].([]any)[1].(map[string]any)
	if token["id"] != 101.0 || token["index"] != 1.0 || token["t_s"] != .027 || token["gap_s"] != .005 || token["logprob"] != -.5 || token["handover_s"] != .0015 {
		t.Errorf("the second token is %v", token)
	}
	if top := token["top_logprobs"].([]any)[1].(map[string]any); top["logprob"] != nil || top["text"] != "\ufffd" {
		t.Errorf("impossible alternative: %v, want no number", top)
	}
	if warm["text"] != strings.Repeat("w\x1b ", 6) {
		t.Errorf("text %q", warm["text"])
	}
}

func TestAbsentNumbersHaveTheirReasons(t *testing.T) {
	doc := decoded(t, wholeRun().build(Meta{}))
	requests := doc["requests"].([]any)
	for _, c := range []struct {
		of   map[string]any
		name string
		want string
	}{
		{requests[2].(map[string]any), "tpot_s", "undefined"}, // one token
		{requests[3].(map[string]any), "ttft_s", "undefined"}, // cancelled in the queue
		{requests[4].(map[string]any), "ttft_s", "not yet"},   // still queued
		{doc["host"].(map[string]any), "memory_used_bytes", "undefined"},
		{doc["host"].(map[string]any)["engine"].(map[string]any), "disk_read_bytes", "not permitted"},
		{doc["host"].(map[string]any)["engine"].(map[string]any), "disk_write_bytes_per_s", "not reported"},
	} {
		if v, ok := c.of[c.name]; !ok || v != nil {
			t.Errorf("%s = %v, want null", c.name, v)
		}
		if why := c.of["absent"].(map[string]any)[c.name]; why != c.want {
			t.Errorf("%s is absent because %v, want %v", c.name, why, c.want)
		}
	}
	if parts := requests[3].(map[string]any)["ttft_components_s"]; parts != nil {
		t.Errorf("a request without tokens has components %v", parts)
	}
}

func TestComponentsAddUp(t *testing.T) {
	r := wholeRun().build(Meta{})
	for _, q := range r.Requests[:3] {
		sum := 0.0
		for _, p := range q.Parts {
			sum += p.Time.V
		}
		if last := q.Parts[len(q.Parts)-1]; math.Abs(sum-q.TTFT.V) > 1e-12 || last.Name != "other" || math.Abs(last.Time.V-.001) > 1e-12 {
			t.Errorf("request %d: %v add up to %v s, want %v with 1 ms other", q.ID, q.Parts, sum, q.TTFT.V)
		}
	}
}

func TestSections(t *testing.T) {
	doc := decoded(t, wholeRun().build(Meta{Version: "v1", Partial: true, Configuration: map[string]string{"temp": "0.8"}}))
	at := func(path string) any {
		var v any = doc
		for _, name := range strings.Split(path, ".") {
			v = v.(map[string]any)[name]
		}
		return v
	}
	for path, want := range map[string]any{
		"schema_version": 1.0, "version": "v1", "partial": true, "configuration.temp": "0.8",
		"started": "2023-11-14T22:13:20.001Z", "machine.cores": 2.0, "machine.memory_bytes": 8e9,
		"totals.finished": 3.0, "totals.cancelled": 1.0, "totals.queued": 1.0, "totals.generated_tokens": 11.0, "totals.prompt_tokens": 24.0,
		"percentiles.cold_ttft_s.count": 1.0, "percentiles.ttft_s.count": 2.0, "percentiles.ttft_s.max": .019, "percentiles.itl_s.count": 8.0,
		"percentiles.itl_s.p50": .005, "percentiles.cold_ttft_s.stddev": nil,
		"kv.usage": .1, "kv.residency_s.max": .02, "lost.token": 3.0, "lost.stage": 0.0,
		"experts.decode.tokens": 8.0, "host.engine.pid": 42.0, "model.architecture": "qwen3moe", "model.vocab": nil,
	} {
		if got := at(path); got != want {
			t.Errorf("%s = %v, want %v", path, got, want)
		}
	}
	stats := at("experts.decode.stats").([]any)[0].(map[string]any)
	if stats["max_mean"] != 3.0 || stats["dead"] != 1.0 || stats["hot"].([]any)[0] != 0.0 || stats["cold"].([]any)[0] != 3.0 {
		t.Errorf("layer 0 of the experts is %v", stats)
	}
	if row := at("experts.layers").([]any)[0].([]any); row[0] != 6.0 || row[3] != 0.0 {
		t.Errorf("picks of layer 0 are %v", row)
	}
}

func TestJSONIsTheSameEachTime(t *testing.T) {
	r := wholeRun().build(Meta{Configuration: map[string]string{"a": "1", "b": "2", "c": "3"}})
	if one, two := written(t, r), written(t, r); !bytes.Equal(one, two) {
		t.Error("two outputs of one report differ")
	}
	if event.NumKinds.String() != "unknown" || len(r.Dropped) != int(event.NumKinds) {
		t.Errorf("%d kinds of dropped events, want %d", len(r.Dropped), event.NumKinds)
	}
}

// TestRemoteMachine checks that the report of another machine has nothing of this one.
func TestRemoteMachine(t *testing.T) {
	r := Build(Meta{Remote: true}, store.Empty())
	if m := r.Machine; m.OS != nil || m.Arch != nil || m.CPU != nil || m.Cores != nil {
		t.Errorf("machine = %s, want no properties", m.describe())
	}
	seen := store.Empty()
	seen.Host.Cores = []float64{0, 1, 0}
	if got := Build(Meta{Remote: true}, seen).Machine.describe(); got != "3 cores" {
		t.Errorf("machine with samples of three cores = %q", got)
	}
}

// TestUnknownPropertiesAreOmitted checks the header of a report with few properties.
func TestUnknownPropertiesAreOmitted(t *testing.T) {
	r := newRun()
	r.emit(ms, event.Event{Kind: event.KindEngine, Data: &event.EngineInfo{Name: "vLLM", Version: "0.20", State: event.EngineReady}})
	r.emit(0, event.Event{Kind: event.KindModel, Data: &event.Model{Name: "m", Parameters: 8e9}})
	head := textOf(t, r.build(Meta{Version: "1"}))
	if want := "llmtop 1 - engine vLLM 0.20, ready\nmodel m, 8.00G parameters\n"; !strings.HasPrefix(head, want) {
		t.Errorf("%.200s, want %s", head, want)
	}
}
