package gather

import (
	"bytes"
	"cmp"
	"errors"
	"slices"
	"strings"

	"github.com/llmtop/llmtop/runtime/source/scrape/identify"
	"github.com/llmtop/llmtop/runtime/source/scrape/prom"
)

// maxSeries limits the label combinations of one metric (engines x models x reasons). Samples above it are omitted and
// counted.
const maxSeries = 4096

// Gatherer reads the metrics of one server, text by text. It is not safe for concurrent use.
type Gatherer struct {
	*index       // for the kind of engine, shared
	metrics      []metric
	*reader             // nil between texts
	round        uint64 // number of the text, from 1
	lastComplete uint64 // last round that was read to the end
	lastReset    uint64 // last round in which a counter was reset
	processStart float64
	hitsAhead    float64 // tokens from a cache counted before the prompts that they are of
	perRank      bool    // samples of several ranks repeat the same work
	lines        textLines
	models       []string
	adapters     []string // LoRA adapters in the last text
	adaptersAt   float64  // Unix time in s of adapters
	rankLabel    string   // label of data-parallel ranks; "": unknown
	ranks        []rank   // in the last text
	experts      expertRanks
	last         lastSeries
	added        knownLine // the last sample that was added to a series, addedTo, without head and number
	addedTo      *series
	label        string // the last label that labelValue was asked for in this line, and its value
	value        []byte

	Restarts  int // counter resets
	Omitted   int // samples above maxSeries
	Malformed int // lines that were invalid or had an implausible value
}

// part is the part of a metric that a sample holds.
type part uint8

const (
	valuePart part = iota
	bucketPart
	sumPart
	countPart
)

// metricRef is a metric and the part of it that a sample name holds.
type metricRef struct {
	metric int
	part   part
}

// metric is the state of an alias. What only some metrics need comes with their first sample: hundreds of servers are
// watched, each with a part of the metrics.
type metric struct {
	*alias

	round    uint64             // in which it was last seen
	n        int                // samples in this round
	sum      float64            // of gauges and counters, in this round
	increase float64            // of counters, since the last report
	series   []*series          // ascending by key; most metrics have one or a few
	interval *intervalHistogram // since the last report; nil: not a histogram, or no sample yet
}

// series is one label combination of a counter or histogram.
type series struct {
	metric *metric
	number uint32 // in textLines; 0: none

	key   uint64 // hash of the labels
	round uint64
	value float64 // of a counter

	hasPrevious  bool // there is a previous value
	startsAtZero bool // the series began after the first text, so all of its counts are new

	*histogram // nil: a counter
}

// lastSeries is the series of the last bucket: those of one series follow each other, and differ in their bound only.
type lastSeries struct {
	metric *metric
	labels []byte // up to the bound
	series *series
}

// New returns a Gatherer for a kind of engine, which Supports must accept.
func New(k identify.Kind) *Gatherer {
	table := aliasTables[k]
	g := &Gatherer{index: indexes[k], perRank: k == identify.SGLang, rankLabel: rankLabels[k], metrics: make([]metric, len(table))}
	for i := range table {
		g.metrics[i].alias = &table[i]
	}
	return g
}

// StartAtZero makes the values of the first text count as increases, because the counters were 0 before.
func (g *Gatherer) StartAtZero() { g.round, g.lastComplete = 1, 1 }

// index finds the metrics of a kind of engine.
type index struct {
	named map[string][]metricRef // by the names of samples
	roles [numRoles][]int        // by role
}

// indexes are those of each kind of engine.
var indexes = func() map[identify.Kind]*index {
	all := make(map[identify.Kind]*index, len(aliasTables))
	for k, table := range aliasTables {
		x := &index{named: make(map[string][]metricRef)}
		for i, a := range table {
			x.roles[a.role] = append(x.roles[a.role], i)
			add := func(name string, p part) { x.named[name] = append(x.named[name], metricRef{i, p}) }
			switch {
			case a.histogram != "":
				add(a.metric+"_bucket", bucketPart)
				add(a.metric+"_sum", sumPart)
				add(a.metric+"_count", countPart)
			case a.role.isCounter() && !strings.HasSuffix(a.metric, "_sum"):
				add(a.metric+"_total", valuePart)
				add(a.metric, valuePart)
			default:
				add(a.metric, valuePart)
			}
		}
		all[k] = x
	}
	return all
}()

// Errors of a text: it has no metrics at all, or none of the engine.
var (
	ErrNotMetrics     = errors.New("response is not Prometheus metrics")
	ErrNoKnownMetrics = errors.New("no known metrics of this engine")
)

// seriesOf returns the series with the given labels and the bucket bound le; nil above maxSeries. A series that is new
// after the first text starts at 0.
func (g *Gatherer) seriesOf(m *metric, l prom.Labels) (*series, []byte) {
	before, bound := l.CutBound()
	if bound != nil && m == g.last.metric && bytes.Equal(before, g.last.labels) && g.last.series.round == g.round {
		return g.last.series, bound
	}
	s, le := g.findSeries(m, l)
	if s != nil && bound != nil && le != nil {
		g.last = lastSeries{m, append(g.last.labels[:0], before...), s}
	}
	return s, le
}

func (g *Gatherer) findSeries(m *metric, l prom.Labels) (*series, []byte) {
	key, le := l.Key()
	i, found := slices.BinarySearchFunc(m.series, key, func(s *series, key uint64) int { return cmp.Compare(s.key, key) })
	if !found {
		if len(m.series) >= maxSeries {
			return nil, nil
		}
		one := &series{metric: m, key: key, startsAtZero: g.lastComplete > 0}
		if m.alias.histogram != "" {
			one.histogram = new(histogram)
			if m.interval == nil {
				m.interval = new(intervalHistogram)
			}
		}
		m.series = slices.Insert(m.series, i, one)
	}
	g.begin(m.series[i])
	return m.series[i], le
}

// begin prepares a series for the first of its samples in a text.
func (g *Gatherer) begin(s *series) {
	if s.round != g.round {
		s.round = g.round
		if s.histogram != nil {
			s.reset(g.reader)
		}
	}
}

// increase returns the increase of a counter. A counter that has fallen was reset.
func (g *Gatherer) increase(s *series, v float64) float64 {
	before, hasPrevious, startsAtZero := s.value, s.hasPrevious, s.startsAtZero
	s.value, s.hasPrevious = v, true
	switch {
	case !hasPrevious && !startsAtZero:
		return 0
	case !hasPrevious:
		return v
	case v < before:
		g.countRestart()
		return v
	}
	return v - before
}

// countRestart counts a restart, at most once per round.
func (g *Gatherer) countRestart() {
	if g.lastReset != g.round {
		g.lastReset = g.round
		g.Restarts++
	}
}

// setProcessStart sets the start time of the process, in s. A later start means that all counters were reset, also
// those that are now higher than before.
func (g *Gatherer) setProcessStart(at float64) {
	if g.processStart != 0 && at > g.processStart+1 {
		g.countRestart()
		for i := range g.metrics {
			for _, s := range g.metrics[i].series {
				s.hasPrevious, s.startsAtZero = false, true
			}
		}
	}
	g.processStart = at
}
