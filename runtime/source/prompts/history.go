package prompts

import (
	"hash/maphash"
	"slices"
	"unicode/utf8"

	"github.com/llmtop/llmtop/profiler/event"
)

// Bounds of a History.
const (
	maxPrompts = 64
	maxHashes  = 1 << 20 // 4 bytes each
)

// History holds the hashes of recent prompts. It is not safe for concurrent use.
type History struct {
	seed    maphash.Seed
	prompts []print // oldest first
	hashes  int
}

// NewHistory returns an empty history. Hashes of different histories cannot be compared.
func NewHistory() *History { return &History{seed: maphash.MakeSeed()} }

// print is a prompt without its text.
type print struct {
	number event.RequestID
	model  string
	units  []unitPrint
	hashes int
}

type unitPrint struct {
	role   Role
	bytes  int
	whole  uint64
	blocks []uint32 // of block bytes each, the last one shorter
}

// same reports whether two units have the same text.
func (u *unitPrint) same(v *unitPrint) bool {
	return u.role == v.role && u.bytes == v.bytes && u.whole == v.whole
}

// common returns the bytes of the blocks that are equal from the start.
func (u *unitPrint) common(v *unitPrint) int {
	n := 0
	for n < min(len(u.blocks), len(v.blocks)) && u.blocks[n] == v.blocks[n] {
		n++
	}
	return min(n*block, u.bytes, v.bytes)
}

// Add compares a prompt with the earlier one for the same model that it has the longest beginning in common with, the
// newest of several, and remembers it. ok is false if there is no earlier prompt that begins like it.
func (h *History) Add(number event.RequestID, model string, units []Unit) (b event.Reuse, ok bool) {
	p := h.print(number, units)
	p.model = model
	var best *print
	for i := range slices.Backward(h.prompts) {
		if n := p.common(&h.prompts[i]); h.prompts[i].model == model && n > b.Common {
			best, b.Common = &h.prompts[i], n
		}
	}
	for _, u := range p.units {
		b.Bytes += u.bytes
	}
	if best != nil {
		b.With = best.number
		h.compare(&p, best, units, &b)
	}
	h.keep(p)
	if best == nil {
		return event.Reuse{}, false
	}
	return b, true
}

// print hashes a prompt.
func (h *History) print(number event.RequestID, units []Unit) print {
	p := print{number: number}
	for _, u := range units {
		v := unitPrint{role: u.Role, bytes: len(u.Text), whole: maphash.String(h.seed, u.Text)}
		for rest := u.Text; rest != ""; rest = rest[min(block, len(rest)):] {
			v.blocks = append(v.blocks, uint32(maphash.String(h.seed, rest[:min(block, len(rest))])))
		}
		p.units, p.hashes = append(p.units, v), p.hashes+len(v.blocks)
	}
	return p
}

// keep adds a prompt and drops the oldest ones beyond the bounds.
func (h *History) keep(p print) {
	h.prompts, h.hashes = append(h.prompts, p), h.hashes+p.hashes
	drop := 0
	for len(h.prompts)-drop > maxPrompts || h.hashes > maxHashes && drop < len(h.prompts) {
		h.hashes -= h.prompts[drop].hashes
		drop++
	}
	h.prompts = slices.Delete(h.prompts, 0, drop)
}

// equalUnits returns how many units are the same from the start.
func (p *print) equalUnits(q *print) int {
	n := 0
	for n < min(len(p.units), len(q.units)) && p.units[n].same(&q.units[n]) {
		n++
	}
	return n
}

// common returns the bytes that both prompts begin with.
func (p *print) common(q *print) (bytes int) {
	n := p.equalUnits(q)
	for i := range n {
		bytes += p.units[i].bytes
	}
	if n < min(len(p.units), len(q.units)) && p.units[n].role == q.units[n].role {
		bytes += p.units[n].common(&q.units[n])
	}
	return bytes
}

// compare sets the kind and the place of the break with an earlier prompt.
func (h *History) compare(p, q *print, units []Unit, b *event.Reuse) {
	n := p.equalUnits(q)
	if n == len(q.units) || n == len(p.units) {
		return // one goes on where the other ends
	}
	u, v := &p.units[n], &q.units[n]
	if n+1 == len(q.units) && u.role == v.role && u.bytes > v.bytes && maphash.String(h.seed, units[n].Text[:v.bytes]) == v.whole {
		return // the text of its last unit goes on
	}
	at := 0
	if u.role == v.role {
		at = u.common(v)
	}
	b.Place, b.At = units[n].Place, utf8.RuneCountInString(units[n].Text[:at])
	b.Same = p.sameAfter(q, n)
	switch {
	case u.role == Tool || v.role == Tool:
		b.Kind = event.BreakTools
		if p.sameTools(q) {
			b.Kind = event.BreakToolOrder
		}
		return
	case p.trimmed(q, n):
		b.Kind = event.BreakTrimmed
		return
	}
	if u.role == v.role {
		if kind, where := volatileAt(units[n].Text, at); kind != event.BreakNone {
			b.Kind, b.At = kind, where
			return
		}
	}
	switch u.role {
	case System:
		b.Kind = event.BreakInstructions
	case Assistant:
		b.Kind = event.BreakAnswer
	case Other:
		b.Kind = event.BreakText
	default:
		b.Kind = event.BreakMessage
	}
}

// sameAfter returns the bytes after the break that both prompts have: blocks of the unit with the break, if it has the
// same length in both, and later units, wherever they are.
func (p *print) sameAfter(q *print, n int) (bytes int) {
	u, v := &p.units[n], &q.units[n]
	if u.role == v.role && u.bytes == v.bytes {
		for i := range u.blocks {
			if i*block >= u.common(v) && u.blocks[i] == v.blocks[i] {
				bytes += min(block, u.bytes-i*block)
			}
		}
	}
	left := map[unitKey]int{}
	for i := range q.units[n:] {
		left[q.units[n+i].key()]++
	}
	for i := range p.units[n:] {
		if w := &p.units[n+i]; left[w.key()] > 0 {
			left[w.key()]--
			bytes += w.bytes
		}
	}
	return bytes
}

// unitKey identifies the text of a unit.
type unitKey struct {
	role  Role
	bytes int
	whole uint64
}

func (u *unitPrint) key() unitKey { return unitKey{u.role, u.bytes, u.whole} }

// sameTools reports whether both prompts have the same tools, in any order.
func (p *print) sameTools(q *print) bool {
	count := map[unitKey]int{}
	for i := range p.units {
		if p.units[i].role == Tool {
			count[p.units[i].key()]++
		}
	}
	for i := range q.units {
		if q.units[i].role == Tool {
			count[q.units[i].key()]--
		}
	}
	for _, n := range count {
		if n != 0 {
			return false
		}
	}
	return true
}

// trimmed reports whether the prompt goes on with a later unit of the earlier one.
func (p *print) trimmed(q *print, n int) bool {
	return p.units[n].bytes > 0 && slices.ContainsFunc(q.units[n+1:], func(v unitPrint) bool { return p.units[n].same(&v) })
}
