package store

import (
	"cmp"
	"slices"
	"strings"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/expertcache"
)

// The bounds of per-token router picks.
const (
	MaxKinds = expertcache.MaxKinds // prompt kinds, and as many groups: 8 bytes per expert each, 193 KB for 94 layers of 256
	MaxPairs = 1 << 22              // expert pairs over all layers: 4 bytes each, 16 MB; 94 layers of 256 have 3.1 million
	TopPairs = 20                   // pairs per layer that a snapshot includes
)

// tokenPicks counts the router picks of generated tokens since the model was loaded.
type tokenPicks struct {
	layers, experts, used        int
	all                          tally
	kinds, groups                map[string]*tally
	moreKinds, moreGroups        uint64   // tokens of those beyond MaxKinds
	pairs                        []uint32 // tokens, [layer*pairCount+pairIndex]; nil if there are more than MaxPairs
	pairedTokens                 uint64   // tokens counted in pairs
	pairSecond, pairedThisSecond int64    // the current second, and the tokens counted in pairs within it
	log                          *expertcache.Log

	lastView    *Picks
	second      int64 // of lastView
	viewCurrent bool  // nothing has been counted since lastView
}

// tally is the picks of a set of tokens.
type tally struct {
	tokens uint64
	counts []uint64 // [layer*experts+expert]
	hits   *Hits    // of the counts; nil: something has been counted since
}

// pairCount returns how many pairs n experts form.
func pairCount(n int) int { return n * (n - 1) / 2 }

// pairIndex returns the index of the pair a < b among those of a layer.
func pairIndex(a, b, experts int) int { return a*(2*experts-a-1)/2 + b - a - 1 }

// newTokenPicks returns empty counts for a model.
func newTokenPicks(m *event.Model) *tokenPicks {
	t := &tokenPicks{
		layers: m.Layers, experts: m.Experts, used: m.ExpertsUsed,
		kinds: map[string]*tally{}, groups: map[string]*tally{}, log: expertcache.NewLog(m.Layers, m.Experts, m.ExpertsUsed),
	}
	t.all.counts = make([]uint64, m.Layers*m.Experts)
	t.clearPairs()
	return t
}

// clearPairs starts to count pairs, unless there are too many.
func (t *tokenPicks) clearPairs() {
	t.pairedTokens, t.pairs = 0, nil
	if n := pairCount(t.experts); n > 0 && t.layers <= MaxPairs/n {
		t.pairs = make([]uint32, t.layers*n)
	}
}

// add counts the picks of a token of a request.
func (t *tokenPicks) add(l *liveRequest, at event.Time, picks []uint16) {
	t.viewCurrent = false
	t.count(&t.all, picks)
	if l.tallyOwner != t {
		l.tallyOwner, l.kindTally, l.groupTally = t, t.tallyFor(t.kinds, l.view.Label), t.tallyFor(t.groups, l.view.Group)
	}
	for _, c := range [...]struct {
		*tally
		more *uint64
	}{{l.kindTally, &t.moreKinds}, {l.groupTally, &t.moreGroups}} {
		if c.tally == nil {
			*c.more++
			continue
		}
		t.count(c.tally, picks)
	}
	t.log.Add(cmp.Or(l.view.Label, l.view.Group), picks)
	t.pair(at, picks)
}

// tallyFor returns the tally of a name; nil if there are MaxKinds others.
func (t *tokenPicks) tallyFor(tallies map[string]*tally, name string) *tally {
	picked := tallies[name]
	if picked == nil && len(tallies) < MaxKinds {
		picked = &tally{counts: make([]uint64, t.layers*t.experts)}
		tallies[name] = picked
	}
	return picked
}

// count adds the picks of a token. It ignores picks that are no index of an expert.
func (t *tokenPicks) count(to *tally, picks []uint16) {
	to.tokens++
	to.hits = nil
	for l := range t.layers {
		row := to.counts[l*t.experts:][:t.experts]
		for _, p := range picks[l*t.used:][:t.used] {
			if int(p) < len(row) {
				row[p]++
			}
		}
	}
}

