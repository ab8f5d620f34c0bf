package input

import (
	"strings"
	"testing"
)

func TestHistoryIsBounded(t *testing.T) {
	var e Editor
	for i := range 2 * maxHistory {
		e.Set(strings.Repeat("x", i+1), "")
		e.Submit()
		e.Submit() // the same prompt again is one entry
	}
	if len(e.history) != maxHistory {
		t.Errorf("the history has %d prompts", len(e.history))
	}
}
