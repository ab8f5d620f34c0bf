package streamed

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
		if got := Pieces(text); got != want || Pieces([]byte(text)) != want {
			t.Errorf("%q: %d, want %d", text, got, want)
		}
	}
}

// play adds messages 20 ms apart. Texts begin with "?" if they are reasoning. n has their token counts, if there are any.
func play(texts []string, n ...int) (c Counter) {
	for i, text := range texts {
		p := Part{At: event.Time(i+1) * 20e6}
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
		of    Counter
		usage Usage
		want  int // -1: unknown
	}{
		"one token per message":            {play(words(20, "w")), Usage{20, 0}, 19},
		"and one that ends the answer":     {play(words(20, "w")), Usage{21, 0}, 20},
		"no total":                         {play(words(20, "w")), Usage{}, 19},
		"hidden reasoning by details":      {play(words(32, "w")), Usage{512, 480}, 31},
		"hidden reasoning left out":        {play(words(32, "w")), NewUsage(10, 32, 480, 522), 31},
		"hidden reasoning without details": {play(words(32, "w")), Usage{512, 0}, -1},
		"details that leave too many":      {play(words(32, "w")), Usage{512, 100}, -1},
		"streamed reasoning":               {play(append(words(20, "?w"), words(12, "w")...)), Usage{32, 20}, 31},
		"a summary of reasoning":           {play(append(words(4, "?w w"), words(30, "w")...)), Usage{500, 470}, -1},
		"several tokens per message":       {play(words(10, "a b c d")), Usage{40, 0}, 36},
		"a long first message":             {play(append([]string{long}, words(40, " w")...)), Usage{80, 0}, 40},
		"the same with counts":             {play(append([]string{long}, words(40, " w")...), append([]int{40}, slices.Repeat([]int{1}, 40)...)...), Usage{80, 0}, 40},
		"counts, then hidden tokens":       {play(words(20, "w"), slices.Repeat([]int{1}, 20)...), Usage{400, 0}, 19},
		"messages that are no tokens":      {play(words(36, "w")), Usage{20, 0}, -1},
	} {
		got, ok := c.of.Later(c.usage)
		if !ok {
			got = -1
		}
		if got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}

// TestLaterOfOneRead checks that tokens that came in one read with the first ones are not later.
func TestLaterOfOneRead(t *testing.T) {
	var c Counter
	for i := range 60 {
		c.Add(Part{At: event.Time((1 + i/20) * 200e6), Choice: i % 2, Answer: 1}, 0)
	}
	if n, ok := c.Later(Usage{60, 0}); n != 40 || !ok {
		t.Errorf("%d, %v, want the 40 of the second and third read", n, ok)
	}
}

func TestUnnamed(t *testing.T) {
	type message struct{ text, named bool }
	loading, role, token := message{true, false}, message{false, true}, message{true, true}
	for name, c := range map[string]struct {
		in     []message
		ended  bool
		counts int
	}{
		"loading, then the model":       {[]message{loading, loading, loading, role, token, token}, true, 2},
		"the model's first has text":    {[]message{loading, token, token}, true, 2},
		"none names a response":         {[]message{loading, loading, {false, false}}, true, 2},
		"cancelled while it loads":      {[]message{loading, loading}, false, 0},
		"one without a name in between": {[]message{token, loading, token}, true, 3},
		"too many to hold":              {slices.Repeat([]message{loading}, maxHeld+1), false, maxHeld + 1},
	} {
		n := 0
		u := Unnamed[message]{Count: func(message) { n++ }}
		for _, m := range c.in {
			u.Add(m, m.text, m.named)
		}
		if u.End(c.ended); n != c.counts {
			t.Errorf("%s: %d count, want %d", name, n, c.counts)
		}
	}
}
