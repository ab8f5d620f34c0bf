//go:build !nollama && (linux || darwin || windows) && (amd64 || arm64)

package llama

import (
	"sync"
	"unsafe"

	"github.com/ebitengine/purego"
)

// watch stands between the library, which asks about every node of a graph whether somebody wants to see it, and the tracer that
// does now and then. The library calls filter, some instructions of assembly without a way into Go, with the address of a watch;
// only while it is on the call goes on to Go. So a pass that is not watched costs nanoseconds a node.
//
// filter relies on the order of the first two fields.
type watch struct {
	on     uint64
	slow   uintptr
	tracer *tracer
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
func newWatch(t *tracer) *watch { return &watch{slow: seeCallback(), tracer: t} }

// address is what the library is to call filter with.
func (w *watch) address() uintptr { return uintptr(unsafe.Pointer(w)) }

// set turns the watch on or off. The library looks at it on the thread that computes a batch, while that computes.
func (w *watch) set(on bool) {
	w.on = 0
	if on {
		w.on = 1
	}
}
