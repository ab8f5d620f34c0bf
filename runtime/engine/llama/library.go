//go:build !nollama && (linux || darwin || windows) && (amd64 || arm64)

package llama

import (
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"sync"

	"github.com/ebitengine/purego"

	llamacpp "github.com/llmtop/llmtop/runtime/engine/llama/library"
)

// library is the loaded llama.cpp. A process loads it once and never unloads it: libggml keeps threads and devices.
type library struct {
	dir     string
	release release
	commit  string
	kernels string // variant of the CPU backend, for example "zen4"; "" if there are no variants
	layout  *layout
	nameAt  uintptr // offset of the name in a tensor, in bytes
	calls
	modelDefaults, contextDefaults block
	loadModel                      func(path string, params block) uintptr
	newContext                     func(model uintptr, params block) uintptr
	newThreadpool, freeThreadpool  uintptr // 0: the CPU backend has none
}

// calls holds the library functions with scalar arguments. Their tags name the library and the function.
type calls struct {
	backendInit   func()                                                                                         `llama:"llama_backend_init"`
	freeModel     func(model uintptr)                                                                            `llama:"llama_model_free"`
	freeContext   func(context uintptr)                                                                          `llama:"llama_free"`
	vocabOf       func(model uintptr) uintptr                                                                    `llama:"llama_model_get_vocab"`
	vocabTokens   func(vocab uintptr) int32                                                                      `llama:"llama_vocab_n_tokens"`
	isEOG         func(vocab uintptr, id int32) bool                                                             `llama:"llama_vocab_is_eog"`
	tokenize      func(vocab uintptr, text *byte, length int32, ids *int32, room int32, add, special bool) int32 `llama:"llama_tokenize"`
	piece         func(vocab uintptr, id int32, buf *byte, room, strip int32, special bool) int32                `llama:"llama_token_to_piece"`
	trainContext  func(model uintptr) int32                                                                      `llama:"llama_model_n_ctx_train"`
	width         func(model uintptr) int32                                                                      `llama:"llama_model_n_embd"`
	layers        func(model uintptr) int32                                                                      `llama:"llama_model_n_layer"`
	heads         func(model uintptr) int32                                                                      `llama:"llama_model_n_head"`
	kvHeads       func(model uintptr) int32                                                                      `llama:"llama_model_n_head_kv"`
	parameters    func(model uintptr) uint64                                                                     `llama:"llama_model_n_params"`
	size          func(model uintptr) uint64                                                                     `llama:"llama_model_size"`
	meta          func(model uintptr, key string, buf *byte, room uintptr) int32                                 `llama:"llama_model_meta_val_str"`
	hasEncoder    func(model uintptr) bool                                                                       `llama:"llama_model_has_encoder"`
	isRecurrent   func(model uintptr) bool                                                                       `llama:"llama_model_is_recurrent"`
	isHybrid      func(model uintptr) bool                                                                       `llama:"llama_model_is_hybrid"`
	memory        func(context uintptr) uintptr                                                                  `llama:"llama_get_memory"`
	remove        func(memory uintptr, sequence, from, to int32) bool                                            `llama:"llama_memory_seq_rm"`
	lastPosition  func(memory uintptr, sequence int32) int32                                                     `llama:"llama_memory_seq_pos_max"`
	decode        func(context uintptr, b batch) int32                                                           `llama:"llama_decode"`
	logits        func(context uintptr, row int32) *float32                                                      `llama:"llama_get_logits_ith"`
	synchronize   func(context uintptr)                                                                          `llama:"llama_synchronize"`
	attachPool    func(context, decode, prompt uintptr)                                                          `llama:"llama_attach_threadpool"`
	detachPool    func(context uintptr)                                                                          `llama:"llama_detach_threadpool"`
	setLog        func(callback, data uintptr)                                                                   `llama:"llama_log_set"`
	setGGMLLog    func(callback, data uintptr)                                                                   `ggml-base:"ggml_log_set"`
	setAbort      func(callback uintptr) uintptr                                                                 `ggml-base:"ggml_set_abort_callback"`
	tensorGet     func(tensor uintptr, dst *byte, from, n uintptr)                                               `ggml-base:"ggml_backend_tensor_get"`
	tensorBytes   func(tensor uintptr) uintptr                                                                   `ggml-base:"ggml_nbytes"`
	tensorName    func(tensor uintptr) uintptr                                                                   `ggml-base:"ggml_get_name"`
	tensorRows    func(tensor uintptr) int64                                                                     `ggml-base:"ggml_nrows"`
	opName        func(tensor uintptr) string                                                                    `ggml-base:"ggml_op_desc"`
	devices       func() uintptr                                                                                 `ggml:"ggml_backend_dev_count"`
	device        func(i uintptr) uintptr                                                                        `ggml:"ggml_backend_dev_get"`
	deviceType    func(device uintptr) int32                                                                     `ggml-base:"ggml_backend_dev_type"`
	deviceName    func(device uintptr) string                                                                    `ggml-base:"ggml_backend_dev_name"`
	deviceAbout   func(device uintptr) string                                                                    `ggml-base:"ggml_backend_dev_description"`
	deviceMemory  func(device uintptr, free, total *uintptr)                                                     `ggml-base:"ggml_backend_dev_memory"`
	deviceBackend func(device uintptr) uintptr                                                                   `ggml-base:"ggml_backend_dev_backend_reg"`
	procAddress   func(backend uintptr, name string) uintptr                                                     `ggml-base:"ggml_backend_reg_get_proc_address"`
	poolParams    func(params *byte, threads int32)                                                              `ggml-base:"ggml_threadpool_params_init"`
	loadBackends  func(dir string)                                                                               `ggml:"ggml_backend_load_all_from_path"`
}

