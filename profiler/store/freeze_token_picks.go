package store

import (
	"encoding/binary"
	"maps"
	"slices"
)

// frozenTokenPicks is a compact copy of tokenPicks.
type frozenTokenPicks struct {
	tokenPicks             // without counts
	kinds, groups []string // names of the tallies, ascending
	packed        []byte   // all, then kinds, groups and pairs, compressed
}

// freeze returns a compact copy. The manyPairs pairs of a large model would fill the history: they are left out.
func (t *tokenPicks) freeze(pack func([]byte) []byte) *frozenTokenPicks {
	f := &frozenTokenPicks{tokenPicks: *t, kinds: slices.Sorted(maps.Keys(t.kinds)), groups: slices.Sorted(maps.Keys(t.groups))}
	b := appendTally(nil, &t.all)
	for _, name := range f.kinds {
		b = appendTally(b, t.kinds[name])
	}
	for _, name := range f.groups {
		b = appendTally(b, t.groups[name])
	}
	if len(t.pairs) < manyPairs {
		for _, n := range t.pairs {
			b = binary.AppendUvarint(b, uint64(n))
		}
	}
	f.packed = pack(b)
	f.log = t.log.View()
	f.all, f.tokenPicks.kinds, f.tokenPicks.groups, f.pairs, f.lastView, f.viewCurrent = tally{}, nil, nil, nil, nil, false
	return f
}

// thaw returns token picks that continue from the frozen ones.
func (f *frozenTokenPicks) thaw(unpack func([]byte) []byte) *tokenPicks {
	t, b := f.tokenPicks, unpack(f.packed)
	cells := t.layers * t.experts
	t.kinds, t.groups = make(map[string]*tally, len(f.kinds)), make(map[string]*tally, len(f.groups))
	t.all, b = readTally(b, cells)
	for _, name := range f.kinds {
		var picked tally
		picked, b = readTally(b, cells)
		t.kinds[name] = &picked
	}
	for _, name := range f.groups {
		var picked tally
		picked, b = readTally(b, cells)
		t.groups[name] = &picked
	}
	t.log = f.log.View()
	paired := t.pairedTokens
	if t.clearPairs(); len(t.pairs) >= manyPairs {
		t.log.All(t.log.Tokens-thawedPairs, func(_ int, _ uint8, picks []uint16) { t.countPairs(picks) })
		return &t
	}
	t.pairedTokens = paired
	for i := range t.pairs {
		n, size := binary.Uvarint(b)
		t.pairs[i], b = uint32(n), b[max(size, 0):]
	}
	return &t
}

// thawedPairs is how many of the newest tokens are counted in the pairs of a large model in the past: 26 ms for 94 layers
// of 256 experts.
const thawedPairs = 256

func appendTally(b []byte, t *tally) []byte {
	b = binary.AppendUvarint(b, t.tokens)
	for _, n := range t.counts {
		b = binary.AppendUvarint(b, n)
	}
	return b
}

// readTally reads what appendTally wrote and returns the remaining bytes.
func readTally(b []byte, cells int) (t tally, rest []byte) {
	next := func() uint64 {
		n, size := binary.Uvarint(b)
		b = b[max(size, 0):]
		return n
	}
	t.tokens, t.counts = next(), make([]uint64, cells)
	for i := range t.counts {
		t.counts[i] = next()
	}
	return t, b
}
