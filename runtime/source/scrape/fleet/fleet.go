// Package fleet reads the metrics of many inference engines from a Prometheus server that already scrapes them: a few
// queries cover all of them, and no engine is polled directly. The stored samples of an engine are parsed like its own
// metrics text, so that counters, histograms and restarts work the same way.
//
// Terms: a target is what Prometheus scrapes, as in Prometheus itself; a replica is an inference engine, of one target or
// of several that are copies of each other; the server is Prometheus.
package fleet

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	runtime "github.com/llmtop/llmtop/runtime/engine"
	"github.com/llmtop/llmtop/runtime/source/scrape/engine"
	"github.com/llmtop/llmtop/runtime/source/scrape/fetch"
	"github.com/llmtop/llmtop/runtime/source/scrape/gather"
)

// Limits.
const (
	MaxReplicas       = 2000             // shown; further ones are omitted, and the log says how many
	queryTimeout      = 15 * time.Second // for a query
	maxResponseBytes  = 128 << 20        // of a response, decompressed
	nameInterval      = time.Minute      // between queries for new metric names
	maxBackoff        = 15 * time.Second // between attempts while Prometheus does not respond
	seedWindow        = time.Minute      // history read at the start, so that rates are available at once
	maxScrapeInterval = 2 * time.Minute  // larger gaps between scrapes do not count as the interval
)

// Options select the Prometheus server and the targets.
type Options struct {
	Address  string        // http://HOST:PORT
	Key      string        // sent to Prometheus only; "": none
	Match    string        // selects targets, in the form that ParseMatch returns; "": all
	Interval time.Duration // between queries for new samples
	Clock    runtime.Clock
	// OnReplica is called once for each new replica and returns the sink for its events. It must not block.
	OnReplica func(name string) event.Sink

	timeout time.Duration // for a query; 0: queryTimeout
}

// Poller queries one Prometheus server.
type Poller struct {
	opt    Options
	client *fetch.Client
	sink   event.Sink // for events of Prometheus itself
	self   event.EngineInfo

	tables         map[string]*gather.Table // by the names of existing metrics of engines
	engines        map[*gather.Table]*engine.Engine
	pattern        string // of these names
	namesAt        time.Time
	replicas       map[target]*replica // copies have the same
	instances      map[string]*instance
	jobs           map[string]bool // jobs whose targets are engines
	scrapeInterval float64         // s between scrapes, as observed; 0: not yet
	readAt         float64         // Unix time in s, on Prometheus' clock, of the last query for metrics
	backoff        time.Duration
	upTargets      int // number of targets that are up
	omitted        int // replicas above MaxReplicas
	text           bytes.Buffer
}

// target is a target of Prometheus.
type target struct {
	job, instance string
	labels        string // all labels of its metric up
}

func (t target) compare(o target) int {
	return cmp.Or(cmp.Compare(t.instance, o.instance), cmp.Compare(t.job, o.job), cmp.Compare(t.labels, o.labels))
}

// New prepares to query a Prometheus server; it sends nothing before Run. Errors: an invalid address.
func New(opt Options) (*Poller, error) {
	client, err := fetch.New(opt.Address, fetch.Options{Key: opt.Key, Timeout: cmp.Or(opt.timeout, queryTimeout), MaxBytes: maxResponseBytes})
	if err != nil {
		return nil, fmt.Errorf("poll Prometheus: %w", err)
	}
	s := &Poller{opt: opt, client: client, replicas: make(map[target]*replica), jobs: make(map[string]bool)}
	s.self = event.EngineInfo{
		Name: "Prometheus", Caps: event.CapAggregates, State: event.EngineStarting, Epoch: opt.Clock.Epoch(),
		Remote: event.Remote{Address: client.Address(), Link: event.LinkDisconnected, Reason: "not polled yet"},
	}
	return s, nil
}

// Address returns the address of Prometheus.
func (s *Poller) Address() string { return s.client.Address() }

// Run queries until ctx ends, whatever Prometheus does. Events of Prometheus itself go to sink.
func (s *Poller) Run(ctx context.Context, sink event.Sink) error {
	s.sink = sink
	defer s.client.Close()
	for ctx.Err() == nil {
		err := s.poll(ctx)
		if ctx.Err() != nil {
			break
		}
		s.setLink(err)
		select {
		case <-ctx.Done():
		case <-time.After(max(s.backoff, s.opt.Interval)):
		}
	}
	return nil
}

