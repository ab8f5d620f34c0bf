package report

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const glossary = "../../docs/metrics.md"

var update = flag.Bool("update", false, "update the table of fields of docs/metrics.md")

// unexplained are schema names that are not numbers and need no definition.
var unexplained = strings.Fields(`schema_version version partial machine command configuration model engine host kv gpus verdicts
	os arch cpu name device kernels path architecture quantisation label group text severity topic evidence try known
	request step log last_log token counters report`)

// names collects all property names of a schema.
func names(v any, out map[string]bool) {
	switch v := v.(type) {
	case map[string]any:
		if properties, ok := v["properties"].(map[string]any); ok {
			for name := range properties {
				out[name] = true
			}
		}
		for _, inner := range v {
			names(inner, out)
		}
	case []any:
		for _, inner := range v {
			names(inner, out)
		}
	}
}

// TestEveryNumberIsDefined checks that the glossary has each name of the schema in a code span.
func TestEveryNumberIsDefined(t *testing.T) {
	file, err := os.ReadFile("../../docs/report.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(glossary)
	if err != nil {
		t.Fatal(err)
	}
	var schema any
	if err := json.NewDecoder(bytes.NewReader(file)).Decode(&schema); err != nil {
		t.Fatal(err)
	}
	page = regexp.MustCompile("(?s)```.*?```").ReplaceAll(page, nil) // examples define nothing
	all, defined := map[string]bool{}, map[string]bool{}
	names(schema, all)
	for _, span := range regexp.MustCompile("`[^`]+`").FindAll(page, -1) {
		for _, word := range regexp.MustCompile(`[a-z0-9_]+`).FindAllString(string(span), -1) {
			defined[word] = true
		}
	}
	for name := range all {
		if !defined[name] && !slices.Contains(unexplained, name) {
			t.Errorf("docs/metrics.md does not define %q", name)
		}
	}
	for _, name := range unexplained {
		if !all[name] {
			t.Errorf("%q is not a name of the schema", name)
		}
	}
}

// objects are the objects of the schema whose fields docs/metrics.md lists with the schema's descriptions, by their place
// in a report.
var objects = []struct{ place, definition string }{
	{"engine", "engine"},
	{"model", "model"},
	{"warnings", ""},
	{"causes", ""},
	{"tokens of a request", "token"},
	{"experts", "experts"},
	{"percentiles", "distribution"},
	{"reported", ""},
	{"percentiles of reported", "quantile"},
	{"fleet", ""},
	{"bench", ""},
	{"compliance", "compliance"},
	{"numbers of bench", "statistics"},
	{"expert_cache", ""},
	{"phases of expert_cache", "cache_phase"},
	{"curves of expert_cache", "cache_curve"},
	{"placement", ""},
	{"curve of placement", "budget"},
	{"speculation", ""},
	{"ops", ""},
	{"over_run", "over_run"},
	{"processes of over_run", "process_over_run"},
}

// fieldRows returns a row for each field of an object that has a description, and for those of the objects in it.
func fieldRows(place string, v any) string {
	rows := ""
	switch v := v.(type) {
	case map[string]any:
		properties, _ := v["properties"].(map[string]any)
		for _, name := range slices.Sorted(maps.Keys(properties)) {
			field := properties[name].(map[string]any)
			if text, ok := field["description"].(string); ok {
				rows += fmt.Sprintf("| %s | `%s` | %s |\n", place, name, strings.ReplaceAll(text, "|", `\|`))
			}
			rows += fieldRows(strings.TrimPrefix(place+"."+name, "report."), field)
		}
		for _, key := range []string{"items", "anyOf", "oneOf", "allOf", "additionalProperties"} {
			rows += fieldRows(place, v[key])
		}
	case []any:
		for _, inner := range v {
			rows += fieldRows(place, inner)
		}
	}
	return rows
}

// TestFieldsAreDocumented checks that the table of fields of docs/metrics.md is that of the schema.
func TestFieldsAreDocumented(t *testing.T) {
	const begin, end = "<!-- fields -->\n", "<!-- /fields -->"
	var schema struct {
		Properties map[string]any
		Defs       map[string]any `json:"$defs"`
	}
	file, err := os.ReadFile("../../docs/report.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(file, &schema); err != nil {
		t.Fatal(err)
	}
	table := "| in | field | meaning |\n|---|---|---|\n"
	for _, o := range objects {
		object, rows := schema.Defs[o.definition], ""
		if o.definition == "" {
			object = schema.Properties[o.place]
			rows = fieldRows("report", map[string]any{"properties": map[string]any{o.place: object}})
		} else {
			rows = fieldRows(o.place, object)
		}
		if rows == "" {
			t.Errorf("the schema has no fields of %s", o.place)
		}
		table += rows
	}
	page, err := os.ReadFile(glossary)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, ok := strings.Cut(string(page), begin)
	old, tail, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("%s has no such table", glossary)
	}
	if *update {
		if err := os.WriteFile(glossary, []byte(head+begin+table+end+tail), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if old != table {
		t.Errorf("%s: the table of fields is not that of the schema: run go test ./profiler/report -run Documented -update", glossary)
	}
}
