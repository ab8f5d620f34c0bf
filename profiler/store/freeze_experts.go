package store

import (
	"cmp"
	"encoding/binary"
	"slices"
)

// frozenExperts are the router picks of a frozen state: the checkpoints, then the counts at the end of each second, oldest
// first, each as the difference from the one before, compressed. Most counts grow little in one second.
type frozenExperts struct {
	experts         // without checkpoints, pastCounts and current
	checks  int     // number of checkpoints
	seconds []int64 // of pastCounts, ascending
	packed  []byte
}

// freeze returns a compact copy of the picks.
func (x *experts) freeze(pack func([]byte) []byte) *frozenExperts {
	f := &frozenExperts{experts: *x}
	f.checkpoints, f.pastCounts, f.current = nil, [expertSlots]pickCounts{}, pickCounts{}
	f.lastView, f.viewCurrent, f.balanceTrend = nil, false, nil
	var order []int
	for i := range x.pastCounts {
		if x.pastCounts[i].counts[0] != nil {
			order = append(order, i)
		}
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(x.pastSecond[a], x.pastSecond[b]) })
	var b []byte
	earlier := &x.baseline
	f.checks = len(x.checkpoints)
	for i := range x.checkpoints {
		b = appendPicks(b, earlier, &x.checkpoints[i])
		earlier = &x.checkpoints[i]
	}
	for _, i := range order {
		f.seconds = append(f.seconds, x.pastSecond[i])
		b = appendPicks(b, earlier, &x.pastCounts[i])
		earlier = &x.pastCounts[i]
	}
	f.packed = pack(appendPicks(b, earlier, &x.current))
	return f
}

// thaw returns picks that continue from the frozen ones.
func (f *frozenExperts) thaw(unpack func([]byte) []byte) *experts {
	x := f.experts
	b := unpack(f.packed)
	earlier := &x.baseline
	x.checkpoints = make([]pickCounts, f.checks)
	for i := range x.checkpoints {
		x.checkpoints[i], b = readPicks(b, earlier)
		earlier = &x.checkpoints[i]
	}
	for _, n := range f.seconds {
		i := n % expertSlots
		x.pastCounts[i], b = readPicks(b, earlier)
		earlier = &x.pastCounts[i]
	}
	x.current, _ = readPicks(b, earlier)
	return &x
}

// appendPicks appends cumulative counts as differences from earlier ones. A faulty source may report lower counts:
// differences are signed.
func appendPicks(b []byte, earlier, now *pickCounts) []byte {
	for p := range now.counts {
		b = binary.AppendVarint(b, int64(now.tokens[p]-earlier.tokens[p]))
		for i, c := range now.counts[p] {
			b = binary.AppendVarint(b, int64(c-earlier.counts[p][i]))
		}
	}
	return b
}

// readPicks reads what appendPicks wrote, given the same earlier counts, and returns the remaining bytes. Missing
// differences count as 0.
func readPicks(b []byte, earlier *pickCounts) (now pickCounts, rest []byte) {
	next := func(previous uint64) uint64 {
		d, n := binary.Varint(b)
		b = b[max(n, 0):]
		return previous + uint64(d)
	}
	for p := range now.counts {
		now.tokens[p] = next(earlier.tokens[p])
		now.counts[p] = make([]uint64, len(earlier.counts[p]))
		for i, previous := range earlier.counts[p] {
			now.counts[p][i] = next(previous)
		}
	}
	return now, b
}
