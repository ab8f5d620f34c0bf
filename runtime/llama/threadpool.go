//go:build !nollama && (linux || darwin || windows) && (amd64 || arm64)

package llama

import "github.com/ebitengine/purego"

// pool keeps the CPU's threads between two graphs, as llama.cpp's own programs do. Without one the library starts and ends them
// for each graph, of which a pass that is watched has many.
type pool struct {
	lib     *library
	handle  uintptr
	threads []int // the system's ids of the threads in it; nil unknown
}

// poolParamsSize is more than struct ggml_threadpool_params has, whose size is that of a mask of all threads and some bytes.
const poolParamsSize = maxThreads + 512

// newPool starts the threads, of which the caller of the library is one.
func (l *library) newPool(threads int) *pool {
	p := &pool{lib: l}
	if l.newThreadpool == 0 || l.freeThreadpool == 0 {
		return p
	}
	params := make([]byte, poolParamsSize)
	l.poolParams(&params[0], int32(threads))
	p.threads = started(func() {
		var create func(params *byte) uintptr
		purego.RegisterFunc(&create, l.newThreadpool)
		p.handle = create(&params[0])
	})
	return p
}

// attach lets a context compute on the pool.
func (p *pool) attach(context uintptr) {
	if p.handle != 0 {
		p.lib.attachPool(context, p.handle, p.handle)
	}
}

// close ends the threads. No context may use them any more.
func (p *pool) close() {
	if p.handle != 0 {
		purego.SyscallN(p.lib.freeThreadpool, p.handle)
		p.handle = 0
	}
}
