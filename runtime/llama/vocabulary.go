//go:build !nollama && (linux || darwin || windows) && (amd64 || arm64)

package llama

import (
	"sync"
	"unsafe"
)

// vocabulary turns text into tokens and back. It may be used from any goroutine, even while the model is closed.
type vocabulary struct {
	vocabLib *library
	tokens   int // 0 before open

	closing sync.RWMutex
	handle  uintptr // 0: there is no model any more
}

func (v *vocabulary) open(l *library, model uintptr) {
	v.vocabLib, v.handle = l, l.vocabOf(model)
	v.tokens = int(l.vocabTokens(v.handle))
}

// close waits for those who use it.
func (v *vocabulary) close() {
	v.closing.Lock()
	defer v.closing.Unlock()
	v.handle = 0
}

// Encode implements runtime.Engine.
func (v *vocabulary) Encode(dst []int32, text string, special bool) []int32 {
	v.closing.RLock()
	defer v.closing.RUnlock()
	if v.handle == 0 {
		return dst
	}
	encode := func(ids []int32) int32 {
		return v.vocabLib.tokenize(v.handle, unsafe.StringData(text), int32(len(text)), &ids[0], int32(len(ids)), true, special)
	}
	ids := make([]int32, len(text)+2)
	n := encode(ids)
	if n < 0 { // so many are needed
		ids = make([]int32, -n)
		n = encode(ids)
	}
	return append(dst, ids[:max(n, 0)]...)
}

// Piece implements runtime.Engine.
func (v *vocabulary) Piece(id int32) string {
	v.closing.RLock()
	defer v.closing.RUnlock()
	if v.handle == 0 || id < 0 || int(id) >= v.tokens {
		return ""
	}
	piece := func(buf []byte) int32 {
		return v.vocabLib.piece(v.handle, id, &buf[0], int32(len(buf)), 0, false)
	}
	buf := make([]byte, 64)
	n := piece(buf)
	if n < 0 { // so many are needed
		buf = make([]byte, -n)
		n = piece(buf)
	}
	return string(buf[:max(n, 0)])
}

// IsEOG implements runtime.Engine.
func (v *vocabulary) IsEOG(id int32) bool {
	v.closing.RLock()
	defer v.closing.RUnlock()
	return v.handle != 0 && id >= 0 && int(id) < v.tokens && v.vocabLib.isEOG(v.handle, id)
}
