//go:build !nollama && (linux || darwin || windows) && (amd64 || arm64)

package llama

import (
	"fmt"
	"path/filepath"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime/engine"
)

// Built reports whether this program can load llama.cpp's libraries.
const Built = true

// Engine implements engine.Engine.
type Engine struct {
	lib       *library
	opt       Options
	info      event.EngineInfo
	modelInfo event.Model

	header  event.Model
	devices []device
	needs   estimate

	vocabulary
	model, context, cache uintptr
	pool                  *pool

	rows   batchRows
	watch  *watch
	trace  *tracer
	hooks  engine.Hooks
	rate   rate   // of the hooks, if Hooks.Every is 0
	passes [2]int // number of passes so far: decode only, with prompts
}

// Open loads the libraries and the model. The error is one line.
func Open(o Options) (*Engine, error) {
	e := &Engine{opt: o, rate: rate{every: startEvery, age: settle}}
	if err := e.load(); err != nil {
		_ = e.Close() // the load has failed already
		return nil, fmt.Errorf("load model %s: %w", filepath.Base(o.Model), err)
	}
	return e, nil
}

// load runs and times the stages of a load.
func (e *Engine) load() error {
	for _, s := range []struct {
		stage event.Stage
		name  string
		work  func() error
	}{
		{event.StageLoadOpen, "", e.open},
		{event.StageLoadWeights, "", e.loadWeights},
		{event.StageNone, "load_context", e.createContext},
		{event.StageLoadWarmup, "", e.warmUp},
		{event.StageNone, "load_calibrate", e.calibrate},
	} {
		began := time.Now()
		if err := s.work(); err != nil {
			return err
		}
		if e.opt.Report != nil {
			e.opt.Report(engine.LoadStage{Stage: s.stage, Name: s.name, Start: began, Dur: time.Since(began)})
		}
	}
	return nil
}

// open reads the file's header, loads the libraries, and loads the model without weights to check it.
func (e *Engine) open() (err error) {
	if err := e.opt.setDefaults(); err != nil {
		return err
	}
	if e.header, err = readHeader(e.opt.Model); err != nil {
		return err
	}
	log.listen(e.opt.Log, e.opt.Fatal)
	if e.lib, err = open(e.opt.Libraries); err != nil {
		return err
	}
	e.devices = e.lib.gpus()
	e.trace = &tracer{lib: e.lib, ops: newOps()}
	e.watch = newWatch(e.trace)
	if e.needs, err = e.tryOut(); err != nil {
		return err
	}
	return e.fits(e.needs)
}

// modelParams returns the parameters of a load.
func (e *Engine) modelParams() block {
	params := append(block(nil), e.lib.modelDefaults...)
	if e.opt.GPULayers != 0 {
		params.setInt32(e.lib.layout.model.gpuLayers, int32(max(e.opt.GPULayers, 0)))
	}
	return params
}

// contextParams returns the parameters of the context. One cache for all sequences keeps the rows of a batch together
// and in order. The library then takes 0.04 ms longer to prepare each batch, so a single sequence does not use it.
func (e *Engine) contextParams() block {
	params, at, o := append(block(nil), e.lib.contextDefaults...), &e.lib.layout.context, &e.opt
	for _, f := range []struct{ at, v int }{
		{at.context, o.Context * o.Slots},
		{at.batch, o.Batch},
		{at.ubatch, o.Batch},
		{at.sequences, o.Slots},
		{at.outputs, o.Logits},
		{at.threads, o.Threads},
		{at.threadsBatch, o.Threads},
	} {
		params.setInt32(f.at, int32(f.v))
	}
	if o.Slots > 1 {
		params.setBool(at.unified)
	}
	params.setWord(at.eval, uint64(filterAddress))
	params.setWord(at.evalData, uint64(e.watch.address()))
	return params
}

