package wire

import (
	"encoding/base64"
	"encoding/binary"
	"math"
	"math/bits"
)

// The picks of a token with many layers are packed, see docs/event-protocol.md: the difference of each pick from the one
// before, less 1, modulo one more than the picks and the missing pick need, in a Rice code, as base64. A layer's picks in
// ascending order have small differences: 8 of 256 experts take 6.5 bits each, where 6.1 is the least for even picks.
const (
	minPacked  = 33      // picks; fewer are written as numbers
	maxPacked  = 1 << 16 // picks
	maxRice    = 15
	missedPick = math.MaxUint16 // of a layer that has no picks
)

// riceDifferences calls f with the differences of the picks.
func riceDifferences(picks []uint16, modulus int, f func(d int)) {
	last := modulus - 1
	for _, p := range picks {
		v := min(int(p), modulus-1)
		f((v - last - 1 + 2*modulus) % modulus)
		last = v
	}
}

// appendPicks appends the picks of a token: packed if there are many.
func appendPicks(dst []byte, picks []uint16) []byte {
	if len(picks) < minPacked || len(picks) > maxPacked {
		return appendUints(dst, picks...)
	}
	modulus := 2
	for _, p := range picks {
		if p != missedPick {
			modulus = max(modulus, int(p)+2)
		}
	}
	sum := 0
	riceDifferences(picks, modulus, func(d int) { sum += d })
	k := min(max(bits.Len(uint(sum/len(picks)))-1, 0), maxRice) // a Rice code is shortest near the mean
	packed := binary.AppendUvarint(binary.AppendUvarint(nil, uint64(len(picks))), uint64(modulus))
	packed = append(packed, byte(k))
	w := bitWriter{out: packed}
	riceDifferences(picks, modulus, func(d int) {
		ones := d >> k
		for ; ones >= 16; ones -= 16 {
			w.write(1<<16-1, 16)
		}
		w.write(1<<(ones+1)-2, ones+1)
		w.write(uint64(d)&(1<<k-1), k)
	})
	dst = append(dst, '"')
	dst = base64.RawStdEncoding.AppendEncode(dst, w.end())
	return append(dst, '"')
}

// bitWriter writes bits, the highest bit of a byte first.
type bitWriter struct {
	out  []byte
	next uint64
	n    int // bits in next, fewer than 8
}

// write writes v, which has at most n bits, up to 17.
func (w *bitWriter) write(v uint64, n int) {
	w.next, w.n = w.next<<n|v, w.n+n
	for ; w.n >= 8; w.n -= 8 {
		w.out = append(w.out, byte(w.next>>(w.n-8)))
	}
}

// end fills the last byte with zeros and returns all.
func (w *bitWriter) end() []byte {
	w.write(0, (8-w.n)%8)
	return w.out
}

// unpackPicks appends the picks of a token to dst; false if they are malformed.
func unpackPicks(dst []uint16, text []byte) ([]uint16, bool) {
	packed, err := base64.RawStdEncoding.AppendDecode(nil, text)
	n, i := binary.Uvarint(packed)
	modulus, j := binary.Uvarint(packed[max(i, 0):])
	if err != nil || i <= 0 || j <= 0 || len(packed) == i+j || n > maxPacked || modulus < 2 || modulus > missedPick+1 || packed[i+j] > maxRice {
		return dst, false
	}
	k, data := int(packed[i+j]), packed[i+j+1:]
	at := 0
	bit := func() (one int) {
		if at < 8*len(data) {
			one = int(data[at/8]>>(7-at%8)) & 1
		}
		at++
		return one
	}
	last := int(modulus) - 1
	for range n {
		d := 0
		for bit() == 1 {
			d++
		}
		for range k {
			d = d<<1 | bit()
		}
		if at > 8*len(data) || d >= int(modulus) {
			return dst, false
		}
		if last = (last + 1 + d) % int(modulus); last == int(modulus)-1 {
			dst = append(dst, missedPick)
		} else {
			dst = append(dst, uint16(last))
		}
	}
	return dst, true
}
