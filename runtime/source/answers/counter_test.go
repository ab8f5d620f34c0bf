package answers

import (
	"slices"
	"strings"
	"testing"

	"github.com/llmtop/llmtop/profiler/event"
)

func TestPieces(t *testing.T) {
	for text, want := range map[string]int{
		"": 0, " ": 1, "w": 1, " w": 1, "a b c d": 4, "It's 2026!": 5, `{"city": "San Jose"}`: 7, "naïve": 1, "\n\n": 1,
		"今天天气很好": 3, "日": 1, "ok 今天": 2, "\xff\xfe": 1,
	} {
		if got := Pieces(text); got != want {
			t.Errorf("%q: %d, want %d", text, got, want)
		}
	}
}

// streamed adds messages 20 ms apart. Texts begin with "?" if they are reasoning. n has their token counts, if there are any.
func streamed(texts []string, n ...int) (c Counter) {
	for i, text := range texts {
		p := &Part{At: event.Time(i+1) * 20e6}
		if i < len(n) {
			p.Tokens = n[i]
		}
		if reasoning, ok := strings.CutPrefix(text, "?"); ok {
			p.Reasoning = Pieces(reasoning)
		} else {
			p.Answer = Pieces(text)
		}
		c.Add(p, 0)
	}
	return c
}

// TestLater checks which of a server's tokens were streamed after the first message.
func TestLater(t *testing.T) {
	words := func(n int, text string) []string { return slices.Repeat([]string{text}, n) }
	long := strings.Repeat(" w", 40)
	for name, c := range map[string]struct {
		of                   Counter
		generated, reasoning int
		want                 int // -1: unknown
	}{
		"one token per message":            {streamed(words(20, "w")), 20, 0, 19},
		"and one that ends the answer":     {streamed(words(20, "w")), 21, 0, 20},
		"no total":                         {streamed(words(20, "w")), 0, 0, 19},
		"hidden reasoning by details":      {streamed(words(32, "w")), 512, 480, 31},
		"hidden reasoning without details": {streamed(words(32, "w")), 512, 0, -1},
		"details that leave too many":      {streamed(words(32, "w")), 512, 100, -1},
		"streamed reasoning":               {streamed(append(words(20, "?w"), words(12, "w")...)), 32, 20, 31},
		"a summary of reasoning":           {streamed(append(words(4, "?w w"), words(30, "w")...)), 500, 470, -1},
		"several tokens per message":       {streamed(words(10, "a b c d")), 40, 0, 36},
		"a long first message":             {streamed(append([]string{long}, words(40, " w")...)), 80, 0, 40},
		"the same with counts":             {streamed(append([]string{long}, words(40, " w")...), append([]int{40}, slices.Repeat([]int{1}, 40)...)...), 80, 0, 40},
		"counts, then hidden tokens":       {streamed(words(20, "w"), slices.Repeat([]int{1}, 20)...), 400, 0, 19},
		"messages that are no tokens":      {streamed(words(36, "w")), 20, 0, -1},
	} {
		got, ok := c.of.Later(c.generated, c.reasoning)
		if !ok {
			got = -1
		}
		if got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}

// TestReasoning checks how many tokens are reasoning, and how many of the answer came after its first message.
func TestReasoning(t *testing.T) {
	words := func(n int, text string) []string { return slices.Repeat([]string{text}, n) }
	for name, c := range map[string]struct {
		of                   Counter
		generated, reasoning int
		count, answered      int // answered -1: unknown
	}{
		"one token per message":       {streamed(append(words(20, "?w"), words(12, "w")...)), 32, 20, 20, 0},
		"and tags around":             {streamed(append(words(20, "?w"), words(12, "w")...)), 37, 0, 0, 0},
		"no total":                    {streamed(append(words(20, "?w"), words(12, "w")...)), 0, 0, 0, 0},
		"several tokens per message":  {streamed(append(words(20, "?a b c"), words(12, "a b c")...)), 96, 60, 60, 33},
		"the same without details":    {streamed(append(words(20, "?a b c"), words(12, "a b c")...)), 96, 0, 0, -1},
		"a summary of it":             {streamed(append(words(4, "?w w"), words(30, "w")...)), 500, 470, 470, -1},
		"hidden":                      {streamed(words(12, "w")), 500, 488, 488, 0},
		"several tokens, with counts": {streamed(append(words(2, "?w"), words(3, "w")...), 4, 4, 4, 4, 4), 20, 8, 8, 0},
	} {
		n, answered, ok := c.of.Reasoning(c.generated, c.reasoning)
		if !ok {
			answered = -1
		}
		if n != c.count || answered != c.answered {
			t.Errorf("%s: %d tokens, %d later, want %d and %d", name, n, answered, c.count, c.answered)
		}
	}
}

// TestLaterOfOneRead checks that tokens that came in one read with the first ones are not later.
func TestLaterOfOneRead(t *testing.T) {
	var c Counter
	for i := range 60 {
		c.Add(&Part{At: event.Time((1 + i/20) * 200e6), Choice: i % 2, Answer: 1}, 0)
	}
	if n, ok := c.Later(60, 0); n != 40 || !ok {
		t.Errorf("%d, %v, want the 40 of the second and third read", n, ok)
	}
}

// TestTotals checks that reasoning that a server leaves out of the generated tokens is added.
func TestTotals(t *testing.T) {
	for name, c := range map[string]struct{ generated, reasoning, total, want count }{
		"reasoning is included":          {512, 480, 522, 512},
		"left out, by the total":         {32, 480, 522, 512},
		"left out, more than all others": {32, 480, 0, 512},
		"no total":                       {512, 480, 0, 512},
	} {
		m := Message{Prompt: 10}
		if m.count(c.generated, c.reasoning, c.total); m.Generated != int(c.want) || m.Reasoning != int(c.reasoning) {
			t.Errorf("%s: %d of which %d, want %d", name, m.Generated, m.Reasoning, c.want)
		}
	}
}

func TestMessagesBeforeTheAnswer(t *testing.T) {
	text := []Part{{Answer: 1}}
	loading, role, token := Message{Parts: text}, Message{Named: true}, Message{Parts: text, Named: true}
	for name, c := range map[string]struct {
		in     []Message
		end    Message
		counts int
	}{
		"loading, then the model":       {[]Message{loading, loading, loading, role, token, token}, Message{Done: true}, 2},
		"the model's first has text":    {[]Message{loading, token, token}, Message{Done: true}, 2},
		"none names a response":         {[]Message{loading, loading, {}}, Message{Done: true}, 2},
		"cancelled while it loads":      {[]Message{{Parts: []Part{{Reasoning: 1}}}, {Parts: []Part{{Reasoning: 1}}}}, Message{}, 0},
		"one without a name in between": {[]Message{token, loading, token}, Message{Done: true}, 3},
		"too many to hold":              {slices.Repeat([]Message{loading}, maxHeld+1), Message{}, maxHeld + 1},
	} {
		n := 0
		a := Answer{Token: func(*Part, int, int) { n++ }}
		for _, m := range append(c.in, c.end) {
			a.Add(&m)
		}
		if a.End(); n != c.counts {
			t.Errorf("%s: %d count, want %d", name, n, c.counts)
		}
	}
}
