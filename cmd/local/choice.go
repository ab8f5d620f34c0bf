package local

import (
	"bytes"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/llmtop/llmtop/cmd/exit"
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
	engine    string // an engine name
	isolated  bool
	gpuLayers int    // -1: all
	sample    string // "auto", "off", or N: experts and layers are measured in 1 of N passes
	Ops       bool   // time every operation
}

func (c *choice) bind(set *pflag.FlagSet) {
	set.StringVar(&c.engine, "engine", engineAuto, "`ENGINE` for the model: native, llamacpp, or auto (the faster one that supports the model)")
	set.BoolVar(&c.isolated, "isolated", false, "run the engine in a separate process (llamacpp always does)")
	set.IntVar(&c.gpuLayers, "gpu-layers", -1, "offload `N` layers to a GPU if there is one (llamacpp); -1: all")
	set.StringVar(&c.sample, "expert-sample", "auto", "count experts and time layers in 1 of `N` passes (native: all), auto or off")
}

func (c *choice) check() error {
	if names := []string{engineAuto, engineNative, engineLlama}; !slices.Contains(names, c.engine) {
		return exit.Usagef("--engine %q: must be one of %s", c.engine, strings.Join(names, ", "))
	}
	if c.gpuLayers < -1 {
		return exit.Usagef("--gpu-layers %d: must be -1 or more", c.gpuLayers)
	}
	_, err := Hooks(c.sample, false)
	return err
}

// sampleOff is the value of --expert-sample that measures nothing.
const sampleOff = "off"

// Hooks returns what the engine measures with --expert-sample and --ops.
func Hooks(sample string, ops bool) (engine.Hooks, error) {
	hooks := engine.Hooks{Split: true, Experts: true, Ops: ops}
	switch sample {
	case "auto":
		return hooks, nil
	case sampleOff:
		return engine.Hooks{Ops: ops}, nil
	}
	n, err := strconv.Atoi(sample)
	if err != nil || n < 1 || n > math.MaxInt32 {
		return engine.Hooks{}, exit.Usagef("--expert-sample %q: must be auto, off or a number from 1", sample)
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

// choose returns the engine for a model file, "" for the built-in model. An error is a user error: no engine supports
// the model or the flags.
func (c *choice) choose(model string) (chosen, error) {
	of, err := c.engineFor(model)
	if err != nil || of.name != engineNative {
		return of, err
	}
	if c.Ops {
		return of, exit.Usagef("--ops needs --engine %s: the native engine does not time its operations", engineLlama)
	}
	if slow := native.Slow(); slow != "" {
		of.why = strings.TrimPrefix(of.why+"; "+slow, "; ")
	}
	return of, nil
}

// engineFor returns the named engine, or for auto one that supports the model.
func (c *choice) engineFor(model string) (chosen, error) {
	switch {
	case c.engine == engineNative, model == "" && c.engine == engineAuto:
		return chosen{name: engineNative}, nil
	case model == "":
		return chosen{}, exit.Usagef("--engine %s needs a model file: the built-in model runs only on native", engineLlama)
	case c.engine == engineLlama:
		best, err := library.Best(LlamaLibraries())
		if err != nil {
			return chosen{}, exit.Usage(err)
		}
		return chosen{name: engineLlama, libraries: best.Dir}, nil
	}
	if !isGGUF(model) { // native reports the error
		return chosen{name: engineNative}, nil
	}
	pace, cannot := native.Check(model)
	return auto(filepath.Base(model), pace, cannot)
}

// auto returns the engine for a model that native runs at the given pace or cannot run.
func auto(model string, pace native.Pace, cannot error) (chosen, error) {
	slow := pace.Ratio > 0 && pace.Ratio < native.LeastPace
	if cannot == nil && !slow {
		return chosen{name: engineNative, why: "auto: native supports it"}, nil
	}
	best, err := library.Best(LlamaLibraries())
	switch {
	case err != nil && cannot != nil:
		return chosen{}, exit.Usagef("load model %s: %w; llamacpp: %w", model, cannot, err)
	case err != nil:
		return chosen{name: engineNative, why: "auto: llama.cpp is not usable; " + pace.String()}, nil
	}
	why := pace.String()
	if cannot != nil {
		why, _, _ = strings.Cut(cannot.Error(), ";") // the rest lists what is supported
	}
	return chosen{name: engineLlama, why: "auto: " + why, libraries: best.Dir}, nil
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
