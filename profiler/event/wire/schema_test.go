package wire

import (
	"bytes"
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"pgregory.net/rapid"

	"github.com/llmtop/llmtop/profiler/event"
)

const schemaFile = "../../../docs/event.schema.json"

// schema is the JSON schema with the member names of each type of line.
type schema struct {
	*jsonschema.Schema
	names map[string]map[string]bool
}

func readSchema(t *testing.T) schema {
	t.Helper()
	file, err := os.ReadFile(schemaFile)
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	if err := c.AddResource("event.schema.json", doc); err != nil {
		t.Fatal(err)
	}
	f := schema{c.MustCompile("event.schema.json"), map[string]map[string]bool{}}
	defs := doc.(map[string]any)["$defs"].(map[string]any)
	for name, def := range defs {
		if properties, ok := def.(map[string]any)["properties"].(map[string]any); ok {
			f.names[name] = map[string]bool{}
			for p := range properties {
				f.names[name][p] = true
			}
		}
	}
	return f
}

// check returns why a line violates the schema or has a name that the schema does not list; "" if it conforms.
func (f *schema) check(line []byte) string {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(line))
	if err != nil {
		return err.Error()
	}
	if err := f.Validate(doc); err != nil {
		return err.Error()
	}
	members := doc.(map[string]any)
	kind, _ := members["t"].(string)
	if f.names[kind] == nil {
		return "the schema does not list the type " + kind
	}
	for name := range members {
		if !f.names[kind][name] && !catalogued(kind, name) {
			return "the schema does not list " + name + " of " + kind
		}
	}
	return ""
}

// catalogued reports whether a type of line has a reading of this key; docs/metrics.md lists them.
func catalogued(kind, key string) bool {
	switch kind {
	case "host":
		return hasKey(event.MachineFields[:], key)
	case "usage":
		return hasKey(event.UsageFields[:], key)
	}
	return false
}

func hasKey[T any](rows []event.Field[T], key string) bool {
	return slices.ContainsFunc(rows, func(f event.Field[T]) bool { return f.Key == key })
}

// TestLinesMatchSchema checks encoded events against docs/event.schema.json.
func TestLinesMatchSchema(t *testing.T) {
	f := readSchema(t)
	rapid.Check(t, func(r *rapid.T) {
		e := anyEvent(r)
		line, err := Append(nil, &e)
		if err != nil {
			r.Fatal(err)
		}
		if why := f.check(line); why != "" {
			r.Fatalf("%s\n%s", why, line)
		}
	})
	rapid.Check(t, func(r *rapid.T) {
		var tokens []event.Event
		for range rapid.IntRange(2, 5).Draw(r, "n") {
			tokens = append(tokens, anyOfKind(r, event.KindToken))
		}
		line, err := AppendTokens(nil, tokens, nil)
		if err != nil {
			r.Fatal(err)
		}
		if why := f.check(line); why != "" {
			r.Fatalf("%s\n%s", why, line)
		}
	})
}

// TestSessionLinesMatchSchema does the same for lines about the connection and control messages.
func TestSessionLinesMatchSchema(t *testing.T) {
	f := readSchema(t)
	lines := [][]byte{AppendHello(nil, 5, "run", &event.EngineInfo{Name: "e", Epoch: 7}, &event.Model{Name: "m", Layers: 3}, 9)}
	for k := Auth; k <= Bye; k++ {
		s := Session{Type: k, At: 5, Wall: 6, Events: 7, Call: 8, OK: true, Reason: "why", Req: 9}
		if k < Reply {
			s.Reason = ""
		}
		lines = append(lines, AppendSession(nil, &s, &event.Drops{event.KindToken: 3}))
	}
	for _, c := range controls() {
		line, err := AppendControl(nil, &c)
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, line)
	}
	for _, line := range lines {
		if why := f.check(line); why != "" {
			t.Errorf("%s\n%s", why, line)
		}
	}
}

// TestProtocolExamples checks the examples in docs/event-protocol.md against the schema, and that it mentions all
// names.
func TestProtocolExamples(t *testing.T) {
	doc, err := os.ReadFile("../../../docs/event-protocol.md")
	if err != nil {
		t.Fatal(err)
	}
	f, n := readSchema(t), 0
	text := strings.ReplaceAll(string(doc), ",\n   ", ",")
	for _, line := range regexp.MustCompile(`\{"t":"[^\n]*?\}($|[^\]},"])`).FindAllString(text, -1) {
		line = line[:strings.LastIndexByte(line, '}')+1]
		line = strings.ReplaceAll(line, "…", "1")
		line = strings.ReplaceAll(line, `"c":1,`, `"c":1,`)
		if !json.Valid([]byte(line)) {
			t.Errorf("invalid JSON: %s", line)
			continue
		}
		if why := f.check([]byte(line)); why != "" {
			t.Errorf("%s\n%s", why, line)
		}
		n++
	}
	if n < 15 {
		t.Errorf("found %d examples, want at least 15", n)
	}
	for kind := range f.names {
		if !bytes.Contains(doc, []byte("`"+kind+"`")) {
			t.Errorf("the description does not mention %q", kind)
		}
		for name := range f.names[kind] {
			if name != "t" && !bytes.Contains(doc, []byte("`"+name)) {
				t.Errorf("the description does not mention %q of %q", name, kind)
			}
		}
	}
}

// controls returns messages of all types with all members.
func controls() []Control {
	return []Control{
		{Type: Login, Token: "secret", Every: 1},
		{Type: Generate, Call: 1, Every: 1, Generation: Generation{
			Prompt: "a\xffb", IDs: []int32{1, 2}, Special: true, IgnoreEOS: true, Probe: true, Text: true, Picks: true, Group: "g",
			Label: "l", MaxTokens: 7, Top: 2, TopK: 40, Temperature: 0.5, TopP: 0.9, MinP: 0.1, RepeatPenalty: 1.1, Seed: 1 << 63,
		}},
		{Type: Generate, Every: 1},
		{Type: Cancel, Call: 3, Req: 17, Every: 1},
		{Type: Pause, Call: 4, Every: 1},
		{Type: Resume, Call: 5, Every: 1},
		{Type: Hooks, Call: 6, On: Measure{Stages: true, Picks: true}, Every: 1},
		{Type: Hooks, Call: 7, Every: 1},
		{Type: Sample, Call: 8, Every: 10},
	}
}
