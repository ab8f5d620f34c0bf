//lint:file-ignore U1000 the structs mirror those of llama.h, field for field

package native_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"unsafe"

	"github.com/ebitengine/purego"
)

// libllama calls llama.cpp release v0.5.0 like a separate program would: load, decode, read logits.
type libllama struct {
	model, context uintptr
	vocab          int
	batch          llamaBatch

	decode   func(uintptr, llamaBatch) int32
	logits   func(uintptr, int32) *float32
	memory   func(uintptr) uintptr
	clear    func(uintptr, bool)
	freeCtx  func(uintptr)
	freeFile func(uintptr)
}

// The structs of llama.h of that release.
type (
	llamaModelParams struct {
		devices, overrides                                uintptr
		nGPULayers, splitMode, loadMode, lazy, mainGPU, _ int32
		tensorSplit, progress, progressUD, kv             uintptr
		flags                                             [6]bool
	}
	llamaContextParams struct {
		nCtx, nBatch, nUbatch, nSeqMax, nRsSeq, nOutMax, nOutMaxSeq uint32
		nThreads, nThreadsBatch                                     int32
		ctxType, ropeScaling, pooling, attn, flash                  int32
		rope                                                        [6]float32
		yarnOrig                                                    uint32
		defrag                                                      float32
		cbEval, cbEvalUD                                            uintptr
		typeK, typeV                                                int32
		abort, abortUD                                              uintptr
		flags                                                       [6]bool
		samplers                                                    uintptr
		nSamplers                                                   uint64
		other                                                       uintptr
	}
	llamaBatch struct {
		n, _                                    int32
		token, embd, pos, nSeqID, seqID, logits uintptr
	}
)

// Values of llamaContextParams.flash.
const (
	flashAuto = -1
	flashOff  = 0
)

// needLibllama returns the folder of the library, from LLMTOP_LLAMA_DIR, or skips the test.
func needLibllama(tb testing.TB) string {
	tb.Helper()
	dir := os.Getenv("LLMTOP_LLAMA_DIR")
	if dir == "" {
		tb.Skip(`needs libllama: run eval "$(scripts/peers.sh)" first, which installs it and sets LLMTOP_LLAMA_DIR`)
	}
	return dir
}

// openLibllama loads the model with the library for the time of the test, or skips it.
func openLibllama(tb testing.TB, model string, context, batch, threads int, flash int32) *libllama {
	tb.Helper()
	l := loadLibllama(tb, model, context, batch, threads, 1, flash)
	tb.Cleanup(l.close)
	return l
}

// loadLibllama loads the model for some sequences of context tokens each. The caller closes it.
func loadLibllama(tb testing.TB, model string, context, batch, threads, sequences int, flash int32) *libllama {
	tb.Helper()
	dir := needLibllama(tb)
	open := func(name string) uintptr {
		lib, err := purego.Dlopen(filepath.Join(dir, name), purego.RTLD_NOW|purego.RTLD_GLOBAL)
		if err != nil {
			tb.Fatal(err)
		}
		return lib
	}
	open("libggml-base.so")
	ggml, lib := open("libggml.v0.5.0.so"), open("libllama.v0.5.0.so")
	var (
		loadBackends  func(string)
		setLog        func(uintptr, uintptr)
		modelParams   func() llamaModelParams
		contextParams func() llamaContextParams
		load          func(string, llamaModelParams) uintptr
		create        func(uintptr, llamaContextParams) uintptr
		vocab         func(uintptr) uintptr
		tokens        func(uintptr) int32
		newBatch      func(int32, int32, int32) llamaBatch
		l             libllama
	)
	purego.RegisterLibFunc(&loadBackends, ggml, "ggml_backend_load_all_from_path")
	for name, f := range map[string]any{
		"llama_log_set": &setLog, "llama_model_default_params": &modelParams, "llama_context_default_params": &contextParams,
		"llama_model_load_from_file": &load, "llama_init_from_model": &create, "llama_model_get_vocab": &vocab,
		"llama_vocab_n_tokens": &tokens, "llama_batch_init": &newBatch, "llama_decode": &l.decode,
		"llama_get_logits_ith": &l.logits, "llama_get_memory": &l.memory, "llama_memory_clear": &l.clear,
		"llama_free": &l.freeCtx, "llama_model_free": &l.freeFile,
	} {
		purego.RegisterLibFunc(f, lib, name)
	}
	setLog(purego.NewCallback(func(int32, *byte, uintptr) uintptr { return 0 }), 0)
	loadBackends(dir)
	if l.model = load(model, modelParams()); l.model == 0 {
		tb.Fatalf("libllama cannot load %s", model)
	}
	p := contextParams()
	p.nCtx, p.nBatch, p.nUbatch, p.nSeqMax = uint32(context*sequences), uint32(batch), uint32(batch), uint32(sequences)
	p.nThreads, p.nThreadsBatch = int32(threads), int32(threads)
	p.flash = flash
	if l.context = create(l.model, p); l.context == 0 {
		tb.Fatal("libllama cannot create a context")
	}
	l.vocab = int(tokens(vocab(l.model)))
	l.batch = newBatch(int32(batch), 0, 1)
	return &l
}

func (l *libllama) close() {
	l.freeCtx(l.context)
	l.freeFile(l.model)
}

// at returns element i of an array in the library's memory.
func at[T any](base uintptr, i int) *T {
	var zero T
	return (*T)(unsafe.Add(*(*unsafe.Pointer)(unsafe.Pointer(&base)), i*int(unsafe.Sizeof(zero))))
}

// forward computes tokens from position pos on and returns the last logits.
func (l *libllama) forward(tokens []int32, pos int) ([]float32, error) {
	if err := l.run(tokens, pos, false); err != nil {
		return nil, err
	}
	return l.row(len(tokens) - 1), nil
}

// run computes tokens, with logits after the last one or after every one.
func (l *libllama) run(tokens []int32, pos int, every bool) error {
	l.batch.n = int32(len(tokens))
	for i, token := range tokens {
		*at[int32](l.batch.token, i) = token
		*at[int32](l.batch.pos, i) = int32(pos + i)
		*at[int32](l.batch.nSeqID, i) = 1
		**at[*int32](l.batch.seqID, i) = 0
		*at[bool](l.batch.logits, i) = every || i == len(tokens)-1
	}
	if rc := l.decode(l.context, l.batch); rc != 0 {
		return fmt.Errorf("llama_decode returned %d", rc)
	}
	return nil
}

// beside computes one token of each of several sequences, all at position pos, with logits.
func (l *libllama) beside(tokens []int32, pos int) error {
	l.batch.n = int32(len(tokens))
	for i, token := range tokens {
		*at[int32](l.batch.token, i) = token
		*at[int32](l.batch.pos, i) = int32(pos)
		*at[int32](l.batch.nSeqID, i) = 1
		**at[*int32](l.batch.seqID, i) = int32(i)
		*at[bool](l.batch.logits, i) = true
	}
	if rc := l.decode(l.context, l.batch); rc != 0 {
		return fmt.Errorf("llama_decode returned %d", rc)
	}
	return nil
}

// row returns the logits after token i of the last batch, valid until the next one.
func (l *libllama) row(i int) []float32 { return unsafe.Slice(l.logits(l.context, int32(i)), l.vocab) }

// reset clears the KV cache.
func (l *libllama) reset() { l.clear(l.memory(l.context), true) }
