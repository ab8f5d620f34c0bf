package discover

import (
	"context"
	"sync"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime/host"
	"github.com/llmtop/llmtop/runtime/source/scrape/engine"
	"github.com/llmtop/llmtop/runtime/source/scrape/gather"
)

// Watch searches repeatedly. For engines that do not report their generation rate, it computes it from the tokens
// generated between two searches. The zero value is ready to use, by one goroutine.
type Watch struct {
	Options Options
	before  map[string]made // by address

	mu      sync.Mutex         // guards the maps below
	servers map[string]*server // with metrics, by address
	models  map[host.ID]string // of processes that link llama.cpp
}

// server is what is kept of a server with metrics: rates are the growth of counters between two reads.
type server struct {
	engine  *engine.Engine
	metrics *gather.Gatherer
	readAt  time.Time // zero: never
}

// complete sets what a search calls.
func (w *Watch) complete(opt *Options) {
	if opt.identify == nil {
		opt.identify = w.identify
	}
	if opt.inspect == nil && opt.Root == "" {
		opt.inspect = w.inspect
	}
}

// made is the tokens generated up to a time.
type made struct {
	at     time.Time
	tokens map[string]float64 // by request
}

// newTokens returns the tokens generated since before, by the counts of each request. ok is false if the number is unknown:
// after a restart, or if a request ended in between, since its final count is unknown.
func newTokens(p, before map[string]float64) (sum float64, ok bool) {
	for key := range before {
		if _, here := p[key]; !here {
			return 0, false
		}
	}
	for key, n := range p {
		if n < before[key] {
			return 0, false
		}
		sum += n - before[key]
	}
	return sum, p != nil && before != nil
}

// Look is Find, with generation rates from the second call on.
func (w *Watch) Look(ctx context.Context) Result {
	opt := w.Options
	w.complete(&opt)
	r := Find(ctx, opt)
	now := time.Now()
	made := map[string]made{}
	for i := range r.Engines {
		f := &r.Engines[i]
		if f.tokens == nil {
			continue
		}
		made[f.Address] = w.rate(f, now)
	}
	w.before = made
	return r
}

// rate sets an engine's generation rate and returns its current counts.
func (w *Watch) rate(f *Found, now time.Time) made {
	before, seen := w.before[f.Address]
	seconds := now.Sub(before.at).Seconds()
	switch tokens, ok := newTokens(f.tokens, before.tokens); {
	case f.Load.Decode.OK():
	case seen && ok && seconds > 0:
		f.Load.Decode = event.Reading{V: tokens / seconds, Origin: event.Derived}
	default:
		f.Load.Decode = event.Absent(event.NotYet)
	}
	return made{now, f.tokens}
}
