package store

import (
	"cmp"
	"slices"
	"strings"

	"github.com/llmtop/llmtop/profiler/event"
)

// The bounds of what is kept of single tokens' picks.
const (
	MaxKinds = 12      // kinds of prompt, and as many groups; each has 8 bytes for an expert, 193 KB for 94 layers of 256
	MaxPairs = 1 << 22 // pairs of experts of all layers that are counted, 4 bytes each: 94 layers of 256 have 3.1 million
	TopPairs = 20      // of each layer that a snapshot tells
)

// told counts what single tokens tell of the router, since the model was loaded.
type told struct {
	layers, experts, used int
	all                   tally
	kinds, groups         map[string]*tally
	moreKinds, moreGroups uint64   // tokens of those for which there is no room
	pairs                 []uint32 // [layer][pair], see pairAt; nil if there are more than MaxPairs
	paired                uint64   // tokens that are counted in pairs
	pairedIn, pairedNow   int64    // a second, and those of it

	shown  *Picks // the last view, of a second
	second int64
	fresh  bool // nothing has been counted since
}

// tally is the picks of some tokens.
type tally struct {
	tokens uint64
	counts []uint64
}

// pairsOf is how many pairs so many experts make.
func pairsOf(experts int) int { return experts * (experts - 1) / 2 }

// pairAt is the place of a pair, a < b, among those of a layer.
func pairAt(a, b, experts int) int { return a*(2*experts-a-1)/2 + b - a - 1 }

// tell takes in the picks of a token, layer by layer as many as the model uses; others are passed over.
func (s *state) tell(l *live, at event.Time, picks []uint16) {
	m := &s.model
	if s.untold || m.Layers <= 0 || m.ExpertsUsed <= 0 || m.Experts <= 0 || m.Layers > MaxCells || m.Experts > MaxCells/m.Layers ||
		m.ExpertsUsed > m.Experts || len(picks) != m.Layers*m.ExpertsUsed {
		return
	}
	t := s.told
	if t == nil {
		t = &told{layers: m.Layers, experts: m.Experts, used: m.ExpertsUsed, kinds: map[string]*tally{}, groups: map[string]*tally{}}
		t.all.counts = make([]uint64, m.Layers*m.Experts)
		if n := pairsOf(m.Experts); n > 0 && m.Layers <= MaxPairs/n {
			t.pairs = make([]uint32, m.Layers*n)
		}
		s.told = t
	}
	t.fresh = false
	t.count(&t.all, picks)
	if l.of != t {
		l.of, l.kind, l.group = t, t.tally(t.kinds, l.view.Label), t.tally(t.groups, l.view.Group)
	}
	for _, c := range [...]struct {
		*tally
		more *uint64
	}{{l.kind, &t.moreKinds}, {l.group, &t.moreGroups}} {
		if c.tally == nil {
			*c.more++
			continue
		}
		t.count(c.tally, picks)
	}
	t.pair(at, picks)
}

// tally is where the tokens of a name count, nil if there is no room for it.
func (t *told) tally(among map[string]*tally, name string) *tally {
	of := among[name]
	if of == nil && len(among) < MaxKinds {
		of = &tally{counts: make([]uint64, t.layers*t.experts)}
		among[name] = of
	}
	return of
}

// count adds the picks of a token. One that is no expert is not known.
func (t *told) count(to *tally, picks []uint16) {
	to.tokens++
	for l := range t.layers {
		row := to.counts[l*t.experts:][:t.experts]
		for _, p := range picks[l*t.used:][:t.used] {
			if int(p) < len(row) {
				row[p]++
			}
		}
	}
}

// pair counts which experts of a layer a token picked together; of large models for the first tokens of every second.
func (t *told) pair(at event.Time, picks []uint16) {
	if sec := int64(at) / int64(second); sec != t.pairedIn {
		t.pairedIn, t.pairedNow = sec, 0
	}
	if t.pairs == nil || len(t.pairs) >= dearPairs && t.pairedNow >= dearTokens {
		return
	}
	t.paired++
	t.pairedNow++
	n := pairsOf(t.experts)
	for l := range t.layers {
		row, of := t.pairs[l*n:][:n], picks[l*t.used:][:t.used]
		for i, a := range of {
			for _, b := range of[i+1:] {
				if a != b && int(max(a, b)) < t.experts {
					row[pairAt(int(min(a, b)), int(max(a, b)), t.experts)]++
				}
			}
		}
	}
}

// dearPairs is from how many pairs on it takes too long to look through them for every snapshot: some ten microseconds.
const dearPairs = 1 << 16

// dearTokens is for how many tokens a second so many pairs are counted: 94 layers of 256 experts take 0.1 ms each.
const dearTokens = 64

// view is what has been counted, of large models anew once a second at most.
func (t *told) view(at event.Time) *Picks {
	sec := int64(at) / int64(second)
	if t.shown != nil && (t.fresh || sec == t.second && len(t.pairs) >= dearPairs) {
		return t.shown
	}
	v := &Picks{Layers: t.layers, Experts: t.experts, Used: t.used, All: t.hits(&t.all), Paired: t.paired, MoreKinds: t.moreKinds, MoreGroups: t.moreGroups}
	v.Kinds, v.Groups = t.sorted(t.kinds), t.sorted(t.groups)
	if t.pairs != nil {
		v.Pairs = make([][]Pair, t.layers)
		for l := range v.Pairs {
			v.Pairs[l] = t.topPairs(l)
		}
	}
	t.shown, t.second, t.fresh = v, sec, true
	return v
}

func (t *told) hits(of *tally) *Hits {
	return hitsOf(slices.Clone(of.counts), of.tokens, t.layers, t.experts)
}

// sorted are tallies by name, that without a name last.
func (t *told) sorted(of map[string]*tally) (out []PicksOf) {
	for name, tally := range of {
		out = append(out, PicksOf{name, t.hits(tally)})
	}
	slices.SortFunc(out, func(a, b PicksOf) int {
		if (a.Name == "") != (b.Name == "") {
			return strings.Compare(b.Name, a.Name)
		}
		return strings.Compare(a.Name, b.Name)
	})
	return out
}

// topPairs are the pairs of a layer that were picked together by the most tokens, of equals the first.
func (t *told) topPairs(l int) []Pair {
	n := pairsOf(t.experts)
	row := t.pairs[l*n:][:n]
	top, least := make([]Pair, 0, TopPairs+1), uint32(0)
	at := 0
	for a := range t.experts {
		for b := a + 1; b < t.experts; b++ {
			tokens := row[at]
			at++
			if tokens <= least {
				continue
			}
			p := Pair{A: a, B: b, Tokens: uint64(tokens)}
			i, _ := slices.BinarySearchFunc(top, p, func(x, y Pair) int { return cmp.Or(cmp.Compare(y.Tokens, x.Tokens), -1) })
			if top = slices.Insert(top, i, p); len(top) > TopPairs {
				top = top[:TopPairs]
			}
			if len(top) == TopPairs {
				least = uint32(top[TopPairs-1].Tokens)
			}
		}
	}
	picked, all := t.all.counts[l*t.experts:], float64(t.all.tokens)
	for i := range top {
		p := &top[i]
		p.Lift = float64(p.Tokens) / float64(t.paired) / (float64(picked[p.A]) / all * float64(picked[p.B]) / all)
	}
	return slices.Clip(top)
}
