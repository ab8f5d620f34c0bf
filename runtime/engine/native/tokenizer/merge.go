package tokenizer

// symbol is a part of the text that can merge with its right neighbour.
type symbol struct {
	at, n      int32 // position and length in bytes; n is 0 after the symbol was merged into another
	prev, next int32 // -1 at the ends
	id         int32 // token id, or None
}

// candidate is a possible merge of the symbol left with the next one.
type candidate struct {
	order uint32 // lowest first, then leftmost
	left  int32
	id    int32 // of the merged symbol
	n     int32 // bytes of the merged symbol
}

func (c candidate) before(d candidate) bool {
	return c.order < d.order || c.order == d.order && c.left < d.left
}

// merger repeats the best merge of two neighbouring symbols until none is left, in O(n log n), with a heap of
// candidates. Outdated candidates are detected by their length.
type merger struct {
	symbols []symbol
	heap    []candidate
}

// reset removes all symbols.
func (m *merger) reset() { m.symbols, m.heap = m.symbols[:0], m.heap[:0] }

// add appends a symbol for the next n bytes.
func (m *merger) add(n int, id int32) {
	i := int32(len(m.symbols))
	s := symbol{n: int32(n), prev: i - 1, next: -1, id: id}
	if i > 0 {
		last := &m.symbols[i-1]
		s.at, last.next = last.at+last.n, i
	}
	m.symbols = append(m.symbols, s)
}

// run merges. The resulting symbols are those from 0 on, linked by next.
func (m *merger) run(text []byte, r encoder) {
	for i := range len(m.symbols) - 1 {
		m.try(text, r, int32(i))
	}
	for len(m.heap) > 0 {
		c := m.pop()
		left := &m.symbols[c.left]
		if left.n == 0 || left.next < 0 || left.n+m.symbols[left.next].n != c.n {
			continue
		}
		right := &m.symbols[left.next]
		left.n, left.id, left.next = c.n, c.id, right.next
		right.n = 0
		if left.next >= 0 {
			m.symbols[left.next].prev = c.left
		}
		m.try(text, r, left.prev)
		m.try(text, r, c.left)
	}
}

// try adds a candidate for symbol i and the next one.
func (m *merger) try(text []byte, r encoder, i int32) {
	if i < 0 || m.symbols[i].next < 0 {
		return
	}
	left := m.symbols[i]
	right := m.symbols[left.next]
	if order, id, ok := r.join(text, left, right); ok {
		m.push(candidate{order, i, id, left.n + right.n})
	}
}

func (m *merger) push(c candidate) {
	m.heap = append(m.heap, c)
	i := len(m.heap) - 1
	for i > 0 {
		up := (i - 1) / 2
		if !c.before(m.heap[up]) {
			break
		}
		m.heap[i] = m.heap[up]
		i = up
	}
	m.heap[i] = c
}

func (m *merger) pop() candidate {
	top, n := m.heap[0], len(m.heap)-1
	c := m.heap[n]
	m.heap = m.heap[:n]
	if n == 0 {
		return top
	}
	i := 0
	for {
		down := 2*i + 1
		if down+1 < n && m.heap[down+1].before(m.heap[down]) {
			down++
		}
		if down >= n || !m.heap[down].before(c) {
			break
		}
		m.heap[i] = m.heap[down]
		i = down
	}
	m.heap[i] = c
	return top
}
