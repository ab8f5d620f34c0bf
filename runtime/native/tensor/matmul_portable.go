package tensor

// runGo is the portable product: it unpacks up to 256 values of a row and meets every vector with them.
func (p *product) runGo(lo, hi int) {
	if p.m.Type.Form() == FormF32 {
		p.runFloatGo(lo, hi)
		return
	}
	var s span
	blocks := p.a.blocksOf(p.m.Type)
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
				*d = s.dot(p.m.Type, blocks[first:first+n/blockElems], *d)
			}
		}
	}
}

// dot adds the product of the span and a vector's blocks to acc, block after block.
func (s *span) dot(t Type, blocks []actBlock, acc float32) float32 {
	for b := range blocks {
		a, q := &blocks[b], s.q[b*blockElems:(b+1)*blockElems]
		if halfScales(t) {
			acc += float32(dotInt(q[:16], a.q[:16])) * (s.scale[2*b] * a.scale)
			acc += float32(dotInt(q[16:], a.q[16:])) * (s.scale[2*b+1] * a.scale)
			continue
		}
		acc += float32(dotInt(q, a.q[:])) * (s.scale[2*b] * a.scale)
		if hasMin(t) {
			acc -= s.min[b] * a.sum
		}
	}
	return acc
}

func dotInt(x, y []int8) int32 {
	sum := int32(0)
	for i, v := range x {
		sum += int32(v) * int32(y[i])
	}
	return sum
}

func (p *product) runFloatGo(lo, hi int) {
	cols := p.m.Cols
	for r := lo; r < hi; r++ {
		row := p.m.Row(r)
		for j := range p.n {
			x := p.a.f32[p.vector(j)*cols:][:cols]
			sum := float32(0)
			for i, v := range x {
				sum += floatAt(p.m.Type, row, i) * v
			}
			p.dst[p.row(j)*p.ldd+r] = sum
		}
	}
}
