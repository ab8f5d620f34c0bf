package discover

import (
	"context"
	"time"

	"github.com/llmtop/llmtop/runtime/source/scrape/fetch"
	"github.com/llmtop/llmtop/runtime/source/scrape/gather"
	"github.com/llmtop/llmtop/runtime/source/scrape/identify"
)

// counters are the metrics of one server, for one goroutine at a time. They are kept, since rates are the growth of counters
// between two reads.
type counters struct {
	kind identify.Kind
	*gather.Gatherer
	at time.Time // time of the last read; zero: none
}

// metricsLoad returns the load according to a server's metrics.
func (w *Watch) metricsLoad(ctx context.Context, c *fetch.Client, kind identify.Kind, path string) (l Load) {
	answer, err := c.Get(ctx, path)
	if err != nil {
		return l
	}
	defer answer.Close()
	m := w.countersOf(c.Address(), kind)
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
func (w *Watch) countersOf(address string, kind identify.Kind) *counters {
	w.mu.Lock()
	defer w.mu.Unlock()
	m := w.counters[address]
	if m == nil || m.kind != kind {
		if w.counters == nil {
			w.counters = map[string]*counters{}
		}
		m = &counters{kind: kind, Gatherer: gather.New(kind)}
		w.counters[address] = m
	}
	return m
}
