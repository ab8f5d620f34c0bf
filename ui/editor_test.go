package ui

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	tea "charm.land/bubbletea/v2"

	"github.com/llmtop/llmtop/theme"
	"github.com/llmtop/llmtop/ui/input"
	"github.com/llmtop/llmtop/ui/view/viewtest"
)

// typeText types text key by key, as a terminal sends it.
func typeText(a *app, text string) {
	for _, r := range text {
		a.Update(tea.KeyPressMsg{Code: r, Text: string(r)})
	}
}

func TestPromptIsSent(t *testing.T) {
	a, k := withCalls(t)
	a.press("p")
	typeText(a, "In the q?beginning") // q and ? are text in the editor
	a.press("enter")
	if !slices.Equal(k.prompts, []input.Suggestion{{Text: "In the q?beginning"}}) {
		t.Errorf("sent %q", k.prompts)
	}
	if a.editor.Open {
		t.Error("the editor is still open after enter")
	}
	holds(t, a, "prompt sent")
	k.err = errors.New("prompt is longer than the context: 2 000 of 1 024 tokens")
	a.press("p")
	typeText(a, "x")
	a.press("enter")
	holds(t, a, "prompt is longer than the context")
}

func TestPromptIsSentSeveralTimes(t *testing.T) {
	a, k := withCalls(t)
	a.press("p")
	typeText(a, "x")
	a.press("ctrl+t", "ctrl+t")
	holds(t, a, "Prompt ×4")
	a.press("enter")
	holds(t, a, "prompt sent 4 times")
	if len(k.prompts) != 4 {
		t.Errorf("sent %q, want it 4 times", k.prompts)
	}
	k.err = errors.New("the queue is full")
	a.press("p")
	typeText(a, "x")
	if a.press("enter"); len(k.prompts) != 5 {
		t.Errorf("%d prompts in all, want 5: the editor opens with one", len(k.prompts))
	}
}

func TestEmptyPromptIsNotSent(t *testing.T) {
	a, k := withCalls(t)
	a.press("p", "enter", "space", "enter")
	if len(k.prompts) != 0 || !a.editor.Open {
		t.Errorf("sent %q", k.prompts)
	}
	a.press("esc")
	if a.editor.Open {
		t.Error("the editor is still open after esc")
	}
}

func TestPromptEditing(t *testing.T) {
	for _, c := range []struct {
		name, text, want string
		keys             []string
	}{
		{"backspace", "abc", "ab", []string{"backspace"}},
		{"delete at the end does nothing", "abc", "abc", []string{"delete"}},
		{"delete", "abc", "ab", []string{"left", "delete"}},
		{"insert in the middle", "ac", "abc", []string{"left", "b"}},
		{"home and end", "bc", "abcd", []string{"home", "a", "end", "d"}},
		{"emacs moves", "bc", "abcd", []string{"ctrl+a", "a", "ctrl+e", "d"}},
		{"kill to the start", "abc", "c", []string{"left", "ctrl+u"}},
		{"kill to the end", "abc", "a", []string{"home", "right", "ctrl+k"}},
		{"kill a word", "the first word ", "the first ", []string{"ctrl+w"}},
		{"left beyond the start", "a", "ba", []string{"left", "left", "left", "b"}},
		{"right beyond the end", "a", "ab", []string{"right", "right", "b"}},
		{"backspace beyond the start", "a", "", []string{"backspace", "backspace"}},
		{"unicode", "héllo 日本", "héllo 日", []string{"backspace"}},
		{"unicode in the middle", "日語", "日本語", []string{"left", "本"}},
		{"unknown keys add nothing", "a", "a", []string{"pgup", "f1"}},
	} {
		a, _ := withCalls(t)
		a.press("p")
		typeText(a, c.text)
		a.press(c.keys...)
		if got := a.editor.Text(); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
		checkFrame(t, a.View().Content, 120, 36)
	}
}

func TestPromptHistory(t *testing.T) {
	a, k := withCalls(t)
	for _, s := range []string{"one", "two", "two"} {
		a.press("p")
		typeText(a, s)
		a.press("enter")
	}
	if len(k.prompts) != 3 {
		t.Fatalf("sent %q", k.prompts)
	}
	a.press("p")
	typeText(a, "draft")
	for _, step := range []struct{ key, want string }{
		{"up", "two"}, {"up", "one"}, {"up", "one"}, {"down", "two"}, {"down", "draft"}, {"down", "draft"}, {"ctrl+p", "two"}, {"ctrl+n", "draft"},
	} {
		a.press(step.key)
		if got := a.editor.Text(); got != step.want {
			t.Errorf("%s shows %q, want %q", step.key, got, step.want)
		}
	}
}

func TestSuggestedPrompts(t *testing.T) {
	a, k := withCalls(t)
	a.press("p", "tab")
	first := a.editor.Text()
	a.press("tab")
	second := a.editor.Text()
	a.press("shift+tab")
	if first != builtIn[0].Text || second != builtIn[1].Text || a.editor.Text() != first {
		t.Errorf("tab shows %q, %q, and back %q", first, second, a.editor.Text())
	}
	holds(t, a, "Prompt · scripture")
	a.press("enter")
	if k.prompts[0] != builtIn[0] {
		t.Errorf("sent %q", k.prompts)
	}
	a.press("p", "tab", "x", "enter")
	if k.prompts[1].Label != "" {
		t.Error("an edited prompt keeps the label of the built-in one")
	}
}

func TestPaste(t *testing.T) {
	a, k := withCalls(t)
	a.Update(tea.PasteMsg{Content: "first line\r\nsecond\tline\rthird \x1b[31mred\x07"})
	if !a.editor.Open {
		t.Fatal("a paste does not open the editor")
	}
	holds(t, a, "first line↵second line↵third [31mred")
	checkFrame(t, a.View().Content, 120, 36)
	a.press("enter")
	if got, want := k.prompts[0].Text, "first line\nsecond\tline\nthird [31mred"; got != want {
		t.Errorf("sent %q, want %q", got, want)
	}
	a.Update(tea.PasteMsg{Content: strings.Repeat("日", 3*input.MaxPrompt)})
	if utf8.RuneCountInString(a.editor.Text()) != input.MaxPrompt {
		t.Errorf("the editor has %d characters", utf8.RuneCountInString(a.editor.Text()))
	}
	typeText(a, "more")
	if utf8.RuneCountInString(a.editor.Text()) != input.MaxPrompt {
		t.Errorf("the editor has %d characters", utf8.RuneCountInString(a.editor.Text()))
	}
	checkFrame(t, a.View().Content, 120, 36)
}

// The cursor stays visible at every position of a text with narrow and wide characters, at every width.
func TestCursorStaysVisible(t *testing.T) {
	a := open(viewtest.LiveSnapshot(), theme.NoColour, false, 80, 24)
	a.press("p")
	typeText(a, strings.Repeat("a日é", 30))
	for w := 1; w < 100; w += 7 {
		a.Update(tea.WindowSizeMsg{Width: w, Height: 24})
		for range 95 {
			a.press("left")
			frame := a.View().Content
			checkFrame(t, frame, w, 24)
			if row := strings.Split(frame, "\n")[22]; w > 6 && !strings.Contains(row, "\x1b[7m") {
				t.Fatalf("%d wide: no cursor in %q", w, row)
			}
		}
		if a.press("x", "backspace", "x"); !strings.HasPrefix(a.editor.Text(), "xa") {
			t.Fatal("left does not reach the start")
		}
		a.press("backspace")
		a.press("end")
	}
}
