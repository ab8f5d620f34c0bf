package engine

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime/source/scrape/fetch"
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
	return &listing{}
}

// metrics collects the Prometheus metrics of a server.
type metrics struct {
	path       string
	gatherer   *gather.Gatherer
	lastReport event.Time // when the last report was made; 0: never
	why        string     // why the last answer was not read; "": it was
	whySince   event.Time // when the server was identified again for that
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

// read fetches the metrics and parses them. Metrics that are not of the engine are no error but a reason, and the server is
// identified again: another one may answer now, or have just loaded another engine.
func (m *metrics) read(ctx context.Context, s *Poller) error {
	several, before := m.gatherer.Several(), m.why
	m.why = ""
	err := m.readOnce(ctx, s)
	if m.lastReport == 0 && fetch.HasStatus(err, http.StatusNotFound) {
		below := m.path
		for _, m.path = range s.client.Above(below) {
			if e := m.readOnce(ctx, s); e == nil {
				below, err = m.path, nil
				break
			}
		}
		m.path = below
	}
	if errors.Is(err, gather.ErrNoKnownMetrics) || errors.Is(err, gather.ErrNotMetrics) {
		err = m.readRenamed(ctx, s, err)
	}
	if m.why != "" && !m.perModel && (before == "" || s.clock.Now()-m.whySince > event.Time(listEvery)) {
		s.identified, m.whySince = false, s.clock.Now()
	}
	if err != nil || m.why != "" {
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

// readOnce fetches the metrics and parses them under the names that they had before.
func (m *metrics) readOnce(ctx context.Context, s *Poller) error {
	a, err := s.client.Get(ctx, m.path)
	if err != nil {
		return err
	}
	defer a.Close()
	if err := a.Refusal(); err != nil {
		return err
	}
	text, err := a.Text()
	if err != nil {
		return err
	}
	m.gatherer.Now = float64(s.clock.Epoch()+int64(s.clock.Now())) / 1e9
	return m.gatherer.Read(text)
}

// readRenamed reads the metrics under other names, if they have such. Otherwise err stays an error, or is the reason why
// metrics are not read of a server that has other endpoints, or had metrics of another engine.
func (m *metrics) readRenamed(ctx context.Context, s *Poller, err error) error {
	text := (&identification{client: s.client}).readMetrics(ctx, m.path)
	if as := Of(s.info.Kind).Metrics.In(text); as != nil && as != m.gatherer.Table {
		m.gatherer, m.lastReport, m.omitted, m.malformed = gather.New(as), 0, 0, 0
		s.logf("metrics at %s", as.Named(shownPath(m.path)))
		if err = m.readOnce(ctx, s); !errors.Is(err, gather.ErrNoKnownMetrics) {
			return err
		}
	}
	if families := gather.Families(text); families != "" && errors.Is(err, gather.ErrNoKnownMetrics) {
		err = fmt.Errorf("%w: %s", err, families)
	}
	if m.lastReport != 0 && !s.info.bare { // it has failed since
		return err
	}
	m.why = err.Error()
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
	if m.why != "" {
		report := &event.Aggregates{Interval: s.sinceReport()}
		addEndpoint(report, m.path, m.why)
		return report
	}
	now, since := s.clock.Now(), int64(0)
	if m.lastReport != 0 {
		since = int64(now - m.lastReport)
	}
	m.lastReport = now
	report := m.gatherer.Report(since)
	path, _, _ := strings.Cut(m.path, "?")
	addEndpoint(report, m.gatherer.Named(path), m.several())
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
