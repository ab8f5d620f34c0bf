package main

import (
	"path/filepath"
	"unsafe"

	"github.com/ebitengine/purego"
)

// modelParams is llama_model_params: 80 bytes, of which only vocabOnly is set.
type modelParams struct {
	_         [2]uintptr
	_         [6]int32
	_         [4]uintptr
	vocabOnly bool
	_         [5]bool
}

// library holds the vocabulary functions of libllama.
type library struct {
	defaults func() modelParams
	load     func(string, modelParams) uintptr
	vocab    func(uintptr) uintptr
	size     func(uintptr) int32
	tokenize func(uintptr, string, int32, unsafe.Pointer, int32, bool, bool) int32
	piece    func(uintptr, int32, unsafe.Pointer, int32, int32, bool) int32
	isEOG    func(uintptr, int32) bool
	bos, eos func(uintptr) int32
}

func openLibrary(dir string) *library {
	open := func(pattern string) uintptr {
		names, err := filepath.Glob(filepath.Join(dir, pattern))
		check(err)
		if len(names) == 0 {
			names = []string{filepath.Join(dir, pattern)}
		}
		h, err := purego.Dlopen(names[0], purego.RTLD_NOW|purego.RTLD_GLOBAL)
		check(err)
		return h
	}
	open("libggml-base*.so*")
	ggml, llama := open("libggml.*so*"), open("libllama.*so*")
	var logSet func(uintptr, uintptr)
	purego.RegisterLibFunc(&logSet, llama, "llama_log_set")
	logSet(purego.NewCallback(func(int32, *byte, uintptr) uintptr { return 0 }), 0)
	var backends func(string)
	purego.RegisterLibFunc(&backends, ggml, "ggml_backend_load_all_from_path")
	backends(dir)
	l := &library{}
	for name, f := range map[string]any{
		"llama_model_default_params": &l.defaults, "llama_model_load_from_file": &l.load, "llama_model_get_vocab": &l.vocab,
		"llama_vocab_n_tokens": &l.size, "llama_tokenize": &l.tokenize, "llama_token_to_piece": &l.piece, "llama_vocab_is_eog": &l.isEOG,
		"llama_vocab_bos": &l.bos, "llama_vocab_eos": &l.eos,
	} {
		purego.RegisterLibFunc(f, llama, name)
	}
	return l
}

// vocabulary is a vocabulary loaded by libllama.
type vocabulary struct {
	*library
	handle uintptr
}

func (l *library) open(path string) vocabulary {
	p := l.defaults()
	p.vocabOnly = true
	m := l.load(path, p)
	if m == 0 {
		panic("libllama cannot load " + path)
	}
	return vocabulary{l, l.vocab(m)}
}

func (v vocabulary) encode(text string, special bool) []int32 {
	buf := make([]int32, 4*len(text)+16)
	n := v.tokenize(v.handle, text, int32(len(text)), unsafe.Pointer(&buf[0]), int32(len(buf)), true, special)
	return buf[:n]
}

func (v vocabulary) facts() facts {
	f := facts{BOS: v.bos(v.handle), EOS: v.eos(v.handle)}
	for id := range v.size(v.handle) {
		if v.isEOG(v.handle, id) {
			f.EOG = append(f.EOG, id)
		}
		f.Pieces = append(f.Pieces, v.text(id, false))
		f.SpecialPieces = append(f.SpecialPieces, v.text(id, true))
	}
	return f
}

func (v vocabulary) text(id int32, special bool) string {
	var buf [1024]byte
	n := v.piece(v.handle, id, unsafe.Pointer(&buf[0]), int32(len(buf)), 0, special)
	return string(buf[:n])
}
