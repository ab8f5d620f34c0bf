package metric

// PackedWindowed is an immutable Windowed without its empty buckets, for storage.
type PackedWindowed struct {
	second        int64
	*packedValues // nil: empty
}

// packedValues are the values of a PackedWindowed.
type packedValues struct {
	current, session *Packed
	past             []*Packed
	number           []int64
}

// Pack returns a copy of the distribution.
func (w *Windowed) Pack() PackedWindowed {
	if w.collected == nil {
		return PackedWindowed{second: w.second}
	}
	p := PackedWindowed{w.second, &packedValues{current: w.current.Pack(), session: w.Whole()}}
	for i, h := range w.past {
		if h != nil && w.number[i] > w.second-60 {
			p.past, p.number = append(p.past, h), append(p.number, w.number[i])
		}
	}
	return p
}

// UnpackTo restores the packed distribution into w.
func (p *PackedWindowed) UnpackTo(w *Windowed) {
	*w = Windowed{second: p.second}
	if p.packedValues == nil {
		return
	}
	w.collected = &collected{current: p.current.Unpack(), session: p.session.Unpack(), packed: p.session}
	for i, past := range p.past {
		at := p.number[i] % slots
		w.past[at], w.number[at] = past, p.number[i]
		w.minute.addPacked(past)
		if p.number[i] > p.second-10 {
			w.ten.addPacked(past)
		}
	}
}

// Size returns the approximate memory that p refers to, in bytes.
func (p *PackedWindowed) Size() int {
	if p.packedValues == nil {
		return 0
	}
	size := 96 + p.current.Size() + p.session.Size()
	for _, past := range p.past {
		size += 16 + past.Size()
	}
	return size
}
