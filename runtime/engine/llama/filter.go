//go:build !nollama && (linux || darwin || windows) && (amd64 || arm64)

package llama

import (
	"encoding/binary"
	"sync"
	"unsafe"

	"github.com/ebitengine/purego"
)

// watch connects the library, which asks for every node of a graph whether it should be observed, with the tracer,
// which observes some passes. The library calls filter, a short assembly function, with the address of a watch:
//
//	bool filter(struct ggml_tensor *t, bool ask, watch *w)
//
// filter answers by the names of the nodes. It calls Go, which takes 100 times as long, only for matching nodes after
// they are computed or, without patterns, for every question. A pass that is not observed therefore costs nanoseconds
// per node. filter depends on the order of the fields.
type watch struct {
	on       uint64
	callback uintptr // address of the callback to tracer.observe
	nameAt   uintptr // offset of the name in a tensor, in bytes
	n        uint64  // number of patterns; 0: all nodes match, and each question goes to the tracer
	patterns [4]pattern

	tracer *tracer
}

// pattern is the prefix of a name as two words, each with a mask of the bits to compare.
type pattern [2]struct{ key, mask uint64 }

// patternOf returns the pattern of a prefix of at most 16 bytes.
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

// observeCallback is tracer.observe as a C callback. There is only one, since callbacks are never freed.
var observeCallback = sync.OnceValue(func() uintptr {
	return purego.NewCallback(func(tensor, ask, w uintptr) uintptr {
		if (*watch)(pointer(w)).tracer.observe(tensor, ask&0xff != 0) {
			return 1
		}
		return 0
	})
})

// newWatch returns a watch for a tracer, turned off.
func newWatch(t *tracer) *watch {
	return &watch{callback: observeCallback(), nameAt: t.lib.nameAt, tracer: t}
}

// address returns the user data for the library's calls of filter.
func (w *watch) address() uintptr { return uintptr(unsafe.Pointer(w)) }

// enable turns the watch on for nodes whose names start with one of the prefixes, or for all nodes if none exist.
// The library reads the watch during a pass, on the thread that computes it.
func (w *watch) enable(prefixes []string) {
	w.n = 0
	for _, prefix := range prefixes {
		w.patterns[w.n] = patternOf(prefix)
		w.n++
	}
	w.on = 1
}

// disable turns the watch off.
func (w *watch) disable() { w.on = 0 }
