package cmd

import (
	"path/filepath"
	"strings"
	"testing"
)

func TestResidentRefuses(t *testing.T) {
	for want, args := range map[string][]string{
		"needs one model file": nil,
		"open model":           {filepath.Join(t.TempDir(), "missing.gguf")},
		"is not a GGUF file":   {"resident_linux_test.go"},
	} {
		if _, _, err := llmtop(t, append([]string{"experts", "resident"}, args...)...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", args, err, want)
		}
	}
}
