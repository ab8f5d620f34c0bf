//go:build !nollama && (linux || darwin || windows) && (amd64 || arm64)

package llama

import (
	"fmt"
	"path/filepath"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime"
)

// Built says whether this program can load llama.cpp's libraries at all.
const Built = true

// Engine implements runtime.Engine, runtime.Threaded, runtime.Keeper and runtime.Profiled.
type Engine struct {
	lib   *library
	opt   Options
	info  event.Engine
	about event.Model

	header  header
	devices []device
	needs   estimate

	vocabulary
	model, context, cache uintptr
	pool                  *pool

	rows   batchRows
	watch  *watch
	trace  *tracer
	hooks  runtime.Hooks
	auto   int    // in one of how many passes the hooks measure by themselves
	passes [2]int // so far: those that only decode, and those with prompts
}

// Open loads the libraries and the model. The error says in one line what is wrong with them.
func Open(o Options) (*Engine, error) {
	e := &Engine{opt: o, auto: 1}
	if err := e.load(); err != nil {
		_ = e.Close() // the load has failed already
		return nil, fmt.Errorf("load model %s: %w", filepath.Base(o.Model), err)
	}
	return e, nil
}

// load times the stages of a load.
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
			e.opt.Report(runtime.LoadStage{Stage: s.stage, Name: s.name, Start: began, Dur: time.Since(began)})
		}
	}
	return nil
}

// open looks at the file, loads the libraries, and has them try the model out.
func (e *Engine) open() (err error) {
	if err := e.opt.settle(); err != nil {
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

// modelParams are the parameters of a load.
func (e *Engine) modelParams() block {
	params := append(block(nil), e.lib.modelDefaults...)
	if e.opt.GPULayers != 0 {
		params.setInt32(e.lib.layout.model.gpuLayers, int32(max(e.opt.GPULayers, 0)))
	}
	return params
}

// contextParams are the parameters of the context. One cache for all sequences keeps the rows of a batch together and in order; the
// library then takes 0.04 ms longer to look over each batch, so a single sequence does without.
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
		return fmt.Errorf("llama.cpp cannot load it: %s", log.complaints("it does not say why"))
	}
	e.vocabulary.open(e.lib, e.model)
	e.trace.reorders = e.lib.isRecurrent(e.model) || e.lib.isHybrid(e.model)
	e.describe()
	return nil
}

// createContext makes the KV cache and the working memory, and attaches the threads.
func (e *Engine) createContext() error {
	log.mark()
	if e.context = e.lib.newContext(e.model, e.contextParams()); e.context == 0 {
		return e.noContext()
	}
	e.cache = e.lib.memory(e.context)
	e.pool = e.lib.newPool(e.opt.Threads)
	e.pool.attach(e.context)
	e.rows.prepare(e.opt.Batch, e.opt.Slots)
	e.trace.prepare(shape{e.about.Layers, e.about.Experts, e.about.ExpertsUsed})
	return nil
}

// noContext is the error of a context that could not be made.
func (e *Engine) noContext() error {
	return fmt.Errorf("llama.cpp cannot make a context of %d x %d tokens: %s", e.opt.Slots, e.opt.Context, log.complaints("it does not say why"))
}

// warmUp computes one token, which brings in the weights that a first request would have to wait for.
func (e *Engine) warmUp() error {
	_, err := e.token()
	return err
}

// progressTo takes the progress of the load in progress; nil if nobody does.
var progressTo func(share float64) bool

// Info implements runtime.Engine.
func (e *Engine) Info() event.Engine { return e.info }

// Model implements runtime.Engine.
func (e *Engine) Model() event.Model { return e.about }

// Slots implements runtime.Engine.
func (e *Engine) Slots() int { return e.opt.Slots }

// Context implements runtime.Engine.
func (e *Engine) Context() int { return e.opt.Context }

// MaxBatch implements runtime.Engine.
func (e *Engine) MaxBatch() int { return e.opt.Batch }

// Release implements runtime.Engine.
func (e *Engine) Release(slot int) { e.lib.remove(e.cache, int32(slot), -1, -1) }

// Keep implements runtime.Keeper. The state of a recurrent model cannot be cut.
func (e *Engine) Keep(slot, n int) int {
	if n > 0 && int(e.lib.lastPosition(e.cache, int32(slot))) >= n-1 && e.lib.remove(e.cache, int32(slot), int32(n), -1) {
		return n
	}
	e.Release(slot)
	return 0
}

// SetHooks implements runtime.Engine.
func (e *Engine) SetHooks(h runtime.Hooks) {
	e.hooks = h
	if s := e.trace.info; h.Picks && e.trace.chosen == nil {
		e.trace.chosen = make([]uint16, e.opt.Batch*s.layers*s.used)
	}
}

// Router implements runtime.Engine.
func (e *Engine) Router() *event.Experts {
	if e.trace.count == nil {
		return nil
	}
	return e.trace.count.snapshot(e.trace.info, e.every())
}

// Ops implements runtime.Profiled.
func (e *Engine) Ops() *event.Ops { return e.trace.ops.snapshot() }

// Threads implements runtime.Threaded.
func (e *Engine) Threads() []int { return e.pool.threads }

// ChatTemplate is the template of conversations that the model brings along, in Jinja; "" if it has none.
func (e *Engine) ChatTemplate() string { return e.lib.chatTemplate(e.model, 0) }

// Close implements runtime.Engine.
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