// poll checks for new samples and reads them.
func (s *Poller) poll(ctx context.Context) error {
	states, now, err := s.queryTargets(ctx)
	if err != nil {
		return err
	}
	up := 0
	for _, st := range states {
		up += int(st.value)
	}
	changed := up != s.upTargets // targets came up or went down: there may be new metrics
	if changed || time.Since(s.namesAt) > nameInterval || s.pattern == "" {
		if err := s.queryNames(ctx); err != nil {
			return err
		}
	}
	if s.pattern != "" && (changed || s.shouldRead(states, now)) {
		if err := s.readMetrics(ctx, states, now); err != nil {
			return err
		}
	}
	s.upTargets = up
	if err := s.addDownReplicas(ctx, states, now); err != nil {
		return err
	}
	if len(s.replicas) == 0 {
		return errors.New("no metrics of a supported engine in the last minutes")
	}
	s.updateLinks(states, now)
	return nil
}

// shouldRead reports whether to query the metrics of all replicas: when half of them have new samples, or a scrape
// interval after the last query.
func (s *Poller) shouldRead(states map[target]*up, now float64) bool {
	fresh := 0
	for t, r := range s.replicas {
		if st := states[t]; st != nil && st.value > 0 && st.at > r.scrapedAt && (r.source == t || r.source == target{}) {
			fresh++
		}
	}
	due := now-s.readAt >= s.scrapeInterval
	return fresh > 0 && (due || 2*fresh >= len(s.replicas)) || now-s.readAt >= seedWindow.Seconds()
}

// queryTargets returns the state of all targets and the time of the query.
func (s *Poller) queryTargets(ctx context.Context) (map[target]*up, float64, error) {
	states, now := make(map[target]*up), 0.0
	err := s.query(ctx, selector("up", "", s.opt.Match), 0, func(p *Sample) {
		if event.Plausible(p.Value) {
			t := targetOf(p)
			states[t] = &up{target: t, labels: p.Metric, value: p.Value}
		}
		now = p.At
	})
	s.setInstances(states)
	switch {
	case err != nil:
		return nil, 0, err
	case len(states) == 0 && s.opt.Match != "":
		return nil, 0, fmt.Errorf("no target matches {%s}", s.opt.Match)
	case len(states) == 0:
		return nil, 0, errors.New("no targets in Prometheus")
	}
	return states, now, s.queryScrapeTimes(ctx, states, now)
}

// queryScrapeTimes sets the time of the last scrape of each target, as of a given time.
func (s *Poller) queryScrapeTimes(ctx context.Context, states map[target]*up, at float64) error {
	return s.query(ctx, "timestamp("+selector("up", "", s.opt.Match)+")", at, func(p *Sample) {
		if st, ok := states[targetOf(p)]; ok && event.Plausible(p.Value) {
			st.at = p.Value
		}
	})
}

// targetOf returns the target whose metric up has the labels of a sample.
func targetOf(p *Sample) target {
	t := target{job: p.Metric["job"], instance: p.Metric["instance"]}
	t.labels = labelText(p.Metric, func(name string) bool { return name == "__name__" })
	return t
}

// queryNames reads the names of the engine metrics that exist.
func (s *Poller) queryNames(ctx context.Context) error {
	var patterns, names []string
	for _, e := range engine.Engines {
		if e.Metrics != nil {
			patterns = append(patterns, e.Metrics.Pattern())
		}
	}
	tables, engines := make(map[string]*gather.Table), make(map[*gather.Table]*engine.Engine)
	err := s.query(ctx, "count by(__name__)("+selector("", strings.Join(patterns, "|"), s.opt.Match)+")", 0, func(p *Sample) {
		name := p.Metric["__name__"]
		if e, as := engine.WithMetric(name); e != nil {
			tables[name], engines[as] = as, e
			names = append(append(names, name), as.Names()...)
		}
	})
	if err != nil || len(names) == 0 {
		return err
	}
	slices.Sort(names)
	names = append(slices.Compact(names), gather.ProcessStart)
	for i := range names {
		names[i] = regexp.QuoteMeta(names[i])
	}
	s.tables, s.engines, s.pattern, s.namesAt = tables, engines, strings.Join(names, "|"), time.Now()
	return nil
}

