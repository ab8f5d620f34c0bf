package cmd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime"
	"github.com/llmtop/llmtop/runtime/child"
)

// childSpec is what the process of an engine is told to run.
type childSpec struct {
	Engine    string  `json:"engine"`
	Libraries string  `json:"libraries"` // folder of llama.cpp's
	Model     string  `json:"model"`     // "": the built-in one
	Parallel  int     `json:"parallel"`
	Threads   int     `json:"threads"`
	Context   int     `json:"ctx"`
	Pace      float64 `json:"pace"`
	GPULayers int     `json:"gpu_layers"`
	Sample    string  `json:"expert_sample"`
	Ops       bool    `json:"ops"`
	Reuse     bool    `json:"reuse"` // what is kept of earlier prompts
}

// startChild starts the process of the engine.
func (o *runOptions) startChild(clock runtime.Clock) (*child.Process, error) {
	return child.Start(child.Options{Clock: clock, Engine: o.engine(), Spec: childSpec{
		Engine: o.chosen.name, Libraries: o.chosen.libraries, Model: o.model,
		Parallel: o.parallel, Threads: o.threads, Context: o.context, Pace: o.pace,
		GPULayers: o.choice.gpuLayers, Sample: o.choice.sample, Ops: o.choice.ops, Reuse: o.chat.template != nil,
	}})
}

// newChildCommand is the command of that process, which nobody else has a use for.
func newChildCommand() *cobra.Command {
	return &cobra.Command{
		Use: child.Command, Hidden: true, Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			err := child.Serve(os.Stdin, os.Stdout, prepareChild)
			reported, ok := errors.AsType[child.Reported](err)
			if !ok {
				return err
			}
			if words := reported.Error(); strings.Contains(words, "\n") { // with a stack, of which the parent was told the first line
				fmt.Fprintln(os.Stderr, words)
			}
			return outcomeError{code: exitCode(reported.Err)}
		},
	}
}

// prepareChild makes an engine and its scheduler of what the process was told.
func prepareChild(raw json.RawMessage) (child.Job, error) {
	var spec childSpec
	if err := json.Unmarshal(raw, &spec); err != nil {
		return child.Job{}, fmt.Errorf("read what to run: %w", err)
	}
	o := runOptions{model: spec.Model, chosen: chosen{name: spec.Engine, libraries: spec.Libraries}}
	o.parallel, o.threads, o.context, o.pace = spec.Parallel, spec.Threads, spec.Context, spec.Pace
	o.choice.gpuLayers, o.choice.sample, o.choice.ops = spec.GPULayers, spec.Sample, spec.Ops
	job := child.Job{Load: o.llamaLoader(), Options: o.schedulerOptions()}
	job.Options.Reuse = spec.Reuse
	if o.chosen.name == engineNative {
		load := o.loader()
		job.Load = func(ctx context.Context, report func(runtime.LoadStage), _ func(string)) (runtime.Engine, error) {
			return load(ctx, report)
		}
	}
	return job, nil
}

// lasting has an engine's process run and keeps the news of a crash back until the session ends, so that what was measured stays on the screen
// and comes into the report. What the user is to blame for is told at once.
func lasting(run func(context.Context, event.Sink) error) func(context.Context, event.Sink) error {
	return func(ctx context.Context, sink event.Sink) error {
		err := run(ctx, sink)
		switch ended := (*child.Ended)(nil); {
		case !errors.As(err, &ended):
		case ended.Mistake:
			return usageError{err}
		default:
			<-ctx.Done()
		}
		return err
	}
}

// crashed reports whether an error is that of an engine whose process has ended unasked, after it may have done a lot.
func crashed(err error) bool {
	ended, ok := errors.AsType[*child.Ended](err)
	return ok && !ended.Mistake
}
