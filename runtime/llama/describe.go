//go:build !nollama && (linux || darwin || windows) && (amd64 || arm64)

package llama

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/llmtop/llmtop/profiler/event"
)

// Types of devices. Source: ggml-backend.h.
const deviceCPU = 0

// meta is a value of the model's metadata as text, "" without it.
func (e *Engine) meta(key string) string {
	buf := make([]byte, 1024)
	n := e.lib.meta(e.model, key, &buf[0], uintptr(len(buf)))
	if n < 0 {
		return ""
	}
	return string(buf[:min(int(n), len(buf)-1)])
}

// number is a number of the model's metadata, 0 without it.
func (e *Engine) number(key string) int {
	n, err := strconv.Atoi(e.meta(key))
	if err != nil || n < 0 {
		return 0
	}
	return n
}

// describe states what is loaded, and settles the context.
func (e *Engine) describe() {
	l, m := e.lib, e.model
	arch := e.meta("general.architecture")
	number := func(key string) int { return e.number(arch + "." + key) }
	a := event.Model{
		Name: e.meta("general.name"), Path: e.opt.Model, Architecture: arch,
		Parameters: int64(l.parameters(m)), Bytes: int64(l.size(m)),
		Layers: int(l.layers(m)), Width: int(l.width(m)), Heads: int(l.heads(m)), KVHeads: int(l.kvHeads(m)),
		Vocab: int(l.vocabTokens(e.vocab)), Experts: number("expert_count"), ExpertsUsed: number("expert_used_count"),
		TrainContext: int(l.trainContext(m)),
	}
	if a.Name == "" {
		a.Name = strings.TrimSuffix(filepath.Base(e.opt.Model), ".gguf")
	}
	e.opt.Context = orElse(e.opt.Context, max(min(a.TrainContext, DefaultContext), 1))
	a.Context = e.opt.Context
	e.about = a
	e.info = event.Engine{
		Name: "llama.cpp", Version: fmt.Sprintf("%v, %s", l.release, l.commit),
		Device: event.Device{Name: "CPU", Kernels: l.systemInfo(), Host: true, Threads: e.opt.Threads},
		Slots:  e.opt.Slots,
	}
}
