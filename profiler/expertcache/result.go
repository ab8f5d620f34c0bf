package expertcache

import (
	"slices"

	"github.com/llmtop/llmtop/profiler/metric"
)

// Policy decides which experts a cache holds.
type Policy uint8

// The policies.
const (
	Static Policy = iota // the most picked experts of each layer in the first half
	LRU                  // the least recently picked expert is evicted
	LFU                  // the least picked expert so far is evicted, of equals the least recently picked
	NumPolicies
)

// String returns the name of the policy.
func (p Policy) String() string { return [...]string{"static", "LRU", "LFU"}[p] }

// Curve is how many picks a cache serves by its slots per layer.
type Curve struct {
	Picks uint64
	Hits  [NumPolicies][]uint64 // by slots per layer, from 0; nil: the order of the picks is not known
}

// Share returns the share of the picks that n slots per layer serve, 0 to 1; false without picks, or if the policy needs
// an order that is not known.
func (c *Curve) Share(p Policy, n int) (float64, bool) {
	if c.Picks == 0 || c.Hits[p] == nil {
		return 0, false
	}
	return float64(c.Hits[p][min(max(n, 0), len(c.Hits[p])-1)]) / float64(c.Picks), true
}

// Best returns the policy that serves most with n slots per layer, of equals the simpler one.
func (c *Curve) Best(n int) (best Policy, share float64) {
	for p := range NumPolicies {
		if s, ok := c.Share(p, n); ok && s > share {
			best, share = p, s
		}
	}
	return best, share
}

// add adds the curve of other picks.
func (c *Curve) add(o *Curve) {
	c.Picks += o.Picks
	for p := range c.Hits {
		if c.Hits[p] == nil && o.Hits[p] != nil {
			c.Hits[p] = make([]uint64, len(o.Hits[p]))
		}
		for n, hits := range o.Hits[p] {
			c.Hits[p][n] += hits
		}
	}
}

// Result is what caches of any size would have served. All policies are judged by the second half of the tokens: the
// first half chooses the static set and fills the caches.
type Result struct {
	Layers, Experts int
	Chosen, Judged  uint64 // tokens of the two halves
	SelfJudged      bool   // only one total is known: the static set is judged by the picks that chose it
	Omitted         uint64 // older tokens that are not part of it
	All             Curve
	ByLayer         []Curve
	Kinds           []Kind         // by prompt kind, if there are several
	Drift           []metric.Drift // of each layer between the halves; zero without picks
	MeanDrift       metric.Drift   // mean of Moved and Chance over the layers with picks
}

// Kind is the curve of the tokens of one prompt kind, in caches that serve all.
type Kind struct {
	Name   string
	Tokens uint64
	Curve
	// Balance is max/mean of each layer over time, [layer][point]: of consecutive picks of the kind, oldest first, in up to
	// MaxPoints points of at least metric.LeastPicks picks per expert.
	Balance [][]float32
}

// MaxPoints is how many points Kind.Balance has at most for a layer.
const MaxPoints = 20

// Even returns the share that n slots per layer serve if all experts are picked equally often.
func (o *Result) Even(n int) float64 { return float64(n) / float64(o.Experts) }

// Gain returns how much more than Even the best policy serves with n slots per layer.
func (o *Result) Gain(n int) float64 {
	_, share := o.All.Best(n)
	return share - o.Even(n)
}

// Knee returns the number of slots per layer with the largest gain.
func (o *Result) Knee() (slots int) {
	for n := range o.Experts {
		if o.Gain(n) > o.Gain(slots) {
			slots = n
		}
	}
	return slots
}

// FromCounts returns the result of a static set from counts of two halves, indexed [layer*experts+expert], for as many
// tokens. Without a second half the first one judges itself.
func FromCounts(layers, experts int, first, second []uint64, tokens [2]uint64) *Result {
	o := &Result{Layers: layers, Experts: experts, Chosen: tokens[0], Judged: tokens[1]}
	if second == nil {
		o.SelfJudged, o.Judged, second = true, o.Chosen, first
	}
	var ranked metric.Ranking
	for l := range layers {
		o.addLayer(&ranked, first[l*experts:][:experts], second[l*experts:][:experts], Curve{Hits: [NumPolicies][]uint64{Static: make([]uint64, experts+1)}})
	}
	o.finish()
	return o
}

// addLayer adds a layer: the counts of both halves, which it ranks by the first, and the hits of the other policies. It
// keeps c.
func (o *Result) addLayer(ranked *metric.Ranking, first, second []uint64, c Curve) {
	ranked.Rank(first)
	rankedHits(c.Hits[Static], ranked, second)
	c.Picks = c.Hits[Static][o.Experts]
	o.ByLayer = append(o.ByLayer, c)
	o.All.add(&c)
	d, _ := metric.DriftOf(first, second)
	o.Drift = append(o.Drift, d)
}

// rankedHits sets hits to how many picks the highest ranked experts get in judged, by their number.
func rankedHits(hits []uint64, ranked *metric.Ranking, judged []uint64) {
	for i := range judged {
		hits[i+1] = hits[i] + judged[ranked.At(i)]
	}
}

// finish computes means.
func (o *Result) finish() {
	n := 0.0
	for l, d := range o.Drift {
		if o.ByLayer[l].Picks > 0 {
			n++
			o.MeanDrift.Moved, o.MeanDrift.Chance = o.MeanDrift.Moved+d.Moved, o.MeanDrift.Chance+d.Chance
		}
	}
	if n > 0 {
		o.MeanDrift.Moved, o.MeanDrift.Chance = o.MeanDrift.Moved/n, o.MeanDrift.Chance/n
	}
	o.Kinds = slices.DeleteFunc(o.Kinds, func(k Kind) bool { return k.Tokens == 0 })
	if len(o.Kinds) < 2 {
		o.Kinds = nil
	}
}

