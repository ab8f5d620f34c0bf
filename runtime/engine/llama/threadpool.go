//go:build !nollama && (linux || darwin || windows) && (amd64 || arm64)

package llama

import "github.com/ebitengine/purego"

// pool keeps the CPU threads between graphs, as llama.cpp's own programs do. Otherwise the library would start and end
// threads for each graph; an observed pass has many graphs.
type pool struct {
	lib     *library
	handle  uintptr
	threads []int // ids of the pool's threads; nil if not available
}

// struct ggml_threadpool_params: a mask of all threads, int n_threads, int priority, uint32 poll, and less than 512
// more bytes.
const (
	poolParamsSize = maxThreads + 512
	poolThreadsAt  = maxThreads
	poolPollAt     = maxThreads + 8
)

// The library's threads spin after each graph in case another one follows: about 2 ms per unit of poll, which is 50 by
// default. That would keep the cores busy between the tokens of paced requests. With 5, tokens of 0.17 ms take 1.5 %
// longer.
const (
	poolPollDefault = 50
	poolPoll        = 5
)

// newPool starts the threads. The thread that calls the library is one of them.
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
	p.threads = threadsStartedBy(func() {
		var create func(params *byte) uintptr
		purego.RegisterFunc(&create, l.newThreadpool)
		p.handle = create(&params[0])
	})
	return p
}

// attach makes a context use the pool.
func (p *pool) attach(context uintptr) {
	if p.handle != 0 {
		p.lib.attachPool(context, p.handle, p.handle)
	}
}

// close ends the threads. No context may use them afterwards.
func (p *pool) close() {
	if p.handle != 0 {
		purego.SyscallN(p.lib.freeThreadpool, p.handle)
		p.handle = 0
	}
}
