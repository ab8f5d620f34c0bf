package gather

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"slices"
	"strings"
	"sync"

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
	perRank      bool // samples of several ranks repeat the same work
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

// reader holds what a gatherer needs while it reads.
type reader struct {
	scan   *prom.Scanner
	counts []float64 // room for the bucket counts of the text
	used   int       // of counts
}

// readers holds unused readers: of hundreds of gatherers only a few read at the same time, and each scanner has a large
// buffer.
var readers = sync.Pool{New: func() any { return &reader{scan: prom.NewScanner(nil), counts: make([]float64, 1024)} }}

// room returns an empty list with room for n counts, which is valid until the end of the text.
func (r *reader) room(n int) []float64 {
	if r.used+n > len(r.counts) {
		r.counts, r.used = make([]float64, 2*len(r.counts)+n), 0
	}
	r.used += n
	return r.counts[r.used-n : r.used-n : r.used]
}

// Read parses a text. Errors: those of r; the text has no metrics of the engine. Samples before an error count in the
// next report.
func (g *Gatherer) Read(r io.Reader) error {
	g.reader = readers.Get().(*reader)
	g.scan.Reset(r)
	defer func() {
		g.scan.Reset(nil)
		g.used = 0
		readers.Put(g.reader)
		g.reader = nil
	}()
	g.round++
	g.models, g.ranks, g.adapters, g.adaptersAt = g.models[:0], g.ranks[:0], nil, -1
	g.experts.text = nil
	found := false
	for g.scan.NextLine() {
		found = g.readLine() || found
	}
	g.lines.end()
	switch err := g.scan.Err(); {
	case err != nil:
		return err
	case g.scan.Samples() == 0 && g.scan.Malformed() > 0:
		return ErrNotMetrics
	case !found:
		return ErrNoKnownMetrics
	}
	g.Malformed += g.scan.Malformed()
	g.finishText()
	return nil
}

// readLine processes a line. It reports whether it has a sample that counts.
func (g *Gatherer) readLine() (counts bool) {
	head := g.scan.Head()
	if known := g.lines.find(head); known != nil {
		g.scan.Skip()
		return known.series > 0 && g.again(known, g.lines.series[known.series-1])
	}
	if !g.scan.Parse() {
		g.lines.learn(knownLine{}, nil)
		return false
	}
	refs := g.named[string(g.scan.Name())]
	g.added, g.addedTo, g.label = knownLine{}, nil, ""
	applied := 0 // metrics that the line is of
	for _, t := range refs {
		if m := &g.metrics[t.metric]; g.applies(m) {
			counts = g.sample(m, t.part) || counts
			applied++
		}
	}
	if g.scan.IsHead() && (applied == 0 || applied == 1 && g.addedTo != nil) {
		g.added.head = head
		g.lines.learn(g.added, g.addedTo)
	} else {
		g.lines.learn(knownLine{}, nil)
	}
	return counts
}

// again processes a line of a series that the previous text had. It reports whether the sample counts.
func (g *Gatherer) again(k *knownLine, s *series) bool {
	g.begin(s)
	v, ok := g.scan.Value()
	if !ok || v < 0 {
		return false
	}
	g.count(s.metric)
	g.add(k, s, v)
	return true
}

// add adds a sample to its series.
func (g *Gatherer) add(k *knownLine, s *series, v float64) {
	switch k.part {
	case valuePart:
		s.metric.sum += v
		s.metric.increase += g.increase(s, v)
	case bucketPart:
		s.addBucket(k.bound, v)
	case sumPart:
		s.nextSum = v
	case countPart:
		s.nextCount, s.countRound = v, g.round
	}
}

// count counts a sample of a metric.
func (g *Gatherer) count(m *metric) {
	if m.round != g.round {
		m.round, m.n, m.sum = g.round, 0, 0
	}
	m.n++
}

// applies reports whether the labels of the line are those of a metric with its name.
func (g *Gatherer) applies(m *metric) bool {
	return (m.label == "" || m.allows(g.labelValue(m.label))) && !(g.perRank && duplicatesRankZero(g.scan.Labels()))
}

// sample processes a sample. It reports whether the sample counts.
func (g *Gatherer) sample(m *metric, p part) bool {
	labels := g.scan.Labels()
	v, ok := g.scan.Value()
	if !ok || v < 0 { // none of the metrics can be negative
		if m.hasSeries() {
			g.seriesOf(m, labels) // keep the series: its next increase starts at the previous value
		}
		return false
	}
	g.count(m)
	switch {
	case m.role == processStart:
		g.setProcessStart(v)
		return true
	case m.role == kvConfig:
		v = configuredCells(labels)
	case m.role == adapters:
		g.setAdapters(v, labels)
		return true
	case m.role == rankPicks:
		g.experts.add(labels, v)
		return true
	case m.role == running, m.role == inFlight:
		g.addModel(labels)
	}
	g.addToRank(m, labels, v)
	if !m.hasSeries() {
		m.sum += v
		return true
	}
	s, le := g.seriesOf(m, labels)
	if s == nil {
		g.Omitted++
		return false
	}
	k := knownLine{part: p}
	if p == bucketPart {
		if k.bound, ok = prom.ParseBound(le); !ok {
			return true
		}
	}
	g.add(&k, s, v)
	g.added, g.addedTo = k, s
	return true
}

// labelValue returns the value of a label of the line. Several metrics with one name differ in the values of one label.
func (g *Gatherer) labelValue(name string) []byte {
	if g.label != name {
		g.label, g.value = name, g.scan.Labels().Raw(name)
	}
	return g.value
}

// hasSeries reports whether samples add up over time, label combination by label combination.
func (a *alias) hasSeries() bool { return a.histogram != "" || a.role.isCounter() }

// allows reports whether a sample whose label has this value counts.
func (a *alias) allows(value []byte) bool {
	for one := range strings.SplitSeq(a.values, "|") {
		if one == string(value) {
			return true
		}
	}
	return false
}

// duplicatesRankZero reports whether a worker repeats the work of another one: tensor- and pipeline-parallel ranks
// above 0, unless data-parallel ranks are labelled.
func duplicatesRankZero(l prom.Labels) bool {
	above := func(rank []byte) bool { return len(rank) > 0 && string(rank) != "0" }
	return (above(l.Raw("tp_rank")) || above(l.Raw("pp_rank"))) && l.Raw("dp_rank") == nil
}

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