// Analysis computes the result of a log layer by layer, so that a screen can spread it over frames.
type Analysis struct {
	log *Log
	out Result

	first, second    []uint64
	kinds            []kindCounts
	ranked           metric.Ranking
	recent, frequent stack
}

// kindCounts are the picks of a prompt kind in one layer: the judged ones, and those since the last point of its balance.
type kindCounts struct {
	counts []uint64
	Curve

	recent         []uint64
	picked, enough uint64 // sum of recent, and from which it is a point
	balance        []float32
}

// balanced counts a pick for the balance.
func (k *kindCounts) balanced(e uint16) {
	k.recent[e]++
	if k.picked++; k.picked == k.enough {
		k.balance = append(k.balance, float32(metric.BalanceOf(k.recent).MaxMean))
		clear(k.recent)
		k.picked = 0
	}
}

// Analyse begins the analysis of a log that does not change any more, see Log.View.
func Analyse(l *Log) *Analysis {
	a := &Analysis{log: l, first: make([]uint64, l.Experts), second: make([]uint64, l.Experts), frequent: stack{priority: make([]uint64, l.Experts)}}
	a.out = Result{Layers: l.Layers, Experts: l.Experts, Chosen: uint64(l.Tokens / 2), Judged: uint64(l.Tokens - l.Tokens/2), Omitted: l.Dropped}
	tokens := l.tokensOf()
	for i, name := range l.Kinds {
		k := kindCounts{counts: make([]uint64, l.Experts), Curve: newCurve(l.Experts), recent: make([]uint64, l.Experts)}
		k.enough = uint64(max(metric.LeastPicks*l.Experts, (tokens[i]*l.Used+MaxPoints-1)/MaxPoints))
		a.out.Kinds, a.kinds = append(a.out.Kinds, Kind{Name: name}), append(a.kinds, k)
	}
	return a
}

// Run analyses a log.
func Run(l *Log) *Result {
	a := Analyse(l)
	for {
		if o := a.Step(); o != nil {
			return o
		}
	}
}

// Done returns the number of layers that are analysed, of how many.
func (a *Analysis) Done() (layers, of int) { return len(a.out.ByLayer), a.log.Layers }

// StepPicks returns how many picks one step processes.
func (a *Analysis) StepPicks() int { return a.log.Tokens * a.log.Used }

// Step analyses one layer. It returns the result after the last one, nil before.
func (a *Analysis) Step() *Result {
	if layer := len(a.out.ByLayer); layer < a.log.Layers {
		a.layer(layer)
	}
	if len(a.out.ByLayer) < a.log.Layers {
		return nil
	}
	a.out.finish()
	return &a.out
}

func (a *Analysis) layer(layer int) {
	experts := a.log.Experts
	all := newCurve(experts)
	a.reset()
	a.log.Layer(layer, func(token int, kind uint8, picks []uint16) {
		slices.Sort(picks)
		if layer == 0 && uint64(token) >= a.out.Chosen && kind != noKind {
			a.out.Kinds[kind].Tokens++
		}
		for i, e := range picks {
			if int(e) >= experts || i > 0 && e == picks[i-1] {
				continue // a missing pick, or a repeated one
			}
			if kind != noKind {
				a.kinds[kind].balanced(e)
			}
			d := [NumPolicies]int{LRU: a.recent.lru(e), LFU: a.frequent.lfu(e)}
			if uint64(token) < a.out.Chosen {
				a.first[e]++
				continue
			}
			a.second[e]++
			all.count(d)
			if kind != noKind {
				a.kinds[kind].counts[e]++
				a.kinds[kind].count(d)
			}
		}
	})
	all.accumulate()
	a.out.addLayer(&a.ranked, a.first, a.second, all)
	for k := range a.kinds {
		c := &a.kinds[k]
		c.accumulate()
		rankedHits(c.Hits[Static], &a.ranked, c.counts)
		c.Picks = c.Hits[Static][experts]
		a.out.Kinds[k].add(&c.Curve)
		a.out.Kinds[k].Balance = append(a.out.Kinds[k].Balance, slices.Clone(c.balance))
	}
}

// reset clears what was counted in the layer before.
func (a *Analysis) reset() {
	clear(a.first)
	clear(a.second)
	a.recent.order, a.frequent.order = a.recent.order[:0], a.frequent.order[:0]
	clear(a.frequent.priority)
	a.frequent.time = 0
	for k := range a.kinds {
		c := &a.kinds[k]
		clear(c.counts)
		clear(c.recent)
		c.picked, c.balance = 0, c.balance[:0]
		for _, hits := range c.Hits {
			clear(hits)
		}
	}
}

// newCurve returns a curve without picks.
func newCurve(experts int) (c Curve) {
	for p := range c.Hits {
		c.Hits[p] = make([]uint64, experts+1)
	}
	return c
}

// count counts a pick by its distances; 0 is a miss in every cache.
func (c *Curve) count(distance [NumPolicies]int) {
	for _, p := range [...]Policy{LRU, LFU} {
		if d := distance[p]; d > 0 {
			c.Hits[p][d]++
		}
	}
}

// accumulate turns the counts of each distance into hits by slots.
func (c *Curve) accumulate() {
	for _, p := range [...]Policy{LRU, LFU} {
		for n := 1; n < len(c.Hits[p]); n++ {
			c.Hits[p][n] += c.Hits[p][n-1]
		}
	}
}
