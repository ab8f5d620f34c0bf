package discover

import (
	"context"
	"sync"
	"time"

	"github.com/llmtop/llmtop/runtime/scrape/fetch"
	"github.com/llmtop/llmtop/runtime/scrape/gather"
	"github.com/llmtop/llmtop/runtime/scrape/identify"
)

// asker reads the metrics of engines, and remembers them, since speeds are what counters gain between two looks.
type asker struct {
	mu    sync.Mutex // guards known, not what it leads to
	known map[string]*counters
}

// counters are the metrics of one server, which one question at a time is about.
type counters struct {
	kind identify.Kind
	*gather.Gatherer
	at time.Time // of the last text that was read; zero: none was
}

// load is what the metrics of a server tell.
func (a *asker) load(ctx context.Context, c *fetch.Client, kind identify.Kind, path string) (l Load) {
	answer, err := c.Get(ctx, path)
	if err != nil {
		return l
	}
	defer answer.Close()
	m := a.of(c.Address(), kind)
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

// of are the metrics of the server at an address, from the beginning if it has become another one.
func (a *asker) of(address string, kind identify.Kind) *counters {
	a.mu.Lock()
	defer a.mu.Unlock()
	m := a.known[address]
	if m == nil || m.kind != kind {
		if a.known == nil {
			a.known = map[string]*counters{}
		}
		m = &counters{kind: kind, Gatherer: gather.New(kind)}
		a.known[address] = m
	}
	return m
}
