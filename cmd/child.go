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
	"github.com/llmtop/llmtop/runtime/engine"
	"github.com/llmtop/llmtop/runtime/engine/child"
)

// childSpec is the specification of an engine that runs in a child process.
type childSpec struct {
	Engine    string  `json:"engine"`
	Libraries string  `json:"libraries"` // folder of llama.cpp
	Model     string  `json:"model"`     // "": built-in
	Parallel  int     `json:"parallel"`
	Threads   int     `json:"threads"`
	Context   int     `json:"ctx"`
	Pace      float64 `json:"pace"`
	GPULayers int     `json:"gpu_layers"`
	Sample    string  `json:"expert_sample"`
	Ops       bool    `json:"ops"`
	Reuse     bool    `json:"reuse"` // reuse the KV cache of earlier prompts
}

// startChild starts the child process of the engine.
func (o *runOptions) startChild(clock engine.Clock) (*child.Process, error) {
	return child.Start(child.Options{Clock: clock, Engine: o.engine(), Spec: childSpec{
		Engine: o.chosen.name, Libraries: o.chosen.libraries, Model: o.model,
		Parallel: o.parallel, Threads: o.threads, Context: o.context, Pace: o.pace,
		GPULayers: o.choice.gpuLayers, Sample: o.choice.sample, Ops: o.choice.ops, Reuse: o.chat.template != nil,
	}})
}

// newChildCommand returns the hidden command that runs in the child process.
func newChildCommand() *cobra.Command {
	return &cobra.Command{
		Use: child.Command, Hidden: true, Args: refuseArgs,
		RunE: func(*cobra.Command, []string) error {
			err := child.Serve(os.Stdin, rawOut, prepareChild)
			reported, ok := errors.AsType[child.Reported](err)
			if !ok {
				return err
			}
			if words := reported.Error(); strings.Contains(words, "\n") { // has a stack; the parent got its first line
				fmt.Fprintln(consoleErr, words)
			}
			return outcomeError{code: exitCode(reported.Err)}
		},
	}
}

// prepareChild returns the engine and the scheduler options of a childSpec.
func prepareChild(raw json.RawMessage) (child.Job, error) {
	var spec childSpec
	if err := json.Unmarshal(raw, &spec); err != nil {
		return child.Job{}, fmt.Errorf("read engine specification: %w", err)
	}
	o := runOptions{model: spec.Model, chosen: chosen{name: spec.Engine, libraries: spec.Libraries}}
	o.parallel, o.threads, o.context, o.pace = spec.Parallel, spec.Threads, spec.Context, spec.Pace
	o.choice.gpuLayers, o.choice.sample, o.choice.ops = spec.GPULayers, spec.Sample, spec.Ops
	job := child.Job{Load: o.llamaLoader(), Options: o.schedulerOptions()}
	job.Options.Reuse = spec.Reuse
	if o.chosen.name == engineNative {
		load := o.loader()
		job.Load = func(ctx context.Context, report func(engine.LoadStage), _ func(string)) (engine.Engine, error) {
			return load(ctx, report)
		}
	}
	return job, nil
}

// deferCrash runs the process of an engine and holds back the error of a crash until the session ends, so that the
// measurements stay on the screen and get into the report. It returns user errors at once.
func deferCrash(run func(context.Context, event.Sink) error) func(context.Context, event.Sink) error {
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

// crashed reports whether an error is an unexpected end of the process of an engine.
func crashed(err error) bool {
	ended, ok := errors.AsType[*child.Ended](err)
	return ok && !ended.Mistake
}
