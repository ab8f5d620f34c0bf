package cmd

import (
	"os"
	"slices"
	"testing"

	"github.com/llmtop/llmtop/runtime/engine/chat"
)

func TestMain(m *testing.M) {
	if slices.Equal(os.Args[1:], []string{chat.Command}) { // a test in this process renders a template
		Main()
		return
	}
	os.Exit(m.Run())
}