// loadWeights loads the model.
func (e *Engine) loadWeights() error {
	params, at, ended := e.modelParams(), &e.lib.layout.model, false
	if e.opt.Progress != nil && progressWorks {
		params.setWord(at.progress, uint64(progressCallback()))
		progressTo = func(share float64) bool {
			goOn := e.opt.Progress(share)
			ended = ended || !goOn
			return goOn
		}
	}
	log.mark()
	e.model = e.lib.loadModel(e.opt.Model, params)
	progressTo = nil
	switch {
	case ended:
		return ErrLoadEnded
	case e.model == 0:
		return fmt.Errorf("llama.cpp failed: %s", log.complaints())
	}
	e.vocabulary.open(e.lib, e.model)
	e.trace.reorders = e.lib.isRecurrent(e.model) || e.lib.isHybrid(e.model)
	e.describe()
	return nil
}

// createContext creates the KV cache and the compute buffers, and attaches the threads.
func (e *Engine) createContext() error {
	log.mark()
	if e.context = e.lib.newContext(e.model, e.contextParams()); e.context == 0 {
		return e.noContext()
	}
	e.cache = e.lib.memory(e.context)
	e.pool = e.lib.newPool(e.opt.Threads)
	e.pool.attach(e.context)
	e.rows.prepare(e.opt.Batch, e.opt.Slots)
	e.trace.prepare(e.modelInfo)
	return nil
}

// noContext returns the error of a context that could not be created.
func (e *Engine) noContext() error {
	return fmt.Errorf("create context of %d x %d tokens: %s", e.opt.Slots, e.opt.Context, log.complaints())
}

// warmUp computes one token, which loads weights into memory that the first request would otherwise wait for.
func (e *Engine) warmUp() error {
	return e.token()
}

// progressTo receives the progress of the current load; nil if it is not reported.
var progressTo func(share float64) bool

// Info implements engine.Engine.
func (e *Engine) Info() event.EngineInfo { return e.info }

// Model implements engine.Engine.
func (e *Engine) Model() event.Model { return e.modelInfo }

// Slots implements engine.Engine.
func (e *Engine) Slots() int { return e.opt.Slots }

// Context implements engine.Engine.
func (e *Engine) Context() int { return e.opt.Context }

// MaxBatch implements engine.Engine.
func (e *Engine) MaxBatch() int { return e.opt.Batch }

// Release implements engine.Engine.
func (e *Engine) Release(slot int) { e.lib.remove(e.cache, int32(slot), -1, -1) }

// Keep implements engine.Engine. The state of a recurrent model cannot be truncated.
func (e *Engine) Keep(slot, n int) int {
	if n > 0 && int(e.lib.lastPosition(e.cache, int32(slot))) >= n-1 && e.lib.remove(e.cache, int32(slot), int32(n), -1) {
		return n
	}
	e.Release(slot)
	return 0
}

// SetHooks implements engine.Engine.
func (e *Engine) SetHooks(h engine.Hooks) {
	e.hooks = h
	e.rate.disturb()
	if m := &e.modelInfo; h.Picks && e.trace.chosen == nil {
		e.trace.chosen = make([]uint16, e.opt.Batch*m.Layers*m.ExpertsUsed)
	}
}

// Router implements engine.Engine.
func (e *Engine) Router() *event.Experts {
	counted := engine.CopyPicks(e.trace.count)
	if counted != nil {
		counted.EveryN = e.every()
	}
	return counted
}

// Ops implements engine.Engine.
func (e *Engine) Ops() *event.Ops { return e.trace.ops.snapshot() }

// Threads implements engine.Engine.
func (e *Engine) Threads() []int { return e.pool.threads }

// Close implements engine.Engine.
func (e *Engine) Close() error {
	e.vocabulary.close()
	if e.context != 0 {
		e.lib.detachPool(e.context)
		e.lib.freeContext(e.context)
		e.pool.close()
	}
	if e.model != 0 {
		e.lib.freeModel(e.model)
	}
	e.context, e.model = 0, 0
	log.listen(nil, nil)
	return nil
}
