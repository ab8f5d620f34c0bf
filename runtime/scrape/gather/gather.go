package gather

import (
	"errors"
	"io"
	"strings"
	"sync"

	"github.com/llmtop/llmtop/runtime/scrape/identify"
	"github.com/llmtop/llmtop/runtime/scrape/prom"
)

// maxSeries bounds the series of one metric that are told apart: engines x models x reasons. What is beyond is left out, and counted.
const maxSeries = 4096

// Gatherer follows the metrics of one server from text to text. It is not safe for use by several goroutines.
type Gatherer struct {
	index   map[string][]target // of its kind, shared
	metrics []metric
	scan    *prom.Scanner // nil between texts
	round   uint64        // of texts; the first is 1
	whole   uint64        // the last round that was read to its end
	anew    uint64        // the last round in which counters had begun anew
	began   float64
	ranks   bool     // samples tell workers apart that do the same
	order   []lookup // names in the order in which the text before had them, at most maxNames
	at      int      // in order, of the name that came last
	models  []string

	Restarts int // times that the counters have begun anew
	Left     int // samples that were left out, since there were too many
}

// part is what of a metric a sample holds.
type part uint8

const (
	whole part = iota
	bucketPart
	sumPart
	countPart
)

// target is what a name feeds.
type target struct {
	metric int
	part   part
}

// lookup remembers what a name feeds.
type lookup struct {
	name    string
	targets []target
}

// metric is what is known of an alias.
type metric struct {
	alias
	allowed []string // values of the label; nil: all

	round  uint64  // in which it was last seen
	n      int     // samples of this round
	sum    float64 // of gauges, this round
	gained float64 // of counters, since the last report
	series map[uint64]*series
	times  *times // since the last report; nil: it is no histogram
}

// series is one set of labels of a counter or histogram.
type series struct {
	round uint64
	value float64 // of a counter
	histogram
}

// New follows the metrics of a kind of engine, whose metrics must be known.
func New(k identify.Kind) *Gatherer {
	table := tables[k]
	g := &Gatherer{index: indexes[k], ranks: k == identify.SGLang, metrics: make([]metric, len(table))}
	for i, a := range table {
		m := &g.metrics[i]
		m.alias = a
		if a.label != "" {
			m.allowed = strings.Split(a.values, "|")
		}
		if a.hist != "" {
			m.times = &times{}
		}
		if a.hist != "" || a.role.counts() {
			m.series = make(map[uint64]*series)
		}
	}
	return g
}

// indexes are what names feed, by the kind of engine.
var indexes = func() map[identify.Kind]map[string][]target {
	all := make(map[identify.Kind]map[string][]target, len(tables))
	for k, table := range tables {
		index := make(map[string][]target)
		for i, a := range table {
			add := func(name string, p part) { index[name] = append(index[name], target{i, p}) }
			switch {
			case a.hist != "":
				add(a.metric+"_bucket", bucketPart)
				add(a.metric+"_sum", sumPart)
				add(a.metric+"_count", countPart)
			case a.role.counts() && !strings.HasSuffix(a.metric, "_sum"):
				add(a.metric+"_total", whole)
				add(a.metric, whole)
			default:
				add(a.metric, whole)
			}
		}
		all[k] = index
	}
	return all
}()

// The errors of a text: one that is none, and one without a number of the engine.
var (
	ErrNone    = errors.New("answers what are no metrics")
	ErrUnknown = errors.New("has no metrics that are known of its kind")
)

// scanners are those that no gatherer reads with: few of hundreds read at the same time, and each has a large buffer.
var scanners = sync.Pool{New: func() any { return prom.NewScanner(nil) }}

// Read takes in a text. Errors: that of r; a text that holds no metrics of the engine. What came before an error counts in the report after.
func (g *Gatherer) Read(r io.Reader) error {
	g.scan = scanners.Get().(*prom.Scanner)
	g.scan.Reset(r)
	defer func() {
		g.scan.Reset(nil)
		scanners.Put(g.scan)
		g.scan = nil
	}()
	g.round++
	g.at, g.models = 0, g.models[:0]
	known := false
	for g.scan.Next() {
		for _, t := range g.targets(g.scan.Name()) {
			known = g.sample(&g.metrics[t.metric], t.part) || known
		}
	}
	switch err := g.scan.Err(); {
	case err != nil:
		return err
	case g.scan.Samples() == 0 && g.scan.Garbage() > 0:
		return ErrNone
	case !known:
		return ErrUnknown
	}
	g.settle()
	return nil
}

