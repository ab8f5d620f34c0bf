package gather

import (
	"bytes"
	"cmp"
	"errors"
	"math"
	"slices"

	"github.com/llmtop/llmtop/runtime/source/scrape/prom"
)

// maxSeries limits the label combinations of one metric (engines x models x reasons). Samples above it are omitted and
// counted.
const maxSeries = 4096

// Gatherer reads the metrics of one server, text by text. It is not safe for concurrent use.
type Gatherer struct {
	*Table       // of the engine, shared
	metrics      []metric
	scan         *prom.Scanner // nil between texts
	round        uint64        // number of the text, from 1
	lastComplete uint64        // last round that was read to the end
	differRound  uint64        // in which a series was last there twice, with different values
	hitsAhead    float64       // tokens from a cache counted before the prompts that they are of
	models       []string      // in the last text
	adapters     []string      // LoRA adapters in the last text
	adaptersAt   float64       // Unix time in s of adapters
	experts      expertRanks
	last         struct { // series of the last bucket: those of one series follow each other, and differ in their bound only
		metric *metric
		labels []byte // up to the bound
		series *series
	}
	label string // the last label that labelValue was asked for in this line, and its value
	value []byte

	texts    uint32  // complete ones
	reported uint32  // of these, those before the last report
	readAt   float64 // Now at the last one
	sets     map[uint64]*labelSet
	order    int                  // of the next set
	pairs    map[uint64]knownPair // by hash
	shown    []*series            // room for addGauges

	requestLabels map[uint64]bool // by the hash of the name: labels of running requests
	hadRequests   bool            // the last text had running requests, or their number
	newEngines    map[uint64]bool // by the hash of a label

	starts         []*series // of processes, in the text
	onlyStart      float64   // of the only process in the text; 0: unknown
	resetAt        uint32    // text with the last restart; 0: none
	restartsBefore int       // Restarts before those that may be none
	startChanged   uint32    // text in which onlyStart was another one than before; 0: never
	wentBack       bool      // it was earlier then
	isBack         bool      // a counter of the text has come back after it fell
	notBack        bool      // another one has not
	severalAt      uint32    // text in which another process was last seen to answer; 0: never
	rebase         bool      // the counters of the text are the base of what follows
	void           bool      // the counts of earlier reports are wrong

	Now       float64 // Unix time in s of the next text; 0: unknown
	Restarts  int     // counter resets
	Omitted   int     // samples above maxSeries
	Malformed int     // lines that were invalid or had an implausible value
}

// The parts of a metric that a sample can hold.
const (
	valuePart = iota
	bucketPart
	sumPart
	countPart
)

// metricRef is a metric and the part of it that a sample name holds.
type metricRef struct {
	metric int
	part   int
}

// metric is the state of an alias. What only some metrics need comes with their first sample: hundreds of servers are
// watched, each with a part of the metrics.
type metric struct {
	*Alias
	whole *metric // what a ratio is divided by; nil: not a ratio

	round      uint64             // in which it was last seen
	againRound uint64             // in which a series of it was last there twice
	n          int                // series in the last complete text that count, or engines
	sum        float64            // of gauges and counters, over them
	increase   float64            // of counters, since the last report
	late       float64            // of increase: from before, of series that were missing
	held       float64            // the increases that series missing in the text had in a text before
	series     []*series          // ascending by key; most metrics have one or a few
	related    bool               // see relate; false: there are other series now
	problem    string             // why it is not reported; "": it is
	interval   *intervalHistogram // since the last report; nil: not a histogram, or no sample yet
}

// series is one label combination of a counter or histogram.
type series struct {
	metric *metric
	set    *labelSet

	round uint64  // in which it was last seen
	next  float64 // value in that round; NaN: not in the text so far

	text  uint32  // last complete text with it; 0: none
	at    float64 // Unix time of that text in s; 0: unknown
	value float64 // in it
	last  float64 // increase per text until then
	start float64 // of its process, Unix time in s; 0: unknown

	of     *series // it is included in this one, or repeats it; nil: it counts
	isPart bool    // of is its total
	older  bool    // a series included in this one was there before
	lost   bool    // a text had it, but not what it had counted

	fellAt   uint32  // text in which it fell; 0: not lately
	high     float64 // value before
	returned bool    // it has reached high again
	peak     float64 // largest increase in one text before it fell
	jumpedAt uint32  // text in which it last rose by far more than before; 0: never
	jump     float64 // by how much
	low      float64 // value before that

	*histogram // nil: not a histogram
}

// New returns a Gatherer for the metrics of an engine.
func New(t *Table) *Gatherer {
	g := &Gatherer{Table: t, metrics: make([]metric, len(t.aliases)), newEngines: make(map[uint64]bool)}
	for i := range t.aliases {
		m := &g.metrics[i]
		if m.Alias = &t.aliases[i]; t.wholes[i] >= 0 {
			m.whole = &g.metrics[t.wholes[i]]
		}
	}
	return g
}

// StartAtZero makes the values of the first text count as increases, because the counters were 0 before.
func (g *Gatherer) StartAtZero() { g.texts = 1 }

// Errors of a text: it has no metrics at all, or none of the engine.
var (
	ErrNotMetrics     = errors.New("response is not Prometheus metrics")
	ErrNoKnownMetrics = errors.New("no known metrics of this engine")
)

// seriesOf returns the series with the given labels and the bucket bound le; nil above maxSeries.
func (g *Gatherer) seriesOf(m *metric, l prom.Labels) (*series, []byte) {
	before, bound := l.CutBound()
	if bound != nil && m == g.last.metric && bytes.Equal(before, g.last.labels) && g.last.series.round == g.round {
		return g.last.series, bound
	}
	s, le := g.findSeries(m, l)
	if s != nil && bound != nil && le != nil {
		g.last.metric, g.last.labels, g.last.series = m, append(g.last.labels[:0], before...), s
	}
	return s, le
}

func (g *Gatherer) findSeries(m *metric, l prom.Labels) (*series, []byte) {
	key, le := l.Key()
	i, found := m.find(key)
	if !found {
		if len(m.series) >= maxSeries {
			return nil, nil
		}
		one := &series{metric: m, set: g.setOf(key, l)}
		one.set.refs++
		m.related = false
		if m.Role == KVConfig {
			one.next = configuredCells(l)
		}
		if m.Histogram != "" {
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

// find returns the index of the series with a key.
func (m *metric) find(key uint64) (int, bool) {
	return slices.BinarySearchFunc(m.series, key, func(s *series, key uint64) int { return cmp.Compare(s.set.key, key) })
}

// begin prepares a series for the first of its samples in a text.
func (g *Gatherer) begin(s *series) {
	if s.round != g.round {
		s.round = g.round
		if s.metric.Role != KVConfig {
			s.next = math.NaN()
		}
		if s.histogram != nil {
			s.reset()
		}
	}
}
