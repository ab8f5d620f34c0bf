// Package native is the engine written in Go: it opens GGUF files and computes them with its subpackages.
package native

import (
	"fmt"
	"path/filepath"
	goruntime "runtime"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime/engine"
	"github.com/llmtop/llmtop/runtime/engine/native/gguf"
	"github.com/llmtop/llmtop/runtime/engine/native/model"
	"github.com/llmtop/llmtop/runtime/engine/native/sample"
	"github.com/llmtop/llmtop/runtime/engine/native/tensor"
	"github.com/llmtop/llmtop/runtime/engine/native/tokenizer"
)

// Options configures an Engine; the zero value is a sensible default.
type Options struct {
	Context  int                    // tokens of each sequence; 0: as in training, at most DefaultContext
	Slots    int                    // number of sequences; 0: 1
	Threads  int                    // 0: one for each CPU that Go may use
	MaxBatch int                    // maximum number of rows of a batch, at least one per slot; 0: DefaultBatch
	Memory   int64                  // bytes for weights, KV cache and buffers together; 0: the free memory
	Report   func(engine.LoadStage) // called after each stage of the load; may be nil
}

const (
	// DefaultContext limits the context of models that were trained with a longer one.
	DefaultContext = 4096
	// DefaultBatch is the number of rows computed together: enough for matrix products to reach full speed.
	DefaultBatch = 256
)

// check validates the ranges of options.
func (o *Options) check() error {
	for _, v := range []struct {
		what      string
		is, limit int
	}{
		{"tokens of context", o.Context, 1 << 24}, {"slots", o.Slots, 1 << 12}, {"threads", o.Threads, 1 << 10}, {"rows of a batch", o.MaxBatch, 1 << 16},
	} {
		if v.is < 1 || v.is > v.limit {
			return fmt.Errorf("%d %s: must be 1 to %d", v.is, v.what, v.limit)
		}
	}
	return nil
}

// builtIn is the path of a model that is not in a file.
const builtIn = "(built in)"

// Engine implements engine.Engine.
type Engine struct {
	*model.Runner
	file      *gguf.File
	tokenizer *tokenizer.Tokenizer
	opt       Options
	info      event.Model
}

// Open loads the model in a file. The error is one line.
func Open(path string, opt Options) (*Engine, error) {
	return load(path, opt, func() (*gguf.File, error) { return gguf.Open(path) })
}

// OpenDemo loads the built-in model.
func OpenDemo(opt Options) (*Engine, error) { return OpenBytes(DemoName, DemoModel(), opt) }

// OpenBytes loads a model from memory. It keeps data.
func OpenBytes(name string, data []byte, opt Options) (*Engine, error) {
	return load(name, opt, func() (*gguf.File, error) { return gguf.Parse(data) })
}

// load runs and times the stages of a load. The file is mapped, not read: the warm-up reads the weights.
func load(name string, opt Options, open func() (*gguf.File, error)) (e *Engine, err error) {
	e = &Engine{opt: opt}
	defer func() {
		if err == nil {
			return
		}
		if e.Runner != nil {
			e.Runner.Close()
		}
		if e.file != nil { // otherwise the error already names the file
			err = fmt.Errorf("load model %s: %w", filepath.Base(name), err)
			_ = e.file.Close() // the load has failed already
		}
		e = nil
	}()
	var weights *model.Weights
	stages := []struct {
		stage event.Stage
		work  func() error
	}{
		{event.StageLoadOpen, func() (err error) { e.file, err = open(); return err }},
		{event.StageLoadMap, func() (err error) { weights, err = model.Load(e.file); return err }},
		{event.StageLoadTokenizer, func() (err error) { e.tokenizer, err = tokenizer.New(e.file); return err }},
		{event.StageLoadWeights, func() error { return e.prepare(weights) }},
		{event.StageLoadWarmup, func() error { return e.warmUp() }},
	}
	for _, s := range stages {
		began := time.Now()
		if err := s.work(); err != nil {
			return e, err
		}
		if opt.Report != nil {
			opt.Report(engine.LoadStage{Stage: s.stage, Start: began, Dur: time.Since(began)})
		}
	}
	e.info = describe(weights, e.file, e.opt)
	return e, nil
}

// prepare fills in default options and allocates the working memory, if the machine has enough.
func (e *Engine) prepare(w *model.Weights) error {
	if e.tokenizer.Size() != w.Vocab {
		return sizes(e.tokenizer.Size(), w.Vocab)
	}
	o := &e.opt
	o.Slots, o.MaxBatch = orElse(o.Slots, 1), orElse(o.MaxBatch, DefaultBatch)
	o.Threads = orElse(o.Threads, goruntime.GOMAXPROCS(0))
	o.Context = orElse(o.Context, min(w.TrainContext, DefaultContext))
	if err := o.check(); err != nil {
		return err
	}
	o.MaxBatch = max(o.MaxBatch, o.Slots)
	size := model.Options{Context: o.Context, Slots: o.Slots, MaxBatch: o.MaxBatch, Threads: o.Threads}
	if err := fits(w, e.file.Size(), size, o.Memory); err != nil {
		return err
	}
	e.Runner = model.NewRunner(w, size)
	return nil
}

func orElse(v, otherwise int) int {
	if v == 0 {
		return otherwise
	}
	return v
}

// warmUp computes one token, which loads weights into memory that the first request would otherwise wait for, and
// starts the workers.
func (e *Engine) warmUp() error {
	b := engine.Batch{Rows: []engine.Row{{Token: max(e.tokenizer.BOS(), 0), Logits: true}}}
	if err := e.Forward(&b); err != nil {
		return err
	}
	e.Release(0)
	return nil
}

// Info implements engine.Engine.
func (e *Engine) Info() event.EngineInfo {
	return event.EngineInfo{
		Name:   "native",
		Device: event.Device{Name: "CPU", Kernels: tensor.Features(), Host: true, Threads: e.opt.Threads},
		Slots:  e.opt.Slots,
	}
}

// Model implements engine.Engine.
func (e *Engine) Model() event.Model { return e.info }

// Encode implements engine.Engine.
func (e *Engine) Encode(dst []int32, text string, special bool) []int32 {
	return e.tokenizer.Encode(dst, text, special)
}

// Piece implements engine.Engine.
func (e *Engine) Piece(id int32) string { return e.tokenizer.Piece(id) }

// IsEOG implements engine.Engine.
func (e *Engine) IsEOG(id int32) bool { return e.tokenizer.IsEOG(id) }

// Slots implements engine.Engine.
func (e *Engine) Slots() int { return e.opt.Slots }

// Context implements engine.Engine.
func (e *Engine) Context() int { return e.opt.Context }

// MaxBatch implements engine.Engine.
func (e *Engine) MaxBatch() int { return e.opt.MaxBatch }

// Release implements engine.Engine. It does nothing: a new sequence overwrites the cells of the old one.
func (e *Engine) Release(int) {}

// Keep implements engine.Engine. The cells after the kept tokens are overwritten later.
func (e *Engine) Keep(_, n int) int { return n }

// Ops implements engine.Engine. Its passes have few parts, which Hooks.Split times.
func (e *Engine) Ops() *event.Ops { return nil }

// Close implements engine.Engine.
func (e *Engine) Close() error {
	e.Runner.Close()
	return e.file.Close()
}

// CheckParams returns an error for the first invalid parameter.
func CheckParams(p engine.Params) error { return sample.Check(p) }

// NewSampler creates the sampler of one request; CheckParams must have accepted p.
func NewSampler(p engine.Params, vocabulary int) engine.Sampler { return sample.New(p, vocabulary) }
