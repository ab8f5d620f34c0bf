package tensor

import (
	"encoding/binary"
	"math"
	"unsafe"
)

// tileRange is a run of up to 256 values of one row, unpacked from any of the block types:
// value i is q[i]*scale[i/16] - min[i/32].
type tileRange struct {
	q     [superElems]int8
	scale [superElems / 16]float32
	min   [superElems / blockElems]float32
}

// halfScales reports whether the scales of t change every 16 values instead of every 32 or more.
func halfScales(t Type) bool { return t == Q6_K }

// hasMin reports whether values of t are stored relative to a minimum.
func hasMin(t Type) bool { return t == Q4_K || t == Q5_K }

// unpack reads the n values of row that start at value at, a multiple of 256; n is at most 256.
func (s *tileRange) unpack(t Type, row []byte, at, n int) {
	row = row[at/t.BlockElems()*t.BlockBytes():]
	switch t {
	case Q8_0:
		for b := range n / 32 {
			s.unpackQ80(b, row[b*34:b*34+34])
		}
	case Q4_0:
		for b := range n / 32 {
			s.unpackQ40(b, row[b*18:b*18+18])
		}
	case Q4_K:
		s.unpackScalesK(row)
		s.unpackNibbles(row[16:144])
	case Q5_K:
		s.unpackScalesK(row)
		s.unpackNibbles(row[48:176])
		s.addFifthBit(row[16:48])
	case Q6_K:
		s.unpackQ6K(row[:210])
	}
}

func (s *tileRange) unpackQ80(b int, block []byte) {
	d := halfAt(block)
	s.scale[2*b], s.scale[2*b+1] = d, d
	copy(unsafe.Slice((*byte)(unsafe.Pointer(&s.q[b*32])), 32), block[2:34])
}

func (s *tileRange) unpackQ40(b int, block []byte) {
	d := halfAt(block)
	s.scale[2*b], s.scale[2*b+1] = d, d
	for i, v := range block[2:18] {
		s.q[b*32+i] = int8(v&15) - 8
		s.q[b*32+i+16] = int8(v>>4) - 8
	}
}

// unpackScalesK reads the header of a Q4_K or Q5_K block: two half floats, then eight scales and eight minima of 6 bits
// in 12 bytes.
func (s *tileRange) unpackScalesK(block []byte) {
	d, dmin, packed := halfAt(block), halfAt(block[2:]), block[4:16]
	for j := range 8 {
		var sc, m byte
		if j < 4 {
			sc, m = packed[j]&63, packed[j+4]&63
		} else {
			sc, m = packed[j+4]&15|packed[j-4]>>6<<4, packed[j+4]>>4|packed[j]>>6<<4
		}
		s.scale[2*j], s.scale[2*j+1] = d*float32(sc), d*float32(sc)
		s.min[j] = dmin * float32(m)
	}
}

// unpackNibbles reads 128 bytes whose low and high halves are 32 values each, 32 bytes at a time.
func (s *tileRange) unpackNibbles(packed []byte) {
	for i, v := range packed[:128] {
		at := i/32*64 + i%32
		s.q[at], s.q[at+32] = int8(v&15), int8(v>>4)
	}
}

// addFifthBit adds 16 to value i of the j-th group of 32 if bit j of byte i is set.
func (s *tileRange) addFifthBit(high []byte) {
	for i, v := range high[:32] {
		for j := range 8 {
			s.q[j*32+i] += int8(v >> j & 1 << 4)
		}
	}
}

func (s *tileRange) unpackQ6K(block []byte) {
	low, high, scales := block[:128], block[128:192], block[192:208]
	d := halfAt(block[208:])
	for i, sc := range scales {
		s.scale[i] = d * float32(int8(sc))
	}
	for half := range 2 {
		ql, qh, q := low[half*64:half*64+64], high[half*32:half*32+32], s.q[half*128:half*128+128]
		for i, h := range qh {
			q[i] = int8(ql[i]&15|h&3<<4) - 32
			q[i+32] = int8(ql[i+32]&15|h>>2&3<<4) - 32
			q[i+64] = int8(ql[i]>>4|h>>4&3<<4) - 32
			q[i+96] = int8(ql[i+32]>>4|h>>6<<4) - 32
		}
	}
}

// dequantizeRow writes the values of row to dst.
func dequantizeRow(dst []float32, t Type, row []byte) {
	if t.Form() == FormF32 {
		readFloats(dst, t, row, 0)
		return
	}
	var s tileRange
	for at := 0; at < len(dst); at += superElems {
		part := dst[at:min(at+superElems, len(dst))]
		s.unpack(t, row, at, len(part))
		for i := range part {
			part[i] = float32(s.q[i]) * s.scale[i/16]
			if hasMin(t) {
				part[i] -= s.min[i/32]
			}
		}
	}
}

// readFloats writes the values of an F32, F16 or BF16 row, from value at on, to dst.
func readFloats(dst []float32, t Type, row []byte, at int) {
	row = row[at*t.BlockBytes():][:len(dst)*t.BlockBytes()]
	switch t {
	case F32:
		for i := range dst {
			dst[i] = math.Float32frombits(binary.LittleEndian.Uint32(row[4*i:]))
		}
	case F16:
		for i := range dst {
			dst[i] = halfAt(row[2*i:])
		}
	case BF16:
		for i := range dst {
			dst[i] = math.Float32frombits(uint32(binary.LittleEndian.Uint16(row[2*i:])) << 16)
		}
	}
}
