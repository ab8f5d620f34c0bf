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
	"github.com/llmtop/llmtop/runtime"
	"github.com/llmtop/llmtop/runtime/llama/library"
	"github.com/llmtop/llmtop/runtime/native"
)

// The engines, as they are called on the command line.
const (
	engineAuto   = "auto"
	engineNative = "native"
	engineLlama  = "llamacpp"
)

// choice is what the user may say about the engine.
type choice struct {
	name      string // one of the engines
	isolated  bool
	gpuLayers int    // -1: all of them
	sample    string // "auto", "off", or in one of how many passes experts and layers are measured
	ops       bool   // every operation is timed
}

func (c *choice) bind(set *pflag.FlagSet) {
	set.StringVar(&c.name, "engine", engineAuto, "native (llmtop's own), llamacpp (a llama.cpp on this machine), or auto: native where it can run the model")
	set.BoolVar(&c.isolated, "isolated", false, "run the engine in a process of its own; llamacpp always does")
	set.IntVar(&c.gpuLayers, "gpu-layers", -1, "layers that llamacpp puts on a GPU where there is one; -1: all")
	set.StringVar(&c.sample, "expert-sample", "auto", "measure experts and layers in 1 of so many passes, all of them or auto (so many that it costs under 1 %), or off")
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

// hooks are what the engine measures.
func (c *choice) hooks() (runtime.Hooks, error) {
	hooks := runtime.Hooks{Split: true, Experts: true, Ops: c.ops}
	switch c.sample {
	case "auto":
		return hooks, nil
	case "off":
		return runtime.Hooks{Ops: c.ops}, nil
	}
	n, err := strconv.Atoi(c.sample)
	if err != nil || n < 1 || n > math.MaxInt32 {
		return runtime.Hooks{}, usagef("--expert-sample %q: must be auto, off or a number from 1", c.sample)
	}
	hooks.Every = n
	return hooks, nil
}

// chosen is the engine of a run.
type chosen struct {
	name      string // engineNative or engineLlama
	why       string // in a few words; "" if the user has named it
	libraries string // folder of llama.cpp's, for engineLlama
}

// choose chooses the engine for the model. Errors are the user's mistakes: no engine can run it, or not so.
func (o *runOptions) choose() (chosen, error) {
	c, err := o.able()
	if err == nil && c.name == engineNative && o.choice.ops {
		err = usagef("--ops needs --engine %s: the native engine does not time its operations", engineLlama)
	}
	return c, err
}

// able is the engine that is named, or one that can run the model.
func (o *runOptions) able() (chosen, error) {
	switch {
	case o.choice.name == engineNative, o.model == "" && o.choice.name == engineAuto:
		return chosen{name: engineNative}, nil
	case o.model == "":
		return chosen{}, usagef("--engine %s needs a model file; the model that is built in is for native", engineLlama)
	case o.choice.name == engineLlama:
		best, err := library.Best(llamaLibraries())
		if err != nil {
			return chosen{}, usageError{err}
		}
		return chosen{name: engineLlama, libraries: best.Dir}, nil
	}
	if !isGGUF(o.model) { // which native says best
		return chosen{name: engineNative}, nil
	}
	cannot := native.Check(o.model)
	if cannot == nil {
		return chosen{name: engineNative, why: "auto: native can run it"}, nil
	}
	best, err := library.Best(llamaLibraries())
	if err != nil {
		return chosen{}, usageError{fmt.Errorf("load model %s: %w; as to another engine, %w", filepath.Base(o.model), cannot, err)}
	}
	why, _, _ := strings.Cut(cannot.Error(), ";") // what follows lists what is supported
	return chosen{name: engineLlama, why: "auto: " + why, libraries: best.Dir}, nil
}

// why says of the engine what the user should know: how it takes prompts, and why it was chosen.
func (o *runOptions) why() string {
	switch {
	case o.reason != "":
		return o.reason
	case o.chat.words == "":
		return o.chosen.why
	case o.chosen.why == "":
		return o.chat.words
	}
	return o.chat.words + "; " + o.chosen.why
}

// isGGUF reports whether a file begins like a model.
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

// because has the engine say why it was chosen, where it has nothing else to say.
func because(why string, run func(context.Context, event.Sink) error) func(context.Context, event.Sink) error {
	if why == "" {
		return run
	}
	return func(ctx context.Context, sink event.Sink) error { return run(ctx, explained{why, sink}) }
}

type explained struct {
	why  string
	sink event.Sink
}

// Emit implements event.Sink.
func (x explained) Emit(e event.Event) {
	if p, ok := e.Data.(*event.Engine); ok && p.Reason == "" {
		engine := *p
		engine.Reason = x.why
		e.Data = &engine
	}
	x.sink.Emit(e)
}
