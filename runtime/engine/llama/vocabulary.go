//go:build !nollama && (linux || darwin || windows) && (amd64 || arm64)

package llama

import (
	"strings"
	"sync"
	"unsafe"
)

// vocabulary converts text to tokens and back. It may be used from any goroutine, even while the model is being closed.
type vocabulary struct {
	vocabLib *library
	tokens   int    // 0 before open
	front    string // text of the token that the model requires in front, "" if none

	closing sync.RWMutex
	handle  uintptr // 0: the model is closed
}

func (v *vocabulary) open(l *library, model uintptr) {
	v.vocabLib, v.handle = l, l.vocabOf(model)
	v.tokens = int(l.vocabTokens(v.handle))
	v.front = v.bosText()
}

// bosText returns the text of the token that is put in front of any text.
func (v *vocabulary) bosText() string {
	front, of := v.encode("", false), v.encode("a", false)
	if len(front) == 0 || len(of) < 2 || of[0] != front[0] {
		return ""
	}
	return v.spell(front[0], true)
}

// close waits for current users.
func (v *vocabulary) close() {
	v.closing.Lock()
	defer v.closing.Unlock()
	v.handle = 0
}

// Encode implements engine.Engine.
func (v *vocabulary) Encode(dst []int32, text string, special bool) []int32 {
	v.closing.RLock()
	defer v.closing.RUnlock()
	if v.handle == 0 {
		return dst
	}
	if special && v.front != "" { // the library would warn if it occurs twice
		text = strings.TrimPrefix(text, v.front)
	}
	return append(dst, v.encode(text, special)...)
}

// encode tokenizes text, including tokens in front. The caller holds closing.
func (v *vocabulary) encode(text string, special bool) []int32 {
	encode := func(ids []int32) int32 {
		return v.vocabLib.tokenize(v.handle, unsafe.StringData(text), int32(len(text)), &ids[0], int32(len(ids)), true, special)
	}
	ids := make([]int32, len(text)+2)
	n := encode(ids)
	if n < 0 { // -n is the required size
		ids = make([]int32, -n)
		n = encode(ids)
	}
	return ids[:max(n, 0)]
}

// Piece implements engine.Engine.
func (v *vocabulary) Piece(id int32) string {
	v.closing.RLock()
	defer v.closing.RUnlock()
	if v.handle == 0 || id < 0 || int(id) >= v.tokens {
		return ""
	}
	return v.spell(id, false)
}

// spell returns the bytes of a token; those of special tokens only if special is set. The caller holds closing.
func (v *vocabulary) spell(id int32, special bool) string {
	piece := func(buf []byte) int32 {
		return v.vocabLib.piece(v.handle, id, &buf[0], int32(len(buf)), 0, special)
	}
	buf := make([]byte, 64)
	n := piece(buf)
	if n < 0 { // -n is the required size
		buf = make([]byte, -n)
		n = piece(buf)
	}
	return string(buf[:max(n, 0)])
}

// IsEOG implements engine.Engine.
func (v *vocabulary) IsEOG(id int32) bool {
	v.closing.RLock()
	defer v.closing.RUnlock()
	return v.handle != 0 && id >= 0 && int(id) < v.tokens && v.vocabLib.isEOG(v.handle, id)
}
