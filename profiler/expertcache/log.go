// Package expertcache computes what a cache of experts would serve: the share of the router's picks that it holds, by slots
// per layer, for a static set, LRU and LFU.
package expertcache

import (
	"slices"
)

// The bounds of a Log.
const (
	// MaxPicks is how many picks a Log keeps: 5,577 tokens of 94 layers x 8. They take 8 MiB.
	MaxPicks = 1 << 22
	// MaxKinds is how many prompt kinds a Log names; the tokens of further ones have no kind.
	MaxKinds = 12

	blockPicks = 1 << 16
	noKind     = MaxKinds
)

// Log holds the picks of single tokens, oldest first, up to MaxPicks. It drops the oldest block of tokens when it is full.
type Log struct {
	Layers, Experts, Used int
	Kinds                 []string // prompt kinds of the tokens
	Tokens                int      // number of tokens it holds
	Dropped               uint64   // number of older tokens it no longer holds

	blocks []block
}

// block is the picks of consecutive tokens, each Layers x Used. Only its free capacity is ever written.
type block struct {
	picks []uint16
	kinds []uint8 // of each token: index of Log.Kinds, or noKind
}

// NewLog returns an empty log for a model that picks used of experts in each of layers.
func NewLog(layers, experts, used int) *Log {
	return &Log{Layers: layers, Experts: experts, Used: used}
}

// Add appends a token of a prompt kind. picks has Layers x Used experts, layer by layer; it copies them.
func (l *Log) Add(kind string, picks []uint16) {
	picks = picks[:l.Layers*l.Used]
	n := len(l.blocks)
	if n == 0 || len(l.blocks[n-1].picks)+len(picks) > cap(l.blocks[n-1].picks) {
		l.blocks = append(slices.Clip(l.blocks), block{
			picks: make([]uint16, 0, max(blockPicks, len(picks))), kinds: make([]uint8, 0, max(blockPicks/len(picks), 1)),
		})
		n++
	}
	b := &l.blocks[n-1]
	b.picks = append(b.picks, picks...)
	b.kinds = append(b.kinds, l.kind(kind))
	l.Tokens++
	if oldest := len(l.blocks[0].kinds); n > 1 && l.Tokens*len(picks) > MaxPicks {
		l.Tokens, l.Dropped = l.Tokens-oldest, l.Dropped+uint64(oldest)
		l.blocks = slices.Clone(l.blocks[1:])
	}
}

func (l *Log) kind(name string) uint8 {
	i := slices.Index(l.Kinds, name)
	if i < 0 {
		if len(l.Kinds) == MaxKinds {
			return noKind
		}
		i = len(l.Kinds)
		l.Kinds = append(slices.Clip(l.Kinds), name)
	}
	return uint8(i)
}

// tokensOf returns the number of tokens of each kind.
func (l *Log) tokensOf() []int {
	out := make([]int, len(l.Kinds)+1)
	for i := range l.blocks {
		for _, k := range l.blocks[i].kinds {
			out[min(int(k), len(l.Kinds))]++
		}
	}
	return out
}

// View returns the log as it is now. Tokens that are added to one of both are not in the other.
func (l *Log) View() *Log {
	v := *l
	v.blocks = slices.Clone(l.blocks)
	if n := len(v.blocks); n > 0 {
		last := &v.blocks[n-1]
		last.picks, last.kinds = slices.Clip(last.picks), slices.Clip(last.kinds)
	}
	return &v
}

// BytesWithout returns the memory in bytes of those tokens of l that a later view does not hold.
func (l *Log) BytesWithout(later *Log) (n int) {
	for i := range l.blocks {
		b := &l.blocks[i]
		if !slices.ContainsFunc(later.blocks, func(o block) bool { return &o.kinds[0] == &b.kinds[0] }) {
			n += 2*len(b.picks) + len(b.kinds)
		}
	}
	return n
}

// Layer calls f with all tokens, oldest first: their number, kind and picks in a layer, which f may change, but not keep. A
// missing pick is no index of an expert.
func (l *Log) Layer(layer int, f func(token int, kind uint8, picks []uint16)) {
	picks, token := make([]uint16, l.Used), 0
	for i := range l.blocks {
		for t, kind := range l.blocks[i].kinds {
			copy(picks, l.blocks[i].picks[(t*l.Layers+layer)*l.Used:])
			f(token+t, kind, picks)
		}
		token += len(l.blocks[i].kinds)
	}
}
