package cmd

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime/engine"
	"github.com/llmtop/llmtop/runtime/engine/native"
	"github.com/llmtop/llmtop/runtime/engine/native/demo"
)

// nativeOptions returns the options of the native engine.
func (s *settings) nativeOptions(report func(engine.LoadStage)) native.Options {
	return native.Options{Context: s.context, Slots: s.parallel, Threads: s.threads, Report: report}
}

// loader returns the function that opens the named model or the built-in one. Errors of the model file are user errors.
func (o *runOptions) loader() engine.Load {
	return func(_ context.Context, report func(engine.LoadStage)) (engine.Engine, error) {
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

// params returns the parameters of the sampler, with a new seed for each request unless --seed is set.
func (s *settings) params() engine.Params {
	seed := s.seed
	if seed == 0 {
		seed = rand.Uint64()
	}
	return engine.Params{
		Temperature: s.temperature, TopK: s.topK, TopP: s.topP, MinP: s.minP, RepeatPenalty: s.repeatPenalty, Seed: seed,
	}
}

// request returns a request with these settings. Its text is included in the events, which stay in this process.
func (o *runOptions) request(text, label string) engine.Request {
	return engine.Request{
		Text: text, Label: label, Group: o.group, MaxTokens: o.tokens, Params: o.params(),
		SendText: true, TopLogprobs: o.logprobs, Picks: o.picks,
	}
}

// builtinRequests returns the built-in prompts as requests, alternating between kinds.
func (o *runOptions) builtinRequests() []engine.Request {
	var requests []engine.Request
	for _, p := range demo.Prompts() {
		requests = append(requests, o.request(p.Text, p.Kind))
	}
	return requests
}

// engine returns the introduction of the engine before it is loaded.
func (o *runOptions) engine() event.EngineInfo {
	if o.chosen.name == engineLlama {
		return event.EngineInfo{Name: "llama.cpp", Caps: event.CapSample}
	}
	return event.EngineInfo{Name: "native", Version: versionString()}
}

// schedulerOptions returns the options of the scheduler, without the clock.
func (o *runOptions) schedulerOptions() engine.Options {
	hooks, _ := o.choice.hooks() // check validated it
	return engine.Options{Sampler: native.NewSampler, Pace: o.pace, Engine: o.engine(), Hooks: hooks, Reuse: o.chat.template != nil}
}

// scheduler returns the scheduler of a run.
func (o *runOptions) scheduler(clock engine.Clock) *engine.Scheduler {
	opt := o.schedulerOptions()
	opt.Clock = clock
	return engine.New(o.loader(), opt)
}

// promptError makes a usageError of an error that the prompt causes.
func promptError(err error) error {
	for _, mistake := range []error{engine.ErrEmptyPrompt, engine.ErrPromptTooLong} {
		if errors.Is(err, mistake) {
			return usageError{fmt.Errorf("run prompt: %w", err)}
		}
	}
	return err
}