// maxNames bounds the names whose order is remembered.
const maxNames = 1024

// targets is what a name feeds. Samples of one metric stand together, and metrics in the order in which they stood in the text before.
func (g *Gatherer) targets(name []byte) []target {
	for i := g.at; i < min(g.at+2, len(g.order)); i++ {
		if g.order[i].name == string(name) {
			g.at = i
			return g.order[i].targets
		}
	}
	targets := g.index[string(name)]
	if g.at < len(g.order) {
		g.at++
	}
	switch next := (lookup{string(name), targets}); {
	case g.at < len(g.order):
		g.order[g.at] = next
	case len(g.order) < maxNames:
		g.order = append(g.order, next)
	}
	return targets
}

// sample takes in one sample, and reports whether it counts.
func (g *Gatherer) sample(m *metric, p part) bool {
	labels := g.scan.Labels()
	if m.allowed != nil && !m.allows(labels.Raw(m.label)) || g.ranks && follows(labels) {
		return false
	}
	v, ok := g.scan.Value()
	if !ok || v != v || v < 0 { // no number; less than nothing is none of these
		return false
	}
	if m.round != g.round {
		m.round, m.n, m.sum = g.round, 0, 0
	}
	m.n++
	switch {
	case m.role == began:
		g.start(v)
		return true
	case m.role == kvConfig:
		v = cells(labels)
	case m.role == running, m.role == atWork:
		g.model(labels)
	}
	if m.series == nil {
		m.sum += v
		return true
	}
	s, le := g.of(m, labels)
	if s == nil {
		g.Left++
		return false
	}
	switch p {
	case whole:
		m.gained += g.rise(s, v)
	case bucketPart:
		if bound, ok := prom.Bound(le); ok {
			s.bucket(bound, v)
		}
	case sumPart:
		s.nextSum = v
	case countPart:
		s.nextCount, s.counted = v, g.round
	}
	return true
}

func (m *metric) allows(value []byte) bool {
	for _, a := range m.allowed {
		if a == string(value) {
			return true
		}
	}
	return false
}

// follows reports whether a sample is of a worker that does the same as another one: ranks of tensor and pipeline parallelism above the first,
// where ranks of data parallelism are not told apart.
func follows(l prom.Labels) bool {
	above := func(rank []byte) bool { return len(rank) > 0 && string(rank) != "0" }
	return (above(l.Raw("tp_rank")) || above(l.Raw("pp_rank"))) && l.Raw("dp_rank") == nil
}

// of is the series of the given labels, and their bound; nil if there are too many. One that is new has begun since the text before.
func (g *Gatherer) of(m *metric, l prom.Labels) (*series, []byte) {
	key, le := l.Key()
	s := m.series[key]
	if s == nil {
		if len(m.series) >= maxSeries {
			return nil, nil
		}
		s = &series{}
		s.fresh = g.whole > 0
		m.series[key] = s
	}
	if s.round != g.round {
		s.round = g.round
		s.begin()
	}
	return s, le
}

// rise is by how much a counter has risen. One that has fallen has begun anew.
func (g *Gatherer) rise(s *series, v float64) float64 {
	before, known, fresh := s.value, s.known, s.fresh
	s.value, s.known = v, true
	switch {
	case !known && !fresh:
		return 0
	case !known:
		return v
	case v < before:
		g.restarted()
		return v
	}
	return v - before
}

// restarted counts a restart, once a round.
func (g *Gatherer) restarted() {
	if g.anew != g.round {
		g.anew = g.round
		g.Restarts++
	}
}

// start takes the time at which the process has begun. Another one than before means that all counters have begun anew, also those that
// have risen above what they were.
func (g *Gatherer) start(at float64) {
	if g.began != 0 && at > g.began+1 {
		g.restarted()
		for i := range g.metrics {
			for _, s := range g.metrics[i].series {
				s.known, s.fresh = false, true
			}
		}
	}
	g.began = at
}
