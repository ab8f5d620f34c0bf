package engine

import (
	"context"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime/source/scrape/gather"
)

// newCollector returns the collector for the engine that was identified.
func newCollector(s *Poller) collector {
	m := newMetrics(s)
	switch e := Of(s.info.Kind); {
	case e.collector != nil:
		return e.collector(s, m)
	case m != nil:
		return m
	}
	return listing{}
}

// metrics collects the Prometheus metrics of a server.
type metrics struct {
	path       string
	gatherer   *gather.Gatherer
	lastReport event.Time // when the last report was made; 0: never
	omitted    int
	malformed  int  // lines counted in gatherer.Malformed and already reported
	perModel   bool // the metrics are of one model of the server: it can be reloaded while the server keeps running
}

// newMetrics returns nil for a server without metrics, or with metrics that are not supported.
func newMetrics(s *Poller) *metrics {
	table := Of(s.info.Kind).Metrics
	if s.info.MetricsPath == "" || table == nil {
		return nil
	}
	return &metrics{path: s.info.MetricsPath, gatherer: gather.New(table)}
}

// read fetches the metrics and parses them.
func (m *metrics) read(ctx context.Context, s *Poller) error {
	a, err := s.client.Get(ctx, m.path)
	if err != nil {
		return err
	}
	defer a.Close()
	if err := a.Refusal(); err != nil {
		return err
	}
	m.gatherer.Now = float64(s.clock.Epoch()+int64(s.clock.Now())) / 1e9
	several := m.gatherer.Several()
	if err := m.gatherer.Read(a.Body); err != nil {
		return err
	}
	if m.gatherer.Several() && !several {
		s.logf("%s", gather.SeveralProcesses)
	}
	s.setModelNames(m.gatherer.Models(), s.info.Models)
	if !m.perModel {
		s.setRestarts(m.gatherer.Restarts)
	}
	if m.gatherer.Omitted > m.omitted {
		s.logf("omitted %d samples: too many label combinations of one metric", m.gatherer.Omitted-m.omitted)
		m.omitted = m.gatherer.Omitted
	}
	s.countMalformed(m.gatherer.Malformed - m.malformed)
	m.malformed = m.gatherer.Malformed
	return nil
}

func (m *metrics) collect(ctx context.Context, s *Poller) (*event.Aggregates, error) {
	if err := m.read(ctx, s); err != nil {
		return nil, err
	}
	return m.report(s), nil
}

// report returns what was counted since the last report of these metrics. That can differ from the Poller's last
// report, which may come from another server at this address, or from the time before this server had metrics.
func (m *metrics) report(s *Poller) *event.Aggregates {
	now, since := s.clock.Now(), int64(0)
	if m.lastReport != 0 {
		since = int64(now - m.lastReport)
	}
	m.lastReport = now
	report := m.gatherer.Report(since)
	addEndpoint(report, m.path, m.several())
	return report
}

// several returns why the numbers of the address cannot be told apart; "": they are of one process, or m is nil.
func (m *metrics) several() string {
	if m != nil && m.gatherer.Several() {
		return gather.SeveralProcesses
	}
	return ""
}

func (*metrics) interval(interval time.Duration) time.Duration { return interval }
