package store

import (
	"cmp"
	"encoding/binary"
	"slices"
)

// frozenPicks are the picks of a frozen state: what had been counted at the end of each second, oldest first, each as its difference to the
// one before, and compressed. Most counts grow little in a second.
type frozenPicks struct {
	experts         // without past and now
	numbers []int64 // of the seconds; that of now is 0
	packed  []byte
}

// freeze keeps the picks.
func (x *experts) freeze(pack func([]byte) []byte) *frozenPicks {
	f := &frozenPicks{experts: *x}
	f.past, f.now, f.shown, f.fresh = [expertSlots]picks{}, picks{}, nil, false
	var order []int
	for i := range x.past {
		if x.past[i].counts[0] != nil {
			order = append(order, i)
		}
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(x.number[a], x.number[b]) })
	var b []byte
	before := &x.base
	for _, i := range order {
		f.numbers = append(f.numbers, x.number[i])
		b = appendPicks(b, before, &x.past[i])
		before = &x.past[i]
	}
	f.packed = pack(appendPicks(b, before, &x.now))
	return f
}

// thaw are picks that go on from what was kept.
func (f *frozenPicks) thaw(unpack func([]byte) []byte) *experts {
	x := f.experts
	b := unpack(f.packed)
	before := &x.base
	for _, n := range f.numbers {
		i := n % expertSlots
		x.past[i], b = readPicks(b, before)
		before = &x.past[i]
	}
	x.now, _ = readPicks(b, before)
	return &x
}

// appendPicks appends cumulative counts as their differences to earlier ones, which may be above them where a source is at fault.
func appendPicks(b []byte, before, now *picks) []byte {
	for p := range now.counts {
		b = binary.AppendVarint(b, int64(now.tokens[p]-before.tokens[p]))
		for i, c := range now.counts[p] {
			b = binary.AppendVarint(b, int64(c-before.counts[p][i]))
		}
	}
	return b
}

// readPicks reads what appendPicks has written, with the same counts before, and returns what follows. Where it ends early, nothing more was
// counted.
func readPicks(b []byte, before *picks) (now picks, rest []byte) {
	next := func(was uint64) uint64 {
		d, n := binary.Varint(b)
		b = b[max(n, 0):]
		return was + uint64(d)
	}
	for p := range now.counts {
		now.tokens[p] = next(before.tokens[p])
		now.counts[p] = make([]uint64, len(before.counts[p]))
		for i, was := range before.counts[p] {
			now.counts[p][i] = next(was)
		}
	}
	return now, b
}
