package cmd

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime"
	"github.com/llmtop/llmtop/runtime/native"
	"github.com/llmtop/llmtop/runtime/native/demo"
)

// nativeOptions are the engine's options for these settings.
func (s *settings) nativeOptions(report func(runtime.LoadStage)) native.Options {
	return native.Options{Context: s.context, Slots: s.parallel, Threads: s.threads, Report: report}
}

// loader opens the model that the user named, or the built-in one. What the model file is to blame for is the user's
// mistake and not a failure of the program.
func (o *runOptions) loader() runtime.Load {
	return func(_ context.Context, report func(runtime.LoadStage)) (runtime.Engine, error) {
		var engine *native.Engine
		var err error
		if o.model == "" {
			engine, err = native.OpenDemo(o.nativeOptions(report))
		} else {
			engine, err = native.Open(o.model, o.nativeOptions(report))
		}
		if err != nil {
			return nil, usageError{err}
		}
		return engine, nil
	}
}

// params are the sampler's for these settings, with a seed of its own for each request unless the user gave one.
func (s *settings) params() runtime.Params {
	seed := s.seed
	if seed == 0 {
		seed = rand.Uint64()
	}
	return runtime.Params{
		Temperature: s.temperature, TopK: s.topK, TopP: s.topP, MinP: s.minP, RepeatPenalty: s.repeatPenalty, Seed: seed,
	}
}

// request is one prompt with the settings. Text goes into the events, since they stay within this process.
func (o *runOptions) request(text, label string) runtime.Request {
	return runtime.Request{
		Text: text, Label: label, Group: o.group, MaxTokens: o.tokens, Params: o.params(),
		SendText: true, TopLogprobs: o.logprobs, Picks: o.picks,
	}
}

// builtinRequests are the built-in prompts as requests, so ordered that the kinds take turns.
func (o *runOptions) builtinRequests() []runtime.Request {
	var requests []runtime.Request
	for _, p := range demo.Prompts() {
		requests = append(requests, o.request(p.Text, p.Kind))
	}
	return requests
}

// engine is what is known of the engine before it is loaded.
func (o *runOptions) engine() event.Engine {
	if o.chosen.name == engineLlama {
		return event.Engine{Name: "llama.cpp", Caps: event.CapSample}
	}
	return event.Engine{Name: "native", Version: versionString()}
}

// schedulerOptions are those of the scheduler of a run, but for the clock.
func (o *runOptions) schedulerOptions() runtime.Options {
	hooks, _ := o.choice.hooks() // has been checked
	return runtime.Options{Sampler: native.NewSampler, Pace: o.pace, Engine: o.engine(), Hooks: hooks, Reuse: o.chat.template != nil}
}

// scheduler prepares the scheduler of a run.
func (o *runOptions) scheduler(clock runtime.Clock) *runtime.Scheduler {
	opt := o.schedulerOptions()
	opt.Clock = clock
	return runtime.New(o.loader(), opt)
}

// refused makes a usageError of an error that the prompt is to blame for.
func refused(err error) error {
	for _, mistake := range []error{runtime.ErrEmptyPrompt, runtime.ErrPromptTooLong} {
		if errors.Is(err, mistake) {
			return usageError{fmt.Errorf("run prompt: %w", err)}
		}
	}
	return err
}
