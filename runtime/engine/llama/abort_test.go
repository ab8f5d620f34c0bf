//go:build !nollama && (linux || darwin || windows) && (amd64 || arm64)

package llama

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/ebitengine/purego"

	llamacpp "github.com/llmtop/llmtop/runtime/engine/llama/library"
)

// TestAbort makes the library abort a process: the message reaches Options.Fatal, which may exit in its own way.
func TestAbort(t *testing.T) {
	dir := libraries(t)
	const mark = "LLMTOP_TEST_ABORT"
	if os.Getenv(mark) != "" {
		e := mustOpen(t, Options{Model: demoFile(t), Context: 64, Fatal: func(line string) {
			fmt.Printf("last words: %s\n", line)
			os.Exit(7)
		}})
		abortIn(t, dir)
		e.Release(0)
		t.Fatal("the library did not abort")
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestAbort$")
	cmd.Env = append(os.Environ(), mark+"=1")
	out, err := cmd.Output()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 7 || !strings.Contains(string(out), "last words: ") || !strings.Contains(string(out), "give up") {
		t.Errorf("ended with %v and printed %q", err, out)
	}
}

// abortIn makes the library abort.
func abortIn(t *testing.T, dir string) {
	found, err := llamacpp.Look(dir, llamacpp.Named)
	if err != nil {
		t.Fatal(err)
	}
	lib, err := dlopen(found.Base)
	if err != nil {
		t.Fatal(err)
	}
	address, err := dlsym(lib, "ggml_abort")
	if err != nil {
		t.Fatal(err)
	}
	var abort func(file string, line int32, format string)
	purego.RegisterFunc(&abort, address)
	abort("somewhere.c", 12, "give up")
}
