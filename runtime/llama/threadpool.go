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

// struct ggml_threadpool_params: a mask of all threads, int n_threads, int priority, uint32 poll, and less than another 512 bytes.
const (
	poolParamsSize = maxThreads + 512
	poolThreadsAt  = maxThreads
	poolPollAt     = maxThreads + 8
)

// The library's threads spin for so long after each graph in case another one follows: about 2 ms for each unit, which is 50 by
// default. That would burn the cores between the tokens of paced requests; with 5 tokens of 0.17 ms take 1.5 % longer.
const (
	poolPollDefault = 50
	poolPoll        = 5
)

// newPool starts the threads, of which the caller of the library is one.
func (l *library) newPool(threads int) *pool {
	p := &pool{lib: l}
	if l.newThreadpool == 0 || l.freeThreadpool == 0 {
		return p
	}
	params := make(block, poolParamsSize)
	l.poolParams(&params[0], int32(threads))
	if params.int32(poolThreadsAt) == int32(threads) && params.int32(poolPollAt) == poolPollDefault {
		params.setInt32(poolPollAt, poolPoll)
	}
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