// readMetrics reads the metrics of all replicas; the first time also those of seedWindow ago.
func (s *Poller) readMetrics(ctx context.Context, states map[target]*up, now float64) error {
	if s.readAt == 0 {
		then := now - seedWindow.Seconds()
		before := make(map[target]*up, len(states))
		for t, st := range states {
			before[t] = &up{target: t, labels: st.labels}
		}
		if err := s.queryScrapeTimes(ctx, before, then); err != nil {
			return err
		}
		if err := s.queryMetrics(ctx, before, then, now); err != nil {
			return err
		}
	}
	if err := s.queryMetrics(ctx, states, now, now); err != nil {
		return err
	}
	s.readAt = now
	return nil
}

// queryMetrics queries the metrics as of a given time and passes them to the replicas.
func (s *Poller) queryMetrics(ctx context.Context, states map[target]*up, at, now float64) error {
	texts, strs := make(map[target][]line), make(map[string]string)
	if err := s.query(ctx, selector("", s.pattern, s.opt.Match), at, func(p *Sample) {
		if at := s.instances[p.Metric["instance"]]; at != nil {
			if u := at.targetOf(p.Metric); u != nil {
				texts[u.target] = append(texts[u.target], lineOf(p, u.labels, strs))
			}
		}
	}); err != nil {
		return err
	}
	var scrapes []scrape
	for _, t := range slices.SortedFunc(maps.Keys(texts), target.compare) {
		sc := scrape{target: t, at: states[t].at, table: s.tableOf(texts[t]), lines: texts[t]}
		if sc.table == nil || sc.at <= 0 {
			continue
		}
		s.jobs[t.job] = true
		if len(scrapes) > 0 && scrapes[0].target.instance != t.instance {
			s.feedInstance(scrapes, states, now)
			scrapes = nil
		}
		scrapes = append(scrapes, sc)
	}
	s.feedInstance(scrapes, states, now)
	return nil
}

// feedInstance passes the scrapes of one instance to its replicas: of copies, one of them.
func (s *Poller) feedInstance(scrapes []scrape, states map[target]*up, now float64) {
	var fed []*replica
	for len(scrapes) > 0 {
		copies, others := s.instances[scrapes[0].target.instance].takeCopies(scrapes)
		var r *replica
		for _, sc := range copies {
			switch old := s.replicas[sc.target]; {
			case old == nil:
			case slices.Contains(fed, old), slices.ContainsFunc(others, func(o scrape) bool { return o.target == old.source }):
				delete(s.replicas, sc.target) // it was taken for a copy of another process
			case r == nil:
				r = old
			}
		}
		if r == nil {
			if r = s.addReplica(copies[0].target, states[copies[0].target]); r == nil {
				return
			}
		}
		for _, sc := range copies {
			s.join(sc.target, r)
		}
		s.feedReplica(r, sourceOf(r, copies), now)
		fed, scrapes = append(fed, r), others
	}
}

// feedReplica passes a scrape to a replica, unless it already has it.
func (s *Poller) feedReplica(r *replica, st scrape, now float64) {
	if st.at <= r.scrapedAt {
		return
	}
	if r.scrapedAt > 0 && s.readAt > 0 { // not for the history read at the start
		s.noteScrapeInterval(st.at - r.scrapedAt)
	}
	r.source = st.target
	r.read(s.engines[st.table], st.table, st.lines, &s.text, st.at, max(s.sessionTime(st.at, now), 1))
}

// noteScrapeInterval records the time between two scrapes. The shortest one counts, because some scrapes may have been
// missed.
func (s *Poller) noteScrapeInterval(gap float64) {
	if gap > 0 && gap < maxScrapeInterval.Seconds() && (s.scrapeInterval == 0 || gap < s.scrapeInterval) {
		s.scrapeInterval = gap
	}
}

// sessionTime converts a time of Prometheus, whose current time is now, to the session's clock; it is below 0 before
// the session.
func (s *Poller) sessionTime(at, now float64) event.Time {
	return s.opt.Clock.Now() - event.Time(max(now-at, 0)*1e9)
}

// query runs an instant query as of a Unix time in s; 0: now.
func (s *Poller) query(ctx context.Context, promQL string, at float64, each func(*Sample)) error {
	in := url.Values{"query": {promQL}}
	if at > 0 {
		in.Set("time", strconv.FormatFloat(at, 'f', 3, 64))
	}
	a, err := s.client.Get(ctx, "/api/v1/query?"+in.Encode())
	if err != nil {
		return err
	}
	defer a.Close()
	if err := a.Refusal(); err != nil {
		return err
	}
	err = decode(a.Body, each)
	if errors.Is(err, errFormat) && a.Is("text/html") {
		return errors.New("response is a web page")
	}
	return err
}
