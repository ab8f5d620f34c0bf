//go:build !nollama && (linux || darwin || windows) && (amd64 || arm64)

package llama

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/llmtop/llmtop/runtime/engine"
	"github.com/llmtop/llmtop/runtime/engine/native"
)

// libraries returns the folder of llama.cpp's libraries, or skips the test.
func libraries(tb testing.TB) string {
	tb.Helper()
	dir := os.Getenv("LLMTOP_LLAMA_DIR")
	if dir == "" {
		tb.Skip(`needs llama.cpp's libraries: run eval "$(scripts/peers.sh)" first, which installs them and sets LLMTOP_LLAMA_DIR`)
	}
	return dir
}

// demoFile writes the built-in model to a file.
func demoFile(tb testing.TB) string {
	tb.Helper()
	return filepath.Join("..", "native", "demo", native.DemoName)
}

// openDemo opens the built-in model, by default on one thread, or skips the test.
func openDemo(tb testing.TB, o Options) *Engine {
	tb.Helper()
	o.Model = demoFile(tb)
	return mustOpen(tb, o)
}

func mustOpen(tb testing.TB, o Options) *Engine {
	tb.Helper()
	o.Libraries, o.Threads = libraries(tb), orElse(o.Threads, 1)
	e, err := Open(o)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := e.Close(); err != nil {
			tb.Error(err)
		}
	})
	return e
}

// compute runs tokens through slot 0 in batches of at most chunk, and calls f with each position's logits and picks.
func compute(tb testing.TB, e engine.Engine, tokens []int32, chunk int, f func(pos int, logits []float32, picks []uint16)) {
	tb.Helper()
	e.Release(0)
	var b engine.Batch
	for from := 0; from < len(tokens); from += chunk {
		b.Rows = b.Rows[:0]
		for pos := from; pos < min(from+chunk, len(tokens)); pos++ {
			b.Rows = append(b.Rows, engine.Row{Token: tokens[pos], Pos: int32(pos), Prompt: true, Logits: true})
		}
		if err := e.Forward(&b); err != nil {
			tb.Fatal(err)
		}
		for i := range b.Rows {
			var picks []uint16
			if len(b.Picks) > 0 {
				picks = b.Picks[i]
			}
			f(from+i, b.Logits[i], picks)
		}
	}
}

func argmax(x []float32) int32 {
	best := 0
	for i, v := range x {
		if v > x[best] {
			best = i
		}
	}
	return int32(best)
}
