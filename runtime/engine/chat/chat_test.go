package chat

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/llmtop/llmtop/runtime/engine/chat/jinja"
)

// source returns a template of testdata.
func source(t testing.TB, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", "templates", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// open returns a parsed template of testdata, with the time of the goldens.
func open(t testing.TB, name string) *Template {
	t.Helper()
	tmpl, err := New(source(t, name), "<s>", "</s>")
	if err != nil {
		t.Fatal(err)
	}
	tmpl.now = func() time.Time { return time.Date(2026, 3, 7, 9, 5, 2, 0, time.UTC) }
	return tmpl
}

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
		case got != c.Text:
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
		"":                         "the model has no chat template",
		" \n":                      "the model has no chat template",
		"{% for m in messages %}":  "read chat template: line 1: the template ends before {% endfor %}",
		"a\n{{ messages[0 }}":      "read chat template: line 2: ",
		strings.Repeat("x", 2<<20): "read chat template: it has 2097152 bytes, more than 1048576",
	} {
		if _, err := New(template, "", ""); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%.40q: got %v, want %q", template, err, want)
		}
	}
	if _, err := New("", "", ""); !errors.Is(err, ErrNoTemplate) {
		t.Errorf("got %v", err)
	}
}

func TestRenderIsBounded(t *testing.T) {
	for _, template := range []string{
		"{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}",
		"{% for i in range(10 ** 15) %}{% endfor %}",
		"{% for i in range(10000) %}{{ 'x' * 10000 }}{% endfor %}",
	} {
		tmpl, err := New(template, "", "")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tmpl.Render(nil, true); !errors.Is(err, jinja.ErrTooMuch) && !errors.Is(err, errSlow) {
			t.Errorf("%s: got %v", template, err)
		}
	}
}

func TestStartsWithBOS(t *testing.T) {
	with, without := open(t, "llama3.jinja"), open(t, "qwen2.jinja")
	for tmpl, want := range map[*Template]bool{with: true, without: false} {
		prompt, err := tmpl.Render([]Message{{User, "<s>"}}, true)
		if err != nil || tmpl.StartsWithBOS(prompt) != want {
			t.Errorf("%q: got %t, %v", prompt, !want, err)
		}
	}
}

func TestConversation(t *testing.T) {
	c := NewConversation(open(t, "qwen2.jinja"), "Be brief.")
	turn := func(role, text string) string { return "<|im_start|>" + role + "\n" + text + "<|im_end|>\n" }
	ask := func(question string, turns ...string) {
		t.Helper()
		want := turn(System, "Be brief.") + strings.Join(turns, "") + "<|im_start|>assistant\n"
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

// TestConversationFoldsInstructions: one template rejects a system message, another rejects everything.
func TestConversationFoldsInstructions(t *testing.T) {
	c := NewConversation(open(t, "gemma.jinja"), "Be brief.")
	got, err := c.Ask("Hi")
	if want := "<s><start_of_turn>user\nBe brief.\n\nHi<end_of_turn>\n<start_of_turn>model\n"; err != nil || got != want {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
	never, err := New("{{ raise_exception('never') }}", "", "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := NewConversation(never, "Be brief.").Ask("Hi"); err == nil || err.Error() != "apply chat template: line 1: never" {
		t.Errorf("got %v", err)
	}
}

func TestPlain(t *testing.T) {
	c := NewConversation(nil, "ignored")
	for range 2 {
		if got, err := c.Ask("Once upon"); err != nil || got != "Once upon" || !c.Plain() {
			t.Errorf("got %q, %v", got, err)
		}
		c.Answer(" a time")
	}
	if len(c.Messages()) != 0 {
		t.Errorf("it keeps %v", c.Messages())
	}
}

// FuzzTemplate searches for templates and messages that panic.
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
		if errors.Is(err, errBug) {
			t.Error(err)
		}
	})
}

// TestGuard uses a clock that panics, in place of a bug.
func TestGuard(t *testing.T) {
	tmpl := open(t, "qwen2.jinja")
	tmpl.now = func() time.Time { panic("no time") }
	if _, err := tmpl.Render(nil, true); !errors.Is(err, errBug) || !strings.HasSuffix(err.Error(), ": no time") {
		t.Errorf("got %v", err)
	}
}
