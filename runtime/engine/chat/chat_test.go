package chat

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

// TestMain is also the process that renders.
func TestMain(m *testing.M) {
	if slices.Equal(os.Args[1:], []string{Command}) {
		if err := Serve(os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

// source returns a template of testdata.
func source(t testing.TB, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", "templates", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// open returns a template of testdata.
func open(t testing.TB, name string) *Template {
	t.Helper()
	tmpl, err := New(source(t, name), "<s>", "</s>")
	if err != nil {
		t.Fatal(err)
	}
	return tmpl
}

// dates are those that templates write of today.
var dates = regexp.MustCompile(`Today Date: \d\d [A-Z][a-z]{2} \d{4}`)

// TestGoldens compares with the results of transformers (Python's jinja2) for templates of well-known models.
func TestGoldens(t *testing.T) {
	data, err := os.ReadFile("testdata/goldens.json")
	if err != nil {
		t.Fatal(err)
	}
	var goldens struct {
		Conversations map[string][]Message
		Cases         []struct {
			Template, Conversation, Text, Why string
			GenerationPrompt                  bool `json:"generation_prompt"`
			Error                             bool
		}
	}
	if err := json.Unmarshal(data, &goldens); err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, c := range goldens.Cases {
		seen[c.Template] = true
		got, err := open(t, c.Template).Render(goldens.Conversations[c.Conversation], c.GenerationPrompt)
		switch {
		case c.Error != (err != nil):
			t.Errorf("%s, %s: got %v, want an error: %t %s", c.Template, c.Conversation, err, c.Error, c.Why)
		case dates.ReplaceAllString(got, "") != dates.ReplaceAllString(c.Text, ""):
			t.Errorf("%s, %s\n got  %q\n want %q", c.Template, c.Conversation, got, c.Text)
		}
		if words, raised := strings.CutPrefix(c.Why, "TemplateError: "); raised && !strings.Contains(err.Error(), words) {
			t.Errorf("%s, %s: the error %q does not contain %q", c.Template, c.Conversation, err, words)
		}
	}
	if len(seen) < 10 {
		t.Errorf("the goldens cover only %d templates", len(seen))
	}
}

func TestNewRefuses(t *testing.T) {
	for template, want := range map[string]string{
		"":                        "the model has no chat template",
		" \n":                     "the model has no chat template",
		"{% for m in messages %}": "read chat template: parse: ",
		"a\n{{ messages[0 }}":     "read chat template: parse: ",
		"{{ 'a' | " + strings.Repeat("x", 500_000) + " }}": "read chat template: unknown filter ",
		"{{ [].pop() }}":           "read chat template: pop from empty list",
		strings.Repeat("x", 2<<20): "read chat template: it has 2097152 bytes, more than 1048576",
	} {
		if _, err := New(template, "", ""); err == nil || !strings.HasPrefix(err.Error(), want) || len(err.Error()) > 1000 || strings.Contains(err.Error(), "\n") {
			t.Errorf("%.40q: got %.200v, want %q", template, err, want)
		}
	}
	if _, err := New("", "", ""); !errors.Is(err, ErrNoTemplate) {
		t.Errorf("got %v", err)
	}
}

// TestNewIsBounded reads templates that loop, recurse or grow without end.
func TestNewIsBounded(t *testing.T) {
	for name, template := range map[string]string{
		"endless macro":    "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}",
		"branching macros": "{% macro f(n) %}{% if n %}{{ f(n - 1) }}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(60) }}",
		"endless range":    "{% for i in range(1000000000000) %}{% endfor %}",
		"loops in loops":   "{% for a in range(10000) %}{% for b in range(10000) %}{% for c in range(10000) %}{% endfor %}{% endfor %}{% endfor %}",
		"endless output":   "{% for i in range(100000) %}{% for j in range(1000) %}twenty bytes of text{% endfor %}{% endfor %}",
		"doubling text":    "{% set ns = namespace(s='a') %}{% for i in range(64) %}{% set ns.s = ns.s ~ ns.s %}{% endfor %}",
		"doubling lists":   "{% set ns = namespace(s=[1]) %}{% for i in range(64) %}{% set ns.s = ns.s + ns.s %}{% endfor %}",
		"many parentheses": "{{ " + strings.Repeat("(", 500000) + "1" + strings.Repeat(")", 500000) + " }}",
		"many conditions":  "{% for i in range(1000000) %}" + strings.Repeat("{% if 1 %}", 40000) + strings.Repeat("{% endif %}", 40000) + "{% endfor %}",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := New(template, "", ""); !errors.Is(err, errSlow) && !errors.Is(err, errLarge) {
				t.Error(err)
			}
		})
	}
}

func TestConversation(t *testing.T) {
	c := NewConversation(open(t, "qwen2.jinja"))
	turn := func(role, text string) string { return "<|im_start|>" + role + "\n" + text + "<|im_end|>\n" }
	ask := func(question string, turns ...string) {
		t.Helper()
		want := turn("system", "You are a helpful assistant.") + strings.Join(turns, "") + "<|im_start|>assistant\n"
		if got, err := c.Ask(question); err != nil || got != want {
			t.Errorf("got  %q, %v\nwant %q", got, err, want)
		}
	}
	ask("Hi", turn(User, "Hi"))
	ask("Hello", turn(User, "Hello")) // the first question had no answer
	c.Answer("Yes?")
	c.Answer("to nothing")
	ask("Why?", turn(User, "Hello"), turn(Assistant, "Yes?"), turn(User, "Why?"))
	if got := c.Messages(); !slices.Equal(got, []Message{{User, "Hello"}, {Assistant, "Yes?"}}) {
		t.Errorf("got %v", got)
	}
	c.Reset()
	ask("Again", turn(User, "Again"))
}

// TestTextIsExact: bytes that are not UTF-8 reach the prompt as they are, and the template's last newline does not.
func TestTextIsExact(t *testing.T) {
	tmpl, err := New("{% for m in messages %}{{ m.content }}{% endfor %}\n", "", "")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := tmpl.Render([]Message{{User, "a\xff\x80b"}}, true); err != nil || got != "a\xff\x80b" {
		t.Errorf("got %q, %v", got, err)
	}
}

// FuzzTemplate searches for templates and messages whose process fails in a way that has no reason.
func FuzzTemplate(f *testing.F) {
	all, err := filepath.Glob("testdata/templates/*.jinja")
	if err != nil || len(all) == 0 {
		f.Fatalf("found %v, %v", all, err)
	}
	for _, path := range all {
		f.Add(source(f, filepath.Base(path)), User, "Hi")
	}
	f.Fuzz(func(t *testing.T, template, role, content string) {
		tmpl, err := New(template, "<s>", "</s>")
		if err == nil {
			_, err = tmpl.Render([]Message{{role, content}, {Assistant, content}}, true)
		}
		if err != nil && (strings.Contains(err.Error(), "\n") || strings.Contains(err.Error(), "process failed")) {
			t.Error(err)
		}
	})
}
