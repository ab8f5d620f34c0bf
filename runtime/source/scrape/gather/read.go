package gather

import (
	"io"
	"math"
	"strings"
	"sync"

	"github.com/llmtop/llmtop/runtime/source/scrape/prom"
)

// scanners holds unused scanners: of hundreds of gatherers only a few read at the same time, and each scanner has a large
// buffer.
var scanners = sync.Pool{New: func() any { return prom.NewScanner(nil) }}

// Read parses a text. Errors: those of r; the text has no metrics of the engine. Samples before an error count in the
// next report.
func (g *Gatherer) Read(r io.Reader) error {
	g.scan = scanners.Get().(*prom.Scanner)
	g.scan.Reset(r)
	defer func() {
		g.scan.Reset(nil)
		scanners.Put(g.scan)
		g.scan = nil
	}()
	g.round++
	g.adapters, g.adaptersAt = nil, -1
	g.experts.text = nil
	found := false
	for g.scan.Next() {
		found = g.readLine() || found
	}
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

// readLine processes a line with a sample. It reports whether the sample counts.
func (g *Gatherer) readLine() (counts bool) {
	g.label = ""
	cancelled := false
	for _, t := range g.named[string(g.scan.Name())] {
		m := &g.metrics[t.metric]
		if !g.applies(m) || m.Role == Failed && cancelled {
			continue
		}
		counts = g.sample(m, t.part) || counts
		cancelled = cancelled || m.Role == Cancelled
	}
	return counts
}

// applies reports whether the labels of the line are those of a metric with its name.
func (g *Gatherer) applies(m *metric) bool {
	return m.Label == "" || m.allows(g.labelValue(m.Label))
}

// sample processes a sample. It reports whether the sample counts.
func (g *Gatherer) sample(m *metric, p int) bool {
	labels := g.scan.Labels()
	v, ok := g.scan.Value()
	if !ok || v < 0 { // none of the metrics can be negative
		return false
	}
	switch m.Role {
	case Adapters:
		g.setAdapters(v, labels)
		return true
	case RankPicks:
		if !repeatsRankZero(labels) {
			g.experts.add(labels, v)
		}
		return true
	}
	s, le := g.seriesOf(m, labels)
	if s == nil {
		g.Omitted++
		return false
	}
	m.round = g.round
	switch p {
	case valuePart:
		if m.Role != KVConfig {
			g.set(m, &s.next, v)
		}
	case bucketPart:
		if bound, ok := prom.ParseBound(le); ok {
			s.addBucket(bound, v)
		}
	case sumPart:
		s.nextSum = v
	case countPart:
		g.set(m, &s.nextCount, v)
	}
	return true
}

// set sets the value of a series in the text. A text that joins those of several processes may have it again.
func (g *Gatherer) set(m *metric, to *float64, v float64) {
	if !math.IsNaN(*to) {
		m.againRound = g.round
		if *to != v {
			g.differRound = g.round
		}
	}
	*to = v
}

// labelValue returns the value of a label of the line. Several metrics with one name differ in the values of one label.
func (g *Gatherer) labelValue(name string) []byte {
	if g.label != name {
		g.label, g.value = name, g.scan.Labels().Raw(name)
	}
	return g.value
}

// hasSeries reports whether samples add up over time, label combination by label combination.
func (a *Alias) hasSeries() bool { return a.Histogram != "" || a.Role.isCounter() }

// allows reports whether a sample whose label has this value counts.
func (a *Alias) allows(value []byte) bool {
	for one := range strings.SplitSeq(a.Values, "|") {
		one, not := strings.CutPrefix(one, "!")
		start, more := strings.CutSuffix(one, "*")
		if one == string(value) || more && strings.HasPrefix(string(value), start) {
			return !not
		}
	}
	return false
}

// repeatsRankZero reports whether a worker repeats the picks of another one: tensor- and pipeline-parallel ranks above 0,
// unless data-parallel ranks are labelled.
func repeatsRankZero(l prom.Labels) bool {
	above := func(rank []byte) bool { return len(rank) > 0 && string(rank) != "0" }
	return (above(l.Raw("tp_rank")) || above(l.Raw("pp_rank"))) && l.Raw("dp_rank") == nil
}
