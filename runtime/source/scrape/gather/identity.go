package gather

import (
	"bytes"
	"slices"
	"strconv"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime/source/scrape/prom"
)

// What a sample counts for follows from its labels, not from its metric: see "Sums over series" in docs/metrics.md. This
// file has the whole rule for the samples of one text, process.go that for the texts over time.

// labelSet is a combination of labels, shared by all series that have it.
type labelSet struct {
	key   uint64 // hash of the labels
	order int    // of appearance
	refs  int    // series that have it

	pairs  []pair
	model  string // "": no such label
	rank   string // value of the label of data-parallel ranks; "": none
	shared uint64 // hash of the labels without those of ranks that share the work of an engine
	nth    int    // sum of the numbers of such ranks; -1: none
	guess  bool   // a label of a rank does not say what its ranks share
}

// pair is a label.
type pair struct {
	name, hash uint64
	isModel    bool
	ofProcess  bool      // it is the number of a process of the server
	totals     [3]uint64 // what hash is in the total over this label; nil values: hash is that of a total
}

// totalValues are the values of a label that stand for the sum over all others. An empty label counts as absent.
var totalValues = [...]string{"", "total", "all"}

// dimensions are the words for the dimensions of parallelism in which ranks split one model. Ranks of the data dimension
// have requests of their own.
var dimensions = []string{"tp", "pp", "cp", "dcp", "pcp", "ep", "sp", "moe", "tensor", "pipeline", "context", "expert", "sequence"}

// rankOf returns what a label such as attn_tp_rank says about the work of the ranks: each has requests of its own (data),
// they split the work of one engine, and each reports all of it (shared), one of both, or that it is no rank.
func rankOf(name []byte) (data, shared bool) {
	words := bytes.Split(name, []byte{'_'})
	has := func(list ...string) bool {
		return slices.ContainsFunc(words, func(w []byte) bool { return slices.Contains(list, string(w)) })
	}
	switch {
	case !has("rank"):
		return false, false
	case has(dimensions...): // also a data dimension within the experts
		return false, true
	case has("dp", "data"):
		return true, false
	}
	return true, true
}

// setOf returns the label combination with a key.
func (g *Gatherer) setOf(key uint64, l prom.Labels) *labelSet {
	if s := g.sets[key]; s != nil {
		return s
	}
	s := &labelSet{key: key, shared: key, nth: -1, order: g.order}
	g.order++
	for name, value := range l.All {
		if len(value) == 0 || string(name) == "le" {
			continue
		}
		p := pair{name: prom.Hash(name), hash: prom.HashPair(name, value), ofProcess: string(name) == "pid"}
		p.isModel = string(name) == "model_name" || string(name) == "model" && s.model == ""
		if p.isModel {
			s.model = l.Get(string(name))
		}
		if i := slices.Index(totalValues[:], string(value)); i < 0 {
			for i, v := range totalValues[1:] {
				p.totals[i+1] = prom.HashPair(name, []byte(v))
			}
		} else {
			p.totals[0] = p.hash
		}
		s.addRank(&p, g.rankLabel, name, value)
		s.pairs = append(s.pairs, p)
	}
	if g.sets == nil {
		g.sets, g.pairs = make(map[uint64]*labelSet), make(map[uint64]knownPair)
	}
	g.sets[key] = s
	for _, p := range s.pairs {
		k := g.pairs[p.hash]
		if k.sets++; k.sets == 1 {
			k.since = g.texts
		}
		g.pairs[p.hash] = k
	}
	return s
}

// addRank records the rank that a label names.
func (s *labelSet) addRank(p *pair, rankLabel string, name, value []byte) {
	switch data, shared := rankOf(name); {
	case string(name) == rankLabel, data && !shared:
		s.rank = string(value)
	case shared:
		n, _ := strconv.Atoi(string(value))
		s.nth = max(s.nth, 0) + min(max(n, 0), 1<<20)
		s.shared -= p.hash
		s.guess = s.guess || data
	}
}

// knownPair is what is known about a label.
type knownPair struct {
	sets  int    // label combinations that have it
	since uint32 // complete texts before it
}

// release drops the label combination of a series that is forgotten.
func (g *Gatherer) release(s *labelSet) {
	if s.refs--; s.refs > 0 {
		return
	}
	delete(g.sets, s.key)
	for _, p := range s.pairs {
		k := g.pairs[p.hash]
		if k.sets--; k.sets == 0 {
			delete(g.pairs, p.hash)
			continue
		}
		g.pairs[p.hash] = k
	}
}

// relate finds the series of a metric that must not be added to the others: parts of a total, and ranks that repeat
// what another one reports.
func (m *metric) relate() {
	m.related = true
	for _, s := range m.series {
		s.of, s.isPart, s.older = nil, false, false
	}
	if len(m.series) < 2 {
		return
	}
	for _, s := range m.series {
		s.of = m.totalOf(s)
		s.isPart = s.of != nil
	}
	first := make(map[uint64]*series)
	for _, s := range m.series {
		if s.of != nil || s.set.nth < 0 {
			continue
		}
		if f := first[s.set.shared]; f == nil || s.set.nth < f.set.nth {
			first[s.set.shared] = s
		}
	}
	for _, s := range m.series {
		if f := first[s.set.shared]; s.of == nil && s.set.nth >= 0 && f != s {
			s.of = f
		}
		if s.of != nil && s.text > 0 {
			s.of.older = true
		}
	}
}

