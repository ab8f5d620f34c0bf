package store

import (
	"encoding/binary"
	"math/bits"
)

// appendDelta appends what turns one line into another that mostly repeats it: as often as needed the number of bytes
// that both have, how many of the first line to skip, and what the second has instead.
func appendDelta(dst, before, line []byte) []byte {
	for i, j := 0, 0; j < len(line); {
		same := samePrefix(before[i:], line[j:])
		i, j = i+same, j+same
		skip, own := numberLen(before[i:]), numberLen(line[j:])
		if skip+own == 0 { // not in numbers only
			skip, own = len(before)-i, len(line)-j
		}
		dst = binary.AppendUvarint(binary.AppendUvarint(binary.AppendUvarint(dst, uint64(same)), uint64(skip)), uint64(own))
		dst = append(dst, line[j:j+own]...)
		i, j = i+skip, j+own
	}
	return dst
}

// samePrefix returns how many bytes both begin with.
func samePrefix(a, b []byte) (n int) {
	for ; n+8 <= min(len(a), len(b)); n += 8 {
		if x := binary.LittleEndian.Uint64(a[n:]) ^ binary.LittleEndian.Uint64(b[n:]); x != 0 {
			return n + bits.TrailingZeros64(x)/8
		}
	}
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return n
}

// numberLen returns the length of the rest of a number at the start of b.
func numberLen(b []byte) (n int) {
	for n < len(b) && (b[n] >= '0' && b[n] <= '9' || b[n] == '.' || b[n] == '-' || b[n] == '+' || b[n] == 'e') {
		n++
	}
	return n
}

// applyDelta appends the line that appendDelta encoded; nil if the delta does not fit the line before.
func applyDelta(dst, before, delta []byte) []byte {
	for len(delta) > 0 {
		var of [3]uint64 // same, skip, own
		for i := range of {
			v, n := binary.Uvarint(delta)
			if n <= 0 {
				return nil
			}
			of[i], delta = v, delta[n:]
		}
		same, skip, own := of[0], of[1], of[2]
		if same > uint64(len(before)) || skip > uint64(len(before))-same || own > uint64(len(delta)) {
			return nil
		}
		dst = append(append(dst, before[:same]...), delta[:own]...)
		before, delta = before[same+skip:], delta[own:]
	}
	return dst
}
