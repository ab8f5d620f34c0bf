package local

import (
	"os"
	"slices"
	"testing"

	"github.com/llmtop/llmtop/runtime/engine/chat"
)

// TestMain is also the process that renders chat templates.
func TestMain(m *testing.M) {
	if slices.Equal(os.Args[1:], []string{chat.Command}) {
		if chat.Serve(os.Stdin, os.Stdout) != nil {
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}
