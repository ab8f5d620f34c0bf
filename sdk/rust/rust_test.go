// Package rust holds the tests of llmtop.rs, which is for engines in Rust.
package rust

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/event/wire"
	"github.com/llmtop/llmtop/sdk/c/harness"
)

// compile runs rustc, which must find nothing to warn of, or skips the test.
func compile(t testing.TB, args ...string) {
	t.Helper()
	if why := harness.Supported(); why != "" {
		t.Skip(why)
	}
	if _, err := exec.LookPath("rustc"); err != nil {
		t.Skipf("no compiler: %v", err)
	}
	args = append([]string{"--edition", "2021", "-D", "warnings"}, args...)
	if out, err := exec.Command("rustc", args...).CombinedOutput(); err != nil {
		t.Fatalf("rustc %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// build compiles a program.
func build(t testing.TB, source string) string {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "program")
	compile(t, "-O", source, "-o", binary)
	return binary
}

// check decodes lines as llmtop does.
func check() func([]byte) error {
	return func(line []byte) error {
		_, err := new(wire.Decoder).Decode(line, func(event.Event) {})
		return err
	}
}

func TestEngine(t *testing.T) {
	harness.Suite{Binary: build(t, "testdata/engine.rs"), Check: check()}.Run(t)
}
