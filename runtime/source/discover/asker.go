package discover

import (
	"context"
	"sync"
	"time"

	"github.com/llmtop/llmtop/runtime/source/scrape/fetch"
	"github.com/llmtop/llmtop/runtime/source/scrape/gather"
	"github.com/llmtop/llmtop/runtime/source/scrape/identify"
)

// asker reads the metrics of engines and keeps them, since rates are the growth of counters between two reads.
type asker struct {
	mu       sync.Mutex // guards the map counters, not its values
	counters map[string]*counters
}

// counters are the metrics of one server, for one goroutine at a time.
type counters struct {
	kind identify.Kind
	*gather.Gatherer
	at time.Time // time of the last read; zero: none
}

// load returns the load according to a server's metrics.
func (a *asker) load(ctx context.Context, c *fetch.Client, kind identify.Kind, path string) (l Load) {
	answer, err := c.Get(ctx, path)
	if err != nil {
		return l
	}
	defer answer.Close()
	m := a.countersOf(c.Address(), kind)
	if answer.Refusal() != nil || m.Read(answer.Body) != nil {
		return l
	}
	now, since := time.Now(), int64(0)
	if !m.at.IsZero() {
		since = int64(now.Sub(m.at))
	}
	m.at = now
	report := m.Report(since)
	return Load{Running: report.Running, Waiting: report.Waiting, Decode: report.Decode}
}

// countersOf returns the metrics of the server at an address. They start empty if the engine there is of another kind.
func (a *asker) countersOf(address string, kind identify.Kind) *counters {
	a.mu.Lock()
	defer a.mu.Unlock()
	m := a.counters[address]
	if m == nil || m.kind != kind {
		if a.counters == nil {
			a.counters = map[string]*counters{}
		}
		m = &counters{kind: kind, Gatherer: gather.New(kind)}
		a.counters[address] = m
	}
	return m
}
