package metric

import (
	"testing"

	"github.com/llmtop/llmtop/profiler/event"
)

// TestChoices checks that each choice has its own previous token.
func TestChoices(t *testing.T) {
	var c Choices
	var all Choice
	for i, token := range []struct {
		choice   uint16
		at, last event.Time
	}{
		{0, 10, 0}, {0, 14, 10}, {1, 15, 0}, {0, 18, 14}, {3, 20, 0}, {1, 25, 15}, {maxChoices, 30, 0}, {0, 31, 18},
	} {
		if last := c.Add(token.choice, token.at, i+1, all); last != token.last {
			t.Errorf("token %d: the previous one came at %d, want %d", i, last, token.last)
		}
		all.Add(token.at, i+1)
	}
	if ns, first := c.Span(); len(c) != 4 || ns != 21+10 || first != 1+3+5 {
		t.Errorf("%d choices, %d ns, %d tokens at first", len(c), ns, first)
	}
}
