//go:build !nollama && (linux || darwin || windows) && (amd64 || arm64)

package llama

import (
	"encoding/binary"
	"sync"
	"unsafe"

	"github.com/ebitengine/purego"
)

// watch stands between the library, which asks about every node of a graph whether somebody wants to see it, and the tracer that
// does now and then. The library calls filter, some instructions of assembly, with the address of a watch:
//
//	bool filter(struct ggml_tensor *t, bool ask, watch *w)
//
// It answers by the names of the nodes. Only for the nodes that are wanted, once they are computed, and if there are no patterns for
// every question, the call goes on into Go, which takes a hundred times as long. So a pass that is not watched costs nanoseconds a
// node. filter relies on the order of the fields.
type watch struct {
	on       uint64
	slow     uintptr // the callback of tracer.see
	nameAt   uintptr // of the name in a tensor, in bytes
	n        uint64  // patterns in use; 0: all nodes are wanted, and each question goes to the tracer
	patterns [4]pattern

	tracer *tracer
}

// pattern is the beginning of a name: words of it, and the bits of them that count.
type pattern [2]struct{ key, mask uint64 }

// patternOf is the beginning of a name, at most 16 bytes of it.
func patternOf(prefix string) (p pattern) {
	var key, mask [16]byte
	copy(key[:], prefix)
	for i := range min(len(prefix), len(mask)) {
		mask[i] = 0xff
	}
	for i := range p {
		p[i].key, p[i].mask = binary.LittleEndian.Uint64(key[8*i:]), binary.LittleEndian.Uint64(mask[8*i:])
	}
	return p
}

// filterAddress is the address of filter, which is not a Go function.
var filterAddress uintptr

// seeCallback is tracer.see for C. There is one, since callbacks are never freed.
var seeCallback = sync.OnceValue(func() uintptr {
	return purego.NewCallback(func(tensor, ask, w uintptr) uintptr {
		if (*watch)(pointer(w)).tracer.see(tensor, ask&0xff != 0) {
			return 1
		}
		return 0
	})
})

// newWatch is a watch for a tracer, off.
func newWatch(t *tracer) *watch {
	return &watch{slow: seeCallback(), nameAt: t.lib.tensor.name, tracer: t}
}

// address is what the library is to call filter with.
func (w *watch) address() uintptr { return uintptr(unsafe.Pointer(w)) }

// look turns the watch on for nodes whose names begin with one of the prefixes, for all nodes without any. The library looks at the
// watch on the thread that computes a batch, while that computes.
func (w *watch) look(prefixes []string) {
	w.n = 0
	for _, prefix := range prefixes {
		w.patterns[w.n] = patternOf(prefix)
		w.n++
	}
	w.on = 1
}

// rest turns the watch off.
func (w *watch) rest() { w.on = 0 }
