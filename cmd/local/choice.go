package local

import (
	"io"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"

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
func (c *Settings) choose(model string) (chosen, error) {
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
func (c *Settings) engineFor(model string) (chosen, error) {
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
	if !IsModel(model) { // native reports the error
		return chosen{name: engineNative}, nil
	}
	speed, cannot := native.Check(model)
	return auto(filepath.Base(model), speed, cannot)
}

// auto returns the engine for a model that native runs at the given speed or cannot run.
func auto(model string, speed native.Speed, cannot error) (chosen, error) {
	slow := speed.Ratio > 0 && speed.Ratio < native.LeastRatio
	if cannot == nil && !slow {
		return chosen{name: engineNative, why: "auto: native supports it"}, nil
	}
	best, err := library.Best(LlamaLibraries())
	switch {
	case err != nil && cannot != nil:
		return chosen{}, exit.Usagef("load model %s: %w; llamacpp: %w", model, cannot, err)
	case err != nil:
		return chosen{name: engineNative, why: "auto: llama.cpp is not usable; " + speed.String()}, nil
	}
	why := speed.String()
	if cannot != nil {
		why, _, _ = strings.Cut(cannot.Error(), ";") // the rest lists what is supported
	}
	return chosen{name: engineLlama, why: "auto: " + why, libraries: best.Dir}, nil
}

// IsModel reports whether a file begins like a GGUF file. It reads nothing from a pipe, which would lose it.
func IsModel(path string) bool {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() {
		return false
	}
	f, err := os.Open(filepath.Clean(path))
	if err != nil {
		return false
	}
	defer f.Close()
	var magic [4]byte
	_, err = io.ReadFull(f, magic[:])
	return err == nil && string(magic[:]) == "GGUF"
}
