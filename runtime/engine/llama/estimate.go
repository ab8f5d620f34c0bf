//go:build !nollama && (linux || darwin || windows) && (amd64 || arm64)

package llama

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"

	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/runtime/host/cgroup"
)

// estimate is the memory that a model needs, in bytes, measured by a load without allocations.
type estimate struct {
	weights, kv    float64
	host, onDevice float64 // compute buffers
}

// Log lines with sizes. Source: llama-kv-cache.cpp, llama-memory-recurrent.cpp, llama-context.cpp.
var (
	cacheLine  = regexp.MustCompile(`^\w+: size = +([0-9.]+) MiB`)
	bufferLine = regexp.MustCompile(`^\w+: +(\S+) +(?:compute|output) buffer size = +([0-9.]+) MiB`)
)

// read reads the sizes of a log line.
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

// tryOut loads the model without its weights, which shows errors of the file and the memory that the model needs.
func (e *Engine) tryOut() (s estimate, err error) {
	params := e.modelParams()
	params.setBool(e.lib.layout.model.noAlloc)
	params.setInt32(e.lib.layout.model.loadMode, loadModeNone)
	log.mark()
	log.during(func(line string) { s.read(line, e.devices) }, true, func() {
		model := e.lib.loadModel(e.opt.Model, params)
		if model == 0 {
			err = fmt.Errorf("llama.cpp failed: %s", log.complaints())
			return
		}
		defer e.lib.freeModel(model)
		if e.lib.hasEncoder(model) {
			err = errors.New("the model has an encoder; only decoder-only models are supported")
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

// fits returns an error if the model does not fit in memory. All devices count as one; the library distributes weights
// and cache.
func (e *Engine) fits(s estimate) error {
	share := e.offloaded()
	var room float64
	for _, d := range e.devices {
		room += float64(d.free)
	}
	taken := fmt.Sprintf("weights %s, KV cache %s for %d x %d tokens, buffers %s",
		metric.Bytes(s.weights), metric.Bytes(s.kv), e.opt.Slots, e.opt.Context, metric.Bytes(s.host+s.onDevice))
	if need := share*(s.weights+s.kv) + s.onDevice; share > 0 && need > room {
		return fmt.Errorf("does not fit on %s: %s; needs %s on the device, available %s", e.devices[0].name, taken, metric.Bytes(need), metric.Bytes(room))
	}
	free, ok := e.opt.Memory, true
	if free == 0 {
		free, ok = cgroup.Available()
	}
	if need := (1-share)*(s.weights+s.kv) + s.host; ok && need > float64(free) {
		return fmt.Errorf("does not fit in memory: %s; available %s", taken, metric.Bytes(float64(free)))
	}
	return nil
}

// offloaded returns the fraction of the model on devices. The output layer counts as one more layer.
func (e *Engine) offloaded() float64 {
	switch layers := e.header.Layers + 1; {
	case len(e.devices) == 0 || e.opt.GPULayers < 0:
		return 0
	case e.opt.GPULayers == 0 || e.opt.GPULayers >= layers:
		return 1
	default:
		return float64(e.opt.GPULayers) / float64(layers)
	}
}