// batch is struct llama_batch, unchanged since 2024.
//
//lint:ignore U1000 the library reads all fields
type batch struct {
	n, _                                    int32
	token, embd, pos, nSeqID, seqID, logits uintptr
}

// loaded is the library of this process.
var loaded struct {
	sync.Mutex
	*library
}

// open loads the libraries in a folder. A process can load only one.
func open(dir string) (*library, error) {
	loaded.Lock()
	defer loaded.Unlock()
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("load llama.cpp: %w", err)
	}
	if l := loaded.library; l != nil {
		if l.dir != dir {
			return nil, fmt.Errorf("load llama.cpp from %s: this process has already loaded it from %s", dir, l.dir)
		}
		return l, nil
	}
	l := &library{dir: dir}
	if err := l.load(); err != nil {
		return nil, fmt.Errorf("load llama.cpp from %s: %w", dir, err)
	}
	loaded.library = l
	return l, nil
}

// load checks release and layout of the libraries before it calls any of their other functions.
func (l *library) load() error {
	found, err := llamacpp.Look(l.dir, llamacpp.Named)
	if err != nil {
		return err
	}
	handles := map[string]uintptr{}
	for _, lib := range []struct{ name, path string }{{"ggml-base", found.Base}, {"ggml", found.GGML}, {"llama", found.Llama}} {
		if lib.path == "" {
			return errors.New(found.Why)
		}
		if handles[lib.name], err = dlopen(lib.path); err != nil {
			return fmt.Errorf("load %s: %w", filepath.Base(lib.path), err)
		}
	}
	l.release = release{llama: text(handles["llama"], "llama_version"), ggml: text(handles["ggml-base"], "ggml_version")}
	l.commit = text(handles["ggml-base"], "ggml_commit")
	if l.layout, err = layoutOf(l.release); err != nil {
		return err
	}
	if err := l.bind(handles); err != nil {
		return err
	}
	if err := l.layout.guard(l.release, l.modelDefaults, l.contextDefaults); err != nil {
		return err
	}
	if err := l.measureTensor(); err != nil {
		return err
	}
	callback := logCallback()
	l.setGGMLLog(callback, 0)
	l.setLog(callback, 0)
	l.setAbort(abortCallback())
	log.during(l.noteBackend, false, func() {
		l.loadBackends(l.dir)
		l.backendInit()
	})
	return l.findThreadpool()
}

