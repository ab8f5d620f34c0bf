//go:build !nollama && (linux || darwin || windows) && (amd64 || arm64)

package llama

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"

	"github.com/llmtop/llmtop/runtime/memory"
)

// estimate is what a model will take, in bytes, found out by a load in which the library allocates nothing.
type estimate struct {
	weights, kv    float64
	host, onDevice float64 // buffers to compute in
}

// How the library's log tells sizes. Source: llama-kv-cache.cpp, llama-memory-recurrent.cpp, llama-context.cpp.
var (
	cacheLine  = regexp.MustCompile(`^\w+: size = +([0-9.]+) MiB`)
	bufferLine = regexp.MustCompile(`^\w+: +(\S+) +(?:compute|output) buffer size = +([0-9.]+) MiB`)
)

// read takes in a line of the log.
func (s *estimate) read(line string, devices []device) {
	if m := cacheLine.FindStringSubmatch(line); m != nil {
		s.kv += mebibytes(m[1])
	}
	if m := bufferLine.FindStringSubmatch(line); m != nil {
		to := &s.host
		for _, d := range devices {
			if m[1] == d.name {
				to = &s.onDevice
			}
		}
		*to += mebibytes(m[2])
	}
}

func mebibytes(text string) float64 {
	v, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return 0
	}
	return v * (1 << 20)
}

// tryOut loads the model without its weights, which shows what is wrong with the file, and what the model will take.
func (e *Engine) tryOut() (s estimate, err error) {
	params := e.modelParams()
	params.setBool(e.lib.layout.model.noAlloc)
	params.setInt32(e.lib.layout.model.loadMode, loadModeNone)
	log.mark()
	log.during(func(line string) { s.read(line, e.devices) }, true, func() {
		model := e.lib.loadModel(e.opt.Model, params)
		if model == 0 {
			err = fmt.Errorf("llama.cpp cannot load it: %s", log.complaints("it does not say why"))
			return
		}
		defer e.lib.freeModel(model)
		if e.lib.hasEncoder(model) {
			err = errors.New("it has an encoder; only models that are nothing but a decoder can be run")
			return
		}
		s.weights = float64(e.lib.size(model))
		e.opt.Context = orElse(e.opt.Context, max(min(int(e.lib.trainContext(model)), DefaultContext), 1))
		context := e.lib.newContext(model, e.contextParams())
		if context == 0 {
			err = e.noContext()
			return
		}
		e.lib.freeContext(context)
	})
	return s, err
}

// fits refuses a model that the machine has no room for. How the library spreads weights and cache over several devices is its
// business; here all devices are one.
func (e *Engine) fits(s estimate) error {
	share := e.offloaded()
	var room float64
	for _, d := range e.devices {
		room += float64(d.free)
	}
	taken := fmt.Sprintf("weights %s, KV cache %s for %d x %d tokens, buffers %s",
		memory.Size(s.weights), memory.Size(s.kv), e.opt.Slots, e.opt.Context, memory.Size(s.host+s.onDevice))
	if need := share*(s.weights+s.kv) + s.onDevice; share > 0 && need > room {
		return fmt.Errorf("does not fit on %s: %s, of which %s there; available %s", e.devices[0].name, taken, memory.Size(need), memory.Size(room))
	}
	free, known := e.opt.Memory, true
	if free == 0 {
		free, known = memory.Available()
	}
	if need := (1-share)*(s.weights+s.kv) + s.host; known && need > float64(free) {
		return fmt.Errorf("does not fit in memory: %s; available %s", taken, memory.Size(float64(free)))
	}
	return nil
}

// offloaded is the share of the model that goes to devices. Next to the layers, the output counts as one.
func (e *Engine) offloaded() float64 {
	switch layers := e.header.layers + 1; {
	case len(e.devices) == 0 || e.opt.GPULayers < 0:
		return 0
	case e.opt.GPULayers == 0 || e.opt.GPULayers >= layers:
		return 1
	default:
		return float64(e.opt.GPULayers) / float64(layers)
	}
}
