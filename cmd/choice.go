package cmd

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime/engine"
	"github.com/llmtop/llmtop/runtime/engine/llama/library"
	"github.com/llmtop/llmtop/runtime/engine/native"
)

// Engine names on the command line.
const (
	engineAuto   = "auto"
	engineNative = "native"
	engineLlama  = "llamacpp"
)

// choice holds the flags that choose and configure the engine.
type choice struct {
	name      string // an engine name
	isolated  bool
	gpuLayers int    // -1: all
	sample    string // "auto", "off", or N: experts and layers are measured in 1 of N passes
	ops       bool   // time every operation
}

func (c *choice) bind(set *pflag.FlagSet) {
	set.StringVar(&c.name, "engine", engineAuto, "`ENGINE` for the model: native, llamacpp, or auto (native if it supports the model)")
	set.BoolVar(&c.isolated, "isolated", false, "run the engine in a separate process (llamacpp always does)")
	set.IntVar(&c.gpuLayers, "gpu-layers", -1, "offload `N` layers to a GPU if there is one (llamacpp); -1: all")
	set.StringVar(&c.sample, "expert-sample", "auto", "measure experts and layers in 1 of `N` forward passes, auto (overhead below 1 %) or off")
}

func (c *choice) check() error {
	if names := []string{engineAuto, engineNative, engineLlama}; !slices.Contains(names, c.name) {
		return usagef("--engine %q: must be one of %s", c.name, strings.Join(names, ", "))
	}
	if c.gpuLayers < -1 {
		return usagef("--gpu-layers %d: must be -1 or more", c.gpuLayers)
	}
	if _, err := c.hooks(); err != nil {
		return err
	}
	return nil
}

// hooks returns what the engine measures.
func (c *choice) hooks() (engine.Hooks, error) {
	hooks := engine.Hooks{Split: true, Experts: true, Ops: c.ops}
	switch c.sample {
	case "auto":
		return hooks, nil
	case "off":
		return engine.Hooks{Ops: c.ops}, nil
	}
	n, err := strconv.Atoi(c.sample)
	if err != nil || n < 1 || n > math.MaxInt32 {
		return engine.Hooks{}, usagef("--expert-sample %q: must be auto, off or a number from 1", c.sample)
	}
	hooks.Every = n
	return hooks, nil
}

// chosen is the engine of a run.
type chosen struct {
	name      string // engineNative or engineLlama
	why       string // reason in a few words; "" if the user named the engine
	libraries string // folder of llama.cpp, for engineLlama
}

// choose returns the engine for the model. An error is a user error: no engine supports the model or the flags.
func (o *runOptions) choose() (chosen, error) {
	c, err := o.engineForModel()
	if err == nil && c.name == engineNative && o.choice.ops {
		err = usagef("--ops needs --engine %s: the native engine does not time its operations", engineLlama)
	}
	return c, err
}

// engineForModel returns the named engine, or for auto one that supports the model.
func (o *runOptions) engineForModel() (chosen, error) {
	switch {
	case o.choice.name == engineNative, o.model == "" && o.choice.name == engineAuto:
		return chosen{name: engineNative}, nil
	case o.model == "":
		return chosen{}, usagef("--engine %s needs a model file: the built-in model runs only on native", engineLlama)
	case o.choice.name == engineLlama:
		best, err := library.Best(llamaLibraries())
		if err != nil {
			return chosen{}, usageError{err}
		}
		return chosen{name: engineLlama, libraries: best.Dir}, nil
	}
	if !isGGUF(o.model) { // native reports the error
		return chosen{name: engineNative}, nil
	}
	cannot := native.Check(o.model)
	if cannot == nil {
		return chosen{name: engineNative, why: "auto: native supports it"}, nil
	}
	best, err := library.Best(llamaLibraries())
	if err != nil {
		return chosen{}, usageError{fmt.Errorf("load model %s: %w; llamacpp: %w", filepath.Base(o.model), cannot, err)}
	}
	why, _, _ := strings.Cut(cannot.Error(), ";") // the rest lists what is supported
	return chosen{name: engineLlama, why: "auto: " + why, libraries: best.Dir}, nil
}

// reasons returns the remarks about the engine for the header: how it takes prompts, and why it was chosen.
func (o *runOptions) reasons() string {
	switch {
	case o.reason != "":
		return o.reason
	case o.chat.mode == "":
		return o.chosen.why
	case o.chosen.why == "":
		return o.chat.mode
	}
	return o.chat.mode + "; " + o.chosen.why
}

// isGGUF reports whether a file begins with the GGUF magic.
func isGGUF(path string) bool {
	f, err := os.Open(filepath.Clean(path))
	if err != nil {
		return false
	}
	defer f.Close()
	var magic [4]byte
	_, err = io.ReadFull(f, magic[:])
	return err == nil && bytes.Equal(magic[:], []byte("GGUF"))
}

// withReason adds why to the introductions of an engine that have no reason of their own.
func withReason(why string, run func(context.Context, event.Sink) error) func(context.Context, event.Sink) error {
	if why == "" {
		return run
	}
	return func(ctx context.Context, sink event.Sink) error { return run(ctx, reasonSink{why, sink}) }
}

type reasonSink struct {
	why  string
	sink event.Sink
}

// Emit implements event.Sink.
func (x reasonSink) Emit(e event.Event) {
	if p, ok := e.Data.(*event.EngineInfo); ok && p.Reason == "" {
		engine := *p
		engine.Reason = x.why
		e.Data = &engine
	}
	x.sink.Emit(e)
}
