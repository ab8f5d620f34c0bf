package cmd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/llmtop/llmtop/runtime"
	"github.com/llmtop/llmtop/runtime/child"
	"github.com/llmtop/llmtop/runtime/llama"
	"github.com/llmtop/llmtop/runtime/llama/library"
)

// tellEvery is how often is told how far a load has come.
const tellEvery = 100 * time.Millisecond

// llamaLoader loads the model with llama.cpp. It is for the process of the engine, whose standard error is the engine's log.
func (o *runOptions) llamaLoader() child.Load {
	return func(ctx context.Context, report func(runtime.LoadStage), loading func(string)) (runtime.Engine, error) {
		var told time.Time
		engine, err := llama.Open(llama.Options{
			Model: o.model, Libraries: o.chosen.libraries, Slots: o.parallel, Context: o.context, Threads: o.threads,
			GPULayers: o.choice.layers(), Report: report,
			Progress: func(share float64) bool {
				if now := time.Now(); now.Sub(told) >= tellEvery {
					told = now
					loading(fmt.Sprintf("%.0f %% of the weights", 100*share))
				}
				return ctx.Err() == nil
			},
			Log: func(level llama.LogLevel, line string) {
				if level >= llama.LogInfo {
					fmt.Fprintln(os.Stderr, line)
				}
			},
			Fatal: func(line string) { child.LastWords(withoutFolder(line)) },
		})
		switch {
		case errors.Is(err, llama.ErrLoadEnded):
			return nil, ctx.Err()
		case err != nil:
			return nil, usageError{err}
		}
		return engine, nil
	}
}

// llamaLibraries are those of llama.cpp on this machine. A program that can load none says so of each.
func llamaLibraries() []library.Candidate {
	found := library.Here().Find()
	for i := range found {
		if !llama.Built && found[i].Usable() {
			found[i].Why = "this build of llmtop cannot load libraries"
		}
	}
	return found
}

// withoutFolder shortens words of the form FILE:LINE: WHAT: where somebody has once compiled the file is of no use to anybody.
func withoutFolder(words string) string {
	at, what, ok := strings.Cut(words, ": ")
	if i := strings.LastIndexAny(at, `/\`); ok && i >= 0 {
		return at[i+1:] + ": " + what
	}
	return words
}

// layers are those on a GPU, in the words of the engine's options.
func (c *choice) layers() int {
	switch c.gpuLayers {
	case -1:
		return 0
	case 0:
		return -1
	}
	return c.gpuLayers
}
