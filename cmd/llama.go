package cmd

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/llmtop/llmtop/runtime/engine"
	"github.com/llmtop/llmtop/runtime/engine/child"
	"github.com/llmtop/llmtop/runtime/engine/llama"
	"github.com/llmtop/llmtop/runtime/engine/llama/library"
)

// loadReportInterval is the interval between reports of the load progress.
const loadReportInterval = 100 * time.Millisecond

// llamaLoader loads the model with llama.cpp. It runs in the process of the engine, whose standard error is the log of
// the engine.
func (o *runOptions) llamaLoader() child.Load {
	return func(ctx context.Context, report func(engine.LoadStage), loading func(string)) (engine.Engine, error) {
		var reported time.Time
		engine, err := llama.Open(llama.Options{
			Model: o.model, Libraries: o.chosen.libraries, Slots: o.parallel, Context: o.context, Threads: o.threads,
			GPULayers: o.choice.layers(), Report: report,
			Progress: func(share float64) bool {
				if now := time.Now(); now.Sub(reported) >= loadReportInterval {
					reported = now
					loading(fmt.Sprintf("%.0f %% of the weights", 100*share))
				}
				return ctx.Err() == nil
			},
			Log: func(level llama.LogLevel, line string) {
				if level >= llama.LogInfo {
					fmt.Fprintln(consoleErr, line)
				}
			},
			Fatal: func(line string) { child.LastWords(trimSourceFolder(line)) },
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

// llamaLibraries returns the llama.cpp libraries on this machine. A build that cannot load libraries marks each as
// unusable.
func llamaLibraries() []library.Candidate {
	found := library.Here().Find()
	for i := range found {
		if !llama.Built && found[i].Usable() {
			found[i].Why = "this build of llmtop cannot load libraries"
		}
	}
	return found
}

// trimSourceFolder shortens FILE:LINE: WHAT to the base name of FILE: the folder in which somebody compiled it is of no
// use.
func trimSourceFolder(words string) string {
	at, what, ok := strings.Cut(words, ": ")
	if i := strings.LastIndexAny(at, `/\`); ok && i >= 0 {
		return at[i+1:] + ": " + what
	}
	return words
}

// layers returns the number of GPU layers for the options of the engine, where 0 is all and -1 none.
func (c *choice) layers() int {
	switch c.gpuLayers {
	case -1:
		return 0
	case 0:
		return -1
	}
	return c.gpuLayers
}