// pair counts which experts of each layer a token picked together. For large models it samples the first tokens of each
// second.
func (t *tokenPicks) pair(at event.Time, picks []uint16) {
	if sec := int64(at) / int64(second); sec != t.pairSecond {
		t.pairSecond, t.pairedThisSecond = sec, 0
	}
	if t.pairs == nil || len(t.pairs) >= manyPairs && t.pairedThisSecond >= pairedPerSecond {
		return
	}
	t.pairedThisSecond++
	t.countPairs(picks)
}

// countPairs counts the pairs of a token.
func (t *tokenPicks) countPairs(picks []uint16) {
	t.pairedTokens++
	n := pairCount(t.experts)
	for l := range t.layers {
		row, picked := t.pairs[l*n:][:n], picks[l*t.used:][:t.used]
		for i, a := range picked {
			for _, b := range picked[i+1:] {
				if a != b && int(max(a, b)) < t.experts {
					row[pairIndex(int(min(a, b)), int(max(a, b)), t.experts)]++
				}
			}
		}
	}
}

// manyPairs is the number of pairs above which they are sampled and viewed once a second: searching more takes more
// than ten microseconds per snapshot.
const manyPairs = 1 << 16

// pairedPerSecond is how many tokens per second are counted in pairs above manyPairs: 0.1 ms each for 94 layers of 256
// experts.
const pairedPerSecond = 64

// view returns the current counts. Large models are viewed at most once a second.
func (t *tokenPicks) view(at event.Time) *Picks {
	sec := int64(at) / int64(second)
	if t.lastView != nil && (t.viewCurrent || sec == t.second && len(t.pairs) >= manyPairs) {
		return t.lastView
	}
	v := &Picks{
		Layers: t.layers, Experts: t.experts, Used: t.used, All: t.hits(&t.all),
		PairedTokens: t.pairedTokens, OmittedKinds: t.moreKinds, OmittedGroups: t.moreGroups, Log: t.log.View(),
	}
	v.Kinds, v.Groups = t.namedHits(t.kinds), t.namedHits(t.groups)
	if t.pairs != nil {
		v.Pairs = make([][]Pair, t.layers)
		for l := range v.Pairs {
			v.Pairs[l] = t.topPairs(l)
		}
	}
	t.lastView, t.second, t.viewCurrent = v, sec, true
	return v
}

func (t *tokenPicks) hits(picked *tally) *Hits {
	if picked.hits == nil {
		picked.hits = NewHits(slices.Clone(picked.counts), picked.tokens, t.layers, t.experts)
	}
	return picked.hits
}

// namedHits returns the picks of tallies by name, the unnamed one last.
func (t *tokenPicks) namedHits(tallies map[string]*tally) (out []NamedPicks) {
	for name, tally := range tallies {
		if tally.tokens == t.all.tokens { // it is the only one
			tally = &t.all
		}
		out = append(out, NamedPicks{name, t.hits(tally)})
	}
	slices.SortFunc(out, func(a, b NamedPicks) int {
		if (a.Name == "") != (b.Name == "") {
			return strings.Compare(b.Name, a.Name)
		}
		return strings.Compare(a.Name, b.Name)
	})
	return out
}

// topPairs returns the TopPairs pairs of a layer that the most tokens picked; ties keep the order of indices.
func (t *tokenPicks) topPairs(l int) []Pair {
	n := pairCount(t.experts)
	row := t.pairs[l*n:][:n]
	top, lowest := make([]Pair, 0, TopPairs), uint32(0)
	at := 0
	for a := range t.experts {
		for b := a + 1; b < t.experts; b++ {
			tokens := row[at]
			at++
			if tokens <= lowest {
				continue
			}
			p := Pair{A: uint16(a), B: uint16(b), Tokens: tokens}
			i, _ := slices.BinarySearchFunc(top, p, func(x, y Pair) int { return cmp.Or(cmp.Compare(y.Tokens, x.Tokens), -1) })
			top = slices.Insert(top[:min(len(top), TopPairs-1)], i, p)
			if len(top) == TopPairs {
				lowest = top[TopPairs-1].Tokens
			}
		}
	}
	picked, all := t.all.counts[l*t.experts:], float64(t.all.tokens)
	for i := range top {
		p := &top[i]
		p.Lift = float64(p.Tokens) / float64(t.pairedTokens) / (float64(picked[p.A]) / all * float64(picked[p.B]) / all)
	}
	return slices.Clip(top)
}