// text calls a function that returns a string; "unknown" if it does not exist.
func text(lib uintptr, name string) string {
	address, err := dlsym(lib, name)
	if err != nil {
		return "unknown"
	}
	var f func() string
	purego.RegisterFunc(&f, address)
	return f()
}

// bind looks up all functions.
func (l *library) bind(handles map[string]uintptr) error {
	var missing error
	address := func(lib, name string) uintptr {
		a, err := dlsym(handles[lib], name)
		if err != nil && missing == nil {
			missing = fmt.Errorf("function %s is missing in lib%s", name, lib)
		}
		return a
	}
	functions := reflect.ValueOf(&l.calls).Elem()
	for i := range functions.NumField() {
		field := functions.Type().Field(i)
		for lib := range handles {
			if name, ok := field.Tag.Lookup(lib); ok {
				if a := address(lib, name); a != 0 {
					purego.RegisterFunc(reflect.NewAt(field.Type, functions.Field(i).Addr().UnsafePointer()).Interface(), a)
				}
			}
		}
	}
	modelDefaults, contextDefaults := address("llama", "llama_model_default_params"), address("llama", "llama_context_default_params")
	loadModel, newContext := address("llama", "llama_model_load_from_file"), address("llama", "llama_init_from_model")
	if missing != nil {
		return missing
	}
	l.modelDefaults, l.contextDefaults = returned(modelDefaults, l.layout.model.size), returned(contextDefaults, l.layout.context.size)
	l.loadModel, l.newContext = passing[string](loadModel, l.layout.model.size), passing[uintptr](newContext, l.layout.context.size)
	return nil
}

// slack is the number of bytes checked after a returned struct, to detect a longer one.
const slack = 256

// structType returns a struct type of the given size. Structs longer than two words are passed in memory, independently
// of their fields.
func structType(size int) reflect.Type {
	words := reflect.ArrayOf((size+7)/8, reflect.TypeFor[uint64]())
	return reflect.StructOf([]reflect.StructField{{Name: "Words", Type: words}})
}

// returned calls a function without arguments that returns a struct, and returns the struct with slack after it.
func returned(address uintptr, size int) block {
	f := reflect.New(reflect.FuncOf(nil, []reflect.Type{structType(size + slack)}, false))
	purego.RegisterFunc(f.Interface(), address)
	words := f.Elem().Call(nil)[0].Field(0)
	out := make(block, 8*words.Len())
	for i := range words.Len() {
		out.setWord(8*i, words.Index(i).Uint())
	}
	return out
}

// passing returns a function that takes an argument and a struct by value, and returns a pointer.
func passing[T any](address uintptr, size int) func(T, block) uintptr {
	params := structType(size)
	f := reflect.New(reflect.FuncOf([]reflect.Type{reflect.TypeFor[T](), params}, []reflect.Type{reflect.TypeFor[uintptr]()}, false))
	purego.RegisterFunc(f.Interface(), address)
	return func(first T, b block) uintptr {
		v := reflect.New(params).Elem()
		for i := range v.Field(0).Len() {
			v.Field(0).Index(i).SetUint(b.word(8 * i))
		}
		return uintptr(f.Elem().Call([]reflect.Value{reflect.ValueOf(first), v})[0].Uint())
	}
}

// findThreadpool looks up the thread pool functions of the CPU backend.
func (l *library) findThreadpool() error {
	for i := range l.devices() {
		d := l.device(i)
		if l.deviceType(d) != deviceCPU {
			continue
		}
		reg := l.deviceBackend(d)
		l.newThreadpool, l.freeThreadpool = l.procAddress(reg, "ggml_threadpool_new"), l.procAddress(reg, "ggml_threadpool_free")
		return nil
	}
	return errors.New("no backend for this CPU in the folder")
}