// totalOf returns the series that has the total over one label of a series; nil: there is none.
func (m *metric) totalOf(s *series) *series {
	for i := range s.set.pairs {
		p := &s.set.pairs[i]
		if p.totals[0] == p.hash {
			continue
		}
		for _, h := range p.totals {
			if at, ok := m.find(s.set.key - p.hash + h); ok && m.series[at] != s {
				return m.series[at]
			}
		}
	}
	return nil
}

// The reasons why a metric is not reported.
const (
	partAboveTotal = "a part exceeds what looks like its total"
	ranksDiffer    = "ranks report different values, and nothing shows whether they share their requests"
	seriesAgain    = "the text has a series twice, with different values"
	noSum          = "a histogram without its sum or its count"
	sumFell        = "the sum of a histogram fell, though its count did not"
	notAShare      = "above 1: not a share"
	copiesDiffer   = "processes of the server report different values, and nothing shows which one is current"
)

// check looks for values that contradict how the series are related.
func (m *metric) check(round, differRound uint64) {
	if m.problem = ""; m.againRound == round && differRound == round {
		m.problem = seriesAgain
		return
	}
	for _, s := range m.series {
		switch {
		case s.round == round && s.next > event.MaxShare && (m.Role == KVUsage || m.Role == CacheHitShare || m.Role == DraftAcceptShare):
			m.problem = notAShare
		case s.of == nil || s.round != round || s.of.round != round:
		case s.isPart && s.current() > s.of.current()*(1+1e-9):
			m.problem = partAboveTotal
		case !s.isPart && s.set.guess && s.current() != s.of.current():
			m.problem = ranksDiffer
		}
	}
}

// current returns the value in the text.
func (s *series) current() float64 {
	if s.histogram != nil {
		return s.nextCount
	}
	return s.next
}

// ofEngine reports whether a role is a property of an engine, which its processes may all report. Other gauges are
// requests.
func (r Role) ofEngine() bool {
	switch r {
	case KVUsed, KVTotal, KVBlocks, KVBlocksUsed, KVConfig, SleepState:
		return true
	}
	return r.isMean()
}

// addGauges sums up a gauge over the series of a text, and those that are missing in it but were in one of the last few.
func (g *Gatherer) addGauges(m *metric) {
	list := g.shown[:0]
	for _, s := range m.series {
		if s.of == nil && g.texts-s.text <= heldTexts && (s.round == g.round || !g.outdated(s)) {
			list = append(list, s)
		}
	}
	g.shown = list
	if list = g.dropIdle(m, list); len(list) == 0 && m.Role == DecodeRate {
		m.n, m.sum = len(g.shown), 0
		return
	}
	m.n, m.sum = len(list), 0
	for _, s := range list {
		m.sum += s.value
	}
	if len(list) < 2 {
		return
	}
	groups := make(map[uint64][]float64, len(list))
	for _, s := range list {
		key := g.engineKey(m, s.set)
		groups[key] = append(groups[key], s.value)
	}
	if len(groups) == len(list) {
		return
	}
	m.n, m.sum = len(groups), 0
	for _, values := range groups {
		v, ok := agreed(values, m.Role.ofEngine())
		if !ok {
			m.problem = copiesDiffer
		}
		m.sum += v
	}
}

// dropIdle returns the series of a gauge without those that say nothing: an engine without running requests keeps the
// values of its last batch, or has 0 as the share of nothing, and 0 drafts are no drafts.
func (g *Gatherer) dropIdle(m *metric, list []*series) []*series {
	if len(list) == 0 || !m.Batch && m.Role != CacheHitShare {
		return list
	}
	shared := make(map[uint64]bool) // labels of running requests that the metric has, too
	for i := range list[0].set.pairs {
		p := &list[0].set.pairs[i]
		shared[p.name] = !p.ofProcess && g.requestLabels[p.name]
	}
	key := func(set *labelSet) (key uint64) {
		for i := range set.pairs {
			if p := &set.pairs[i]; shared[p.name] {
				key += p.hash
			}
		}
		return key
	}
	running := make(map[uint64]float64)
	for i := range g.metrics {
		r := &g.metrics[i]
		if r.Role != Running && r.Role != InFlight || r.round != g.round {
			continue
		}
		for _, s := range r.series {
			if s.round == g.round && s.of == nil {
				running[key(s.set)] += s.next
			}
		}
	}
	kept := slices.DeleteFunc(slices.Clone(list), func(s *series) bool {
		if n, known := running[key(s.set)]; known && n == 0 {
			return m.Batch || s.value == 0
		}
		return s.value == 0 && m.Role != CacheHitShare
	})
	if len(kept) == 0 && !m.Batch {
		return list
	}
	return kept
}

// engineKey returns a hash of the labels that name the engine: not those of its processes, and for a property of the
// engine only those that its requests have, too.
func (g *Gatherer) engineKey(m *metric, set *labelSet) uint64 {
	key := set.key
	for i := range set.pairs {
		p := &set.pairs[i]
		if p.ofProcess || m.Role.ofEngine() && len(g.requestLabels) > 0 && !g.requestLabels[p.name] {
			key -= p.hash
		}
	}
	return key
}

// agreed returns the value that several processes report for one engine: those that have not seen it report 0. With
// repeats, several may have seen it. ok is false if they disagree.
func agreed(values []float64, repeats bool) (v float64, ok bool) {
	for _, x := range values {
		switch {
		case x == 0:
		case v == 0:
			v = x
		case x != v || !repeats:
			return 0, false
		}
	}
	return v, true
}
