package local

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/llmtop/llmtop/cmd/exit"
	"github.com/llmtop/llmtop/cmd/local/fixture"
	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime/engine"
)

// promptLog keeps the prompts of queued requests, and their outcomes.
type promptLog struct {
	mu       sync.Mutex
	prompts  []string
	outcomes []event.Outcome
}

// Emit implements event.Sink.
func (l *promptLog) Emit(e event.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch p := e.Data.(type) {
	case *event.Request:
		l.prompts = append(l.prompts, p.Prompt)
	case *event.Outcome:
		l.outcomes = append(l.outcomes, *p)
	}
}

// talker runs the native engine on a model, as llmtop run does.
func talker(t *testing.T, set map[string]any) (*Run, *engine.Scheduler, *promptLog) {
	t.Helper()
	o := &Run{Model: fixture.Instruct(t, set)}
	o.Tokens, o.Seed = 12, 3
	o.chat.begin(o.Model, false)
	native := spec{EngineSettings: EngineSettings{Threads: 1, Parallel: 1, Sample: "off"}, Engine: engineNative, Model: o.Model, Reuse: o.chat.template != nil}
	log, s := &promptLog{}, native.scheduler(engine.NewClock())
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- s.Run(ctx, log) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return o, s, log
}

// TestConversation checks that earlier turns come before the next question and are taken from the cache.
func TestConversation(t *testing.T) {
	for _, bos := range []bool{false, true} { // whether the tokenizer adds the BOS that the template contains
		o, s, log := talker(t, map[string]any{"tokenizer.chat_template": fixture.Template, "tokenizer.ggml.add_bos_token": bos})
		conversation := o.chat.runner(s, func(string) {})
		ask := func(text string) string {
			t.Helper()
			h, err := conversation.Submit(o.Request(text, ""))
			if err != nil {
				t.Fatal(err)
			}
			return h.Result().Text
		}
		first := ask("Who are you?")
		second := ask("And then?")
		ask("/new Where is the whale?")
		want := []string{"<|endoftext|>user: Who are you?\nassistant: "}
		want = append(want, want[0]+first+"<|endoftext|>user: And then?\nassistant: ")
		want = append(want, "<|endoftext|>user: Where is the whale?\nassistant: ")
		if strings.Join(log.prompts, "|") != strings.Join(want, "|") {
			t.Errorf("prompts are\n%q, want\n%q; the second answer is %q", log.prompts, want, second)
		}
		// At the start of the answer, text may be tokenized differently the second time.
		if r := log.outcomes[1]; r.Cached < log.outcomes[0].Prompt-1 || r.Cached >= r.Prompt {
			t.Errorf("%[2]d of %[1]d prompt tokens are cached, the first turn has %[3]d", r.Prompt, r.Cached, log.outcomes[0].Prompt)
		}
		ids, err := s.Encode(t.Context(), "user: Who are you?\nassistant: ")
		if err != nil {
			t.Fatal(err)
		}
		if n := len(ids); !bos && log.outcomes[0].Prompt != n+1 || bos && log.outcomes[0].Prompt != n {
			t.Errorf("BOS %v: the first prompt has %d tokens, its text %d", bos, log.outcomes[0].Prompt, n)
		}
	}
}

