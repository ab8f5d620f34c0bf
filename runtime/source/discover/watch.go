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
	lookAt  time.Time                     // of the last search
	tokens  map[string]map[string]float64 // generated until then: by address, and by request

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
	r := w.search(ctx)
	w.rate(r.Engines, time.Now())
	return r
}

// rate sets the generation rates of engines, and keeps their counts for the next search.
func (w *Watch) rate(found []Found, now time.Time) {
	before, seconds := w.tokens, now.Sub(w.lookAt).Seconds()
	w.tokens, w.lookAt = map[string]map[string]float64{}, now
	for i := range found {
		f := &found[i]
		if f.tokens == nil {
			continue
		}
		w.tokens[f.Address] = f.tokens
		if f.Load.Decode.OK() {
			continue
		}
		f.Load.Decode = event.Absent(event.NotYet)
		if n, ok := newTokens(f.tokens, before[f.Address]); ok && seconds > 0 {
			f.Load.Decode = event.DerivedValue(n / seconds)
		}
	}
}
