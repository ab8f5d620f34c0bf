package tensor

// runGo is the portable product: it unpacks up to 256 values of a row and multiplies every vector with them.
func (p *product) runGo(lo, hi int) {
	if p.m.Type.Form() == FormF32 {
		p.runFloatGo(lo, hi)
		return
	}
	var s tileRange
	for r := lo; r < hi; r++ {
		row := p.m.Row(r)
		for at := 0; at < p.m.Cols; at += superElems {
			n := min(superElems, p.m.Cols-at)
			s.unpack(p.m.Type, row, at, n)
			for j := range p.n {
				first := p.vector(j)*p.a.blocks + at/blockElems
				d := &p.dst[p.row(j)*p.ldd+r]
				if at == 0 {
					*d = 0
				}
				*d = s.dot(p.m.Type, p.a.q80[first:first+n/blockElems], *d)
			}
		}
	}
}

// dot adds the product of the span and a vector's blocks to acc, block after block.
func (s *tileRange) dot(t Type, blocks []actBlock, acc float32) float32 {
	halves, minimum := halfScales(t), hasMin(t)
	for b := range blocks {
		a, q := &blocks[b], s.q[b*blockElems:(b+1)*blockElems]
		first := dotInt((*[16]int8)(q), (*[16]int8)(a.q[:]))
		second := dotInt((*[16]int8)(q[16:]), (*[16]int8)(a.q[16:]))
		if halves {
			acc += float32(first) * (s.scale[2*b] * a.scale)
			acc += float32(second) * (s.scale[2*b+1] * a.scale)
			continue
		}
		acc += float32(first+second) * (s.scale[2*b] * a.scale)
		if minimum {
			acc -= s.min[b] * a.sum
		}
	}
	return acc
}

func dotInt(x, y *[16]int8) int32 {
	a, b := int32(0), int32(0) // two independent sums
	for i := 0; i < 16; i += 4 {
		a += int32(x[i])*int32(y[i]) + int32(x[i+1])*int32(y[i+1])
		b += int32(x[i+2])*int32(y[i+2]) + int32(x[i+3])*int32(y[i+3])
	}
	return a + b
}

// floatSpan is the number of values of a row that are converted at a time.
const floatSpan = 64

func (p *product) runFloatGo(lo, hi int) {
	var w [floatSpan]float32
	cols := p.m.Cols
	for r := lo; r < hi; r++ {
		row := p.m.Row(r)
		for at := 0; at < cols; at += floatSpan {
			n := min(floatSpan, cols-at)
			readFloats(w[:n], p.m.Type, row, at)
			for j := range p.n {
				d := &p.dst[p.row(j)*p.ldd+r]
				if at == 0 {
					*d = 0
				}
				*d += dotGo(w[:n], p.a.f32[p.vector(j)*cols+at:][:n])
			}
		}
	}
}