// TestConversationExceedsContext checks that the oldest turns are dropped with a note, and that the remaining ones are
// taken from the cache.
func TestConversationExceedsContext(t *testing.T) {
	o, s, log := talker(t, map[string]any{"tokenizer.chat_template": fixture.Template, "qwen3moe.context_length": uint32(96)})
	var notes []string
	conversation := o.chat.runner(s, func(words string) { notes = append(notes, words) })
	ask := func(text string) {
		t.Helper()
		h, err := conversation.Submit(o.Request(text, ""))
		if err != nil {
			t.Fatal(err)
		}
		if r := h.Result(); r.State != event.StateFinished || r.Reason != "length" && r.Reason != "stop" {
			t.Fatalf("%q: %+v", text, r)
		}
	}
	for i := range 12 {
		ask(fmt.Sprintf("Question %d: where is the whale?", i))
	}
	if len(notes) < 2 || !strings.Contains(notes[0], "omitted: the conversation exceeds the context of 96 tokens") {
		t.Errorf("notes %q", notes)
	}
	last, cached := log.prompts[len(log.prompts)-1], 0
	for _, o := range log.outcomes {
		if o.Prompt+12 > 96 {
			t.Errorf("a prompt of %d tokens leaves no room for the answer", o.Prompt)
		}
		if o.Cached > o.Prompt/2 {
			cached++
		}
	}
	if strings.Contains(last, "Question 0:") || !strings.Contains(last, "Question 11:") || !strings.Contains(last, "Question 10:") {
		t.Errorf("the last prompt is %q", last)
	}
	if cached < 4 {
		t.Errorf("%d of %d prompts were mostly cached", cached, len(log.outcomes))
	}
	h, err := conversation.Submit(o.Request(strings.Repeat("Where is the whale? ", 60), ""))
	if err != nil {
		t.Fatal(err)
	}
	if r := h.Result(); !errors.Is(r.Err, engine.ErrPromptTooLong) {
		t.Errorf("a question that does not fit by itself: %+v", r)
	}
	ask("And now?")
}

// TestOneQuestionAtATime checks that a question during an answer is refused, and so is an empty one.
func TestOneQuestionAtATime(t *testing.T) {
	o, s, _ := talker(t, map[string]any{"tokenizer.chat_template": fixture.Template})
	conversation := o.chat.runner(s, func(string) {})
	s.Pause()
	h, err := conversation.Submit(o.Request("Who are you?", ""))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conversation.Submit(o.Request("And then?", "")); err == nil || !strings.Contains(err.Error(), "still being answered") {
		t.Errorf("a second question at a time: %v", err)
	}
	h.Cancel()
	<-h.Done()
	if _, err := conversation.Submit(o.Request("/new", "")); err == nil || !strings.Contains(err.Error(), "after /new") {
		t.Errorf("no question: %v", err)
	}
	h, err = conversation.Submit(o.Request("And then?", ""))
	if err != nil {
		t.Fatal(err)
	}
	s.Resume()
	if r := h.Result(); r.State != event.StateFinished {
		t.Errorf("%+v", r)
	}
}

// TestPromptMode checks the prompt mode in the header.
func TestPromptMode(t *testing.T) {
	notes := filepath.Join(t.TempDir(), "notes.gguf")
	if err := os.WriteFile(notes, []byte("GGUF and nothing else"), 0o600); err != nil {
		t.Fatal(err)
	}
	template := func(s string) string { return fixture.Instruct(t, map[string]any{"tokenizer.chat_template": s}) }
	for _, c := range []struct {
		model string
		raw   bool
		want  string
	}{
		{"", false, ""},
		{template(fixture.Template), false, "chat"},
		{template(fixture.Template), true, "plain (--raw)"},
		{ours(t), false, "plain"},
		{template("{% if %}"), false, "plain: read chat template: "},
		{notes, false, "plain"},
	} {
		var got chatPrompts
		got.begin(c.model, c.raw)
		if !strings.HasPrefix(got.mode, c.want) || (got.template != nil) != (c.want == "chat") || c.want == "" && got.mode != "" {
			t.Errorf("%s, raw %v: %q", c.model, c.raw, got.mode)
		}
	}
	refuses := chatPrompts{}
	refuses.begin(template("{{ raise_exception('not today') }}"), false)
	if err := refuses.applyTemplate([]engine.Request{{Text: "x"}}); exit.Code(err) != exit.CodeUsage || !strings.Contains(err.Error(), "not today") {
		t.Errorf("a template that refuses: %v", err)
	}
}
