//go:build !nollama && (linux || darwin || windows) && (amd64 || arm64)

package llama

import (
	"strings"
	"sync"
	"unsafe"
)

// vocabulary turns text into tokens and back. It may be used from any goroutine, even while the model is closed.
type vocabulary struct {
	vocabLib *library
	tokens   int    // 0 before open
	front    string // how the token that the model wants in front is spelled, "" if it wants none

	closing sync.RWMutex
	handle  uintptr // 0: there is no model any more
}

func (v *vocabulary) open(l *library, model uintptr) {
	v.vocabLib, v.handle = l, l.vocabOf(model)
	v.tokens = int(l.vocabTokens(v.handle))
	v.front = v.begins()
}

// begins spells the token that any text is given in front.
func (v *vocabulary) begins() string {
	front, of := v.encode("", false), v.encode("a", false)
	if len(front) == 0 || len(of) < 2 || of[0] != front[0] {
		return ""
	}
	return v.spell(front[0], true)
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
	if special && v.front != "" { // the library would warn of having it twice
		text = strings.TrimPrefix(text, v.front)
	}
	return append(dst, v.encode(text, special)...)
}

// encode is text in tokens, with those in front. The caller holds closing.
func (v *vocabulary) encode(text string, special bool) []int32 {
	encode := func(ids []int32) int32 {
		return v.vocabLib.tokenize(v.handle, unsafe.StringData(text), int32(len(text)), &ids[0], int32(len(ids)), true, special)
	}
	ids := make([]int32, len(text)+2)
	n := encode(ids)
	if n < 0 { // so many are needed
		ids = make([]int32, -n)
		n = encode(ids)
	}
	return ids[:max(n, 0)]
}

// Piece implements runtime.Engine.
func (v *vocabulary) Piece(id int32) string {
	v.closing.RLock()
	defer v.closing.RUnlock()
	if v.handle == 0 || id < 0 || int(id) >= v.tokens {
		return ""
	}
	return v.spell(id, false)
}

// spell is the bytes of a token; special ones have some only if they are wanted. The caller holds closing.
func (v *vocabulary) spell(id int32, special bool) string {
	piece := func(buf []byte) int32 {
		return v.vocabLib.piece(v.handle, id, &buf[0], int32(len(buf)), 0, special)
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
