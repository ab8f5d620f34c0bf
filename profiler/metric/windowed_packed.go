package metric

// PackedWindowed is a Windowed that is kept, without its empty buckets: some 200 bytes a second of the last minute in which something was
// recorded, instead of 5.4 KB. It is never written again.
type PackedWindowed struct {
	second           int64
	current, session *Packed
	past             []*Packed
	number           []int64
}

// Pack is the distribution as it stands.
func (w *Windowed) Pack() *PackedWindowed {
	if w.collected == nil {
		return &PackedWindowed{second: w.second}
	}
	p := &PackedWindowed{second: w.second, current: w.current.Pack(), session: w.Whole()}
	for i, h := range w.past {
		if h != nil && w.number[i] > w.second-60 {
			p.past, p.number = append(p.past, h.Pack()), append(p.number, w.number[i])
		}
	}
	return p
}

// UnpackTo makes w what was packed.
func (p *PackedWindowed) UnpackTo(w *Windowed) {
	*w = Windowed{second: p.second}
	if p.session == nil {
		return
	}
	w.collected = &collected{current: p.current.Unpack(), session: p.session.Unpack(), packed: p.session}
	for i, past := range p.past {
		h := past.Unpack()
		at := p.number[i] % slots
		w.past[at], w.number[at] = &h, p.number[i]
		w.minute.Add(&h)
		if p.number[i] > p.second-10 {
			w.ten.Add(&h)
		}
	}
}

// Size is about how many bytes it takes.
func (p *PackedWindowed) Size() int {
	size := 96 + p.current.Size() + p.session.Size()
	for _, past := range p.past {
		size += 16 + past.Size()
	}
	return size
}
