package report

import (
	"bytes"
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

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
	glossary, err := os.ReadFile("../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	var schema any
	if err := json.NewDecoder(bytes.NewReader(file)).Decode(&schema); err != nil {
		t.Fatal(err)
	}
	glossary = regexp.MustCompile("(?s)```.*?```").ReplaceAll(glossary, nil) // examples define nothing
	all, defined := map[string]bool{}, map[string]bool{}
	names(schema, all)
	for _, span := range regexp.MustCompile("`[^`]+`").FindAll(glossary, -1) {
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
