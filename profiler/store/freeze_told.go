package store

import (
	"encoding/binary"
	"maps"
	"slices"
)

// frozenTold is what single tokens have told of the router, packed.
type frozenTold struct {
	told          // without counts
	kinds, groups []string
	packed        []byte
}

// freeze keeps what tokens have told, nil of a model with so many pairs that they would fill the history.
func (t *told) freeze(pack func([]byte) []byte) *frozenTold {
	if len(t.pairs) >= dearPairs || t.pairs == nil {
		return nil
	}
	f := &frozenTold{told: *t, kinds: slices.Sorted(maps.Keys(t.kinds)), groups: slices.Sorted(maps.Keys(t.groups))}
	b := appendTally(nil, &t.all)
	for _, name := range f.kinds {
		b = appendTally(b, t.kinds[name])
	}
	for _, name := range f.groups {
		b = appendTally(b, t.groups[name])
	}
	for _, n := range t.pairs {
		b = binary.AppendUvarint(b, uint64(n))
	}
	f.packed = pack(b)
	f.all, f.told.kinds, f.told.groups, f.pairs, f.shown, f.fresh = tally{}, nil, nil, nil, nil, false
	return f
}

// thaw goes on from what was kept.
func (f *frozenTold) thaw(unpack func([]byte) []byte) *told {
	t, b := f.told, unpack(f.packed)
	cells := t.layers * t.experts
	t.kinds, t.groups = make(map[string]*tally, len(f.kinds)), make(map[string]*tally, len(f.groups))
	t.all, b = readTally(b, cells)
	for _, name := range f.kinds {
		var of tally
		of, b = readTally(b, cells)
		t.kinds[name] = &of
	}
	for _, name := range f.groups {
		var of tally
		of, b = readTally(b, cells)
		t.groups[name] = &of
	}
	t.pairs = make([]uint32, t.layers*pairsOf(t.experts))
	for i := range t.pairs {
		n, size := binary.Uvarint(b)
		t.pairs[i], b = uint32(n), b[max(size, 0):]
	}
	return &t
}

func appendTally(b []byte, t *tally) []byte {
	b = binary.AppendUvarint(b, t.tokens)
	for _, n := range t.counts {
		b = binary.AppendUvarint(b, n)
	}
	return b
}

// readTally reads what appendTally has written, and returns what follows.
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
