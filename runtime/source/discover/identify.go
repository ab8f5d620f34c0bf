package discover

import (
	"context"
	"errors"
	"time"

	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/runtime/source/scrape/engine"
	"github.com/llmtop/llmtop/runtime/source/scrape/fetch"
	"github.com/llmtop/llmtop/runtime/source/scrape/gather"
)

// maxAnswer limits the size of one answer, in bytes.
const maxAnswer = 2 << 20

// identify returns what the server at http://HOST:PORT reports, with read-only requests; Kind is "" if it does not answer
// like an engine. It adds rates for servers that it has queried before. It sends no key, because the listener is unknown.
// awake: its models are known to never sleep. It fails if the server does not answer in time.
func (w *Watch) identify(ctx context.Context, base string, awake bool) (Found, error) {
	c, err := fetch.New(base, fetch.Options{MaxBytes: maxAnswer})
	if err != nil {
		return Found{}, err
	}
	defer c.Close()
	info, err := engine.Identify(ctx, c)
	f := Found{Kind: info.Kind, Version: info.Version, Model: modelOf(info.Models)}
	if info.NeedsKey {
		f.State = NeedsKey
	}
	switch {
	case fetch.HasStatus(err), errors.Is(err, engine.ErrNoEngine):
		return f, nil
	case err != nil || info.NeedsKey:
		return f, err
	}
	info.Sleeps = info.Sleeps && !awake
	switch e := engine.Of(info.Kind); {
	case e.Load != nil:
		f.Load, f.tokens = e.Load(ctx, c, &info)
	case e.Metrics != nil && info.MetricsPath != "":
		f.Load = w.metricsLoad(ctx, c, e, info.MetricsPath)
	}
	return f, nil
}

// modelOf names the loaded model, and the number of others.
func modelOf(models []engine.Model) string {
	name, more := "", 0
	for _, m := range models {
		switch {
		case !m.Loaded || m.Name == "":
		case name == "":
			name = engine.FileName(m.Name)
		default:
			more++
		}
	}
	if more > 0 {
		name += " and " + metric.Plural(more, "other")
	}
	return name
}

// metricsLoad returns the load according to a server's metrics.
func (w *Watch) metricsLoad(ctx context.Context, c *fetch.Client, e *engine.Engine, path string) (l engine.Load) {
	answer, err := c.Get(ctx, path)
	if err != nil {
		return l
	}
	defer answer.Close()
	m := w.serverAt(c.Address(), e)
	if answer.Refusal() != nil || m.metrics.Read(answer.Body) != nil {
		return l
	}
	now, since := time.Now(), int64(0)
	if !m.readAt.IsZero() {
		since = int64(now.Sub(m.readAt))
	}
	m.readAt = now
	report := m.metrics.Report(since)
	return engine.Load{Running: report.Running, Waiting: report.Waiting, Decode: report.Decode}
}

// serverAt returns what is kept of the server at an address, for one goroutine at a time. Its metrics start empty if the
// engine there is another one.
func (w *Watch) serverAt(address string, e *engine.Engine) *server {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := w.servers[address]
	if s == nil || s.engine != e {
		if w.servers == nil {
			w.servers = map[string]*server{}
		}
		s = &server{engine: e, metrics: gather.New(e.Metrics)}
		w.servers[address] = s
	}
	return s
}
