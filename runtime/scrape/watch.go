package scrape

import (
	"context"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime/scrape/gather"
	"github.com/llmtop/llmtop/runtime/scrape/identify"
)

// watcher is how a server of the kind that was found is watched.
func (s *Source) watcher() watch {
	switch m := newMetrics(s); s.kind {
	case identify.Llama:
		return &llama{}
	case identify.Ollama:
		return &ollama{}
	case identify.SGLang:
		return &sglang{metrics: m, shared: newShared(s.client.Address())}
	case identify.VLLM:
		return &vllm{metrics: m}
	case identify.TensorRT:
		return &tensorRT{metrics: m}
	default:
		if m != nil {
			return m
		}
	}
	return listing{}
}

// metrics watches a server by its metrics for Prometheus.
type metrics struct {
	path string
	from *gather.Gatherer
	told event.Time // when the last report was made of them; 0: none was
	left int
	part bool // of a server: of one of its models, which is loaded anew without it being started anew
}

// newMetrics is nil for a server without metrics that are known.
func newMetrics(s *Source) *metrics {
	if s.info.Metrics == "" || !gather.Knows(s.kind) {
		return nil
	}
	return &metrics{path: s.info.Metrics, from: gather.New(s.kind)}
}

// read asks for the metrics and takes them in.
func (m *metrics) read(ctx context.Context, s *Source) error {
	a, err := s.client.Get(ctx, m.path)
	if err != nil {
		return err
	}
	defer a.Close()
	if err := a.Refusal(); err != nil {
		return err
	}
	if err := m.from.Read(a.Body); err != nil {
		return err
	}
	s.named(m.from.Models())
	if !m.part {
		s.restarted(m.from.Restarts)
	}
	if m.from.Left > m.left {
		s.say("%d samples were left out: the server labels one metric in too many ways", m.from.Left-m.left)
		m.left = m.from.Left
	}
	return nil
}

func (m *metrics) look(ctx context.Context, s *Source) (*event.Report, error) {
	if err := m.read(ctx, s); err != nil {
		return nil, err
	}
	return m.report(s), nil
}

// report tells what has come since the last report of these metrics. The source's last report may be another's: of the server that was at the address
// before, or of the time before this one had metrics.
func (m *metrics) report(s *Source) *event.Report {
	now, since := s.opt.Clock.Now(), int64(0)
	if m.told != 0 {
		since = int64(now - m.told)
	}
	m.told = now
	report := m.from.Report(since)
	from(report, m.path, "")
	return report
}

func (*metrics) pause(interval time.Duration) time.Duration { return interval }
