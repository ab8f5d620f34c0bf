package local

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/llmtop/llmtop/cmd/console"
	"github.com/llmtop/llmtop/cmd/exit"
	"github.com/llmtop/llmtop/cmd/version"
	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime/engine"
	"github.com/llmtop/llmtop/runtime/engine/child"
	"github.com/llmtop/llmtop/runtime/engine/llama"
	"github.com/llmtop/llmtop/runtime/engine/llama/library"
	"github.com/llmtop/llmtop/runtime/engine/native"
)

// spec says what to load, in this process or in a child process.
type spec struct {
	EngineSettings
	Engine    string `json:"engine"`
	Libraries string `json:"libraries"` // folder of llama.cpp
	Model     string `json:"model"`     // "": built-in
	Reuse     bool   `json:"reuse"`     // reuse the KV cache of earlier prompts
}

// info returns the introduction of the engine before it is loaded.
func (s *spec) info() event.EngineInfo {
	if s.Engine == engineLlama {
		return event.EngineInfo{Name: "llama.cpp", Caps: event.CapSample}
	}
	return event.EngineInfo{Name: "native", Version: version.String()}
}

// options returns the options of the scheduler.
func (s *spec) options(clock engine.Clock) engine.Options {
	hooks, _ := Hooks(s.Sample, s.Ops) // CheckEngine validated it
	return engine.Options{Clock: clock, Sampler: native.NewSampler, Pace: s.Pace, Engine: s.info(), Hooks: hooks, Reuse: s.Reuse}
}

// scheduler returns the scheduler of a native engine in this process.
func (s *spec) scheduler(clock engine.Clock) *engine.Scheduler {
	return engine.New(s.loadNative, s.options(clock))
}

// PrepareChild returns the job of the child process for which Start wrote raw.
func PrepareChild(raw json.RawMessage) (child.Job, error) {
	var s spec
	if err := json.Unmarshal(raw, &s); err != nil {
		return child.Job{}, fmt.Errorf("read engine specification: %w", err)
	}
	job := child.Job{Load: s.loadLlama, Options: s.options(engine.Clock{})}
	if s.Engine == engineNative {
		job.Load = func(ctx context.Context, report func(engine.LoadStage), _ func(string)) (engine.Engine, error) {
			return s.loadNative(ctx, report)
		}
	}
	return job, nil
}

// loadNative opens the named model or the built-in one. Errors of the model file are user errors.
func (s *spec) loadNative(_ context.Context, report func(engine.LoadStage)) (engine.Engine, error) {
	opt := native.Options{Context: s.Context, Slots: s.Parallel, Threads: s.Threads, Report: report}
	var engine *native.Engine
	var err error
	if s.Model == "" {
		engine, err = native.OpenDemo(opt)
	} else {
		engine, err = native.Open(s.Model, opt)
	}
	if err != nil {
		return nil, exit.Usage(err)
	}
	return engine, nil
}

// loadReportInterval is the interval between reports of the load progress.
const loadReportInterval = 100 * time.Millisecond

// loadLlama loads the model with llama.cpp. It runs in the process of the engine, whose standard error is the log of
// the engine.
func (s *spec) loadLlama(ctx context.Context, report func(engine.LoadStage), loading func(string)) (engine.Engine, error) {
	var reported time.Time
	engine, err := llama.Open(llama.Options{
		Model: s.Model, Libraries: s.Libraries, Slots: s.Parallel, Context: s.Context, Threads: s.Threads,
		GPULayers: s.llamaLayers(), Report: report,
		Progress: func(share float64) bool {
			if now := time.Now(); now.Sub(reported) >= loadReportInterval {
				reported = now
				loading(fmt.Sprintf("%.0f %% of the weights", 100*share))
			}
			return ctx.Err() == nil
		},
		Log:   func(line string) { fmt.Fprintln(console.Err, line) },
		Fatal: func(line string) { child.LastWords(trimSourceFolder(line)) },
	})
	switch {
	case errors.Is(err, llama.ErrLoadEnded):
		return nil, ctx.Err()
	case err != nil:
		return nil, exit.Usage(err)
	}
	return engine, nil
}

// llamaLayers returns the number of GPU layers for llama.Options, where 0 is all and -1 none.
func (s *spec) llamaLayers() int {
	switch s.GPULayers {
	case -1:
		return 0
	case 0:
		return -1
	}
	return s.GPULayers
}

// LlamaLibraries returns the llama.cpp libraries on this machine. A build that cannot load libraries marks each as
// unusable.
func LlamaLibraries() []library.Candidate {
	found := library.Here().Find()
	for i := range found {
		if !llama.Built && found[i].Usable() {
			found[i].Why = "this build of llmtop cannot load libraries"
		}
	}
	return found
}

// trimSourceFolder shortens FILE:LINE: WHAT to the base name of FILE, because the folder of the build is useless here.
func trimSourceFolder(words string) string {
	at, what, ok := strings.Cut(words, ": ")
	if i := strings.LastIndexAny(at, `/\`); ok && i >= 0 {
		return at[i+1:] + ": " + what
	}
	return words
}
