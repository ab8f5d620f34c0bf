package prompts

import (
	"hash/maphash"
	"slices"
	"sync"
	"unicode/utf8"

	"github.com/llmtop/llmtop/profiler/event"
)

// Bounds of a History.
const (
	maxPrompts = 64
	maxHashes  = 2 << 20 // 4 bytes each
	unitHashes = 12      // size of a unitPrint
)

// History compares prompts with those of requests that have finished. It keeps hashes of them, no text.
type History struct {
	seed maphash.Seed

	mu      sync.Mutex // guards the fields below, and lets one prompt be parsed at a time
	prompts []*Print   // oldest first
	hashes  int
}

// NewHistory returns an empty history. Hashes of different histories cannot be compared.
func NewHistory() *History { return &History{seed: maphash.MakeSeed()} }

// Print is a prompt without its text.
type Print struct {
	Reuse event.Reuse // what it has in common with an earlier one; zero: no kept prompt begins like it

	number event.RequestID
	model  string
	units  []unitPrint
	hashes int
}

// unitKey identifies the text of a unit.
type unitKey struct {
	role  Role
	bytes int
	whole uint64
}

type unitPrint struct {
	unitKey
	words []uint32 // hashes; bit 0: the word changes often
	ends  []int32  // of the words in the text; nil in a prompt that is kept
}

// equalWords returns how many words are equal from the start.
func (u *unitPrint) equalWords(v *unitPrint) int {
	n := 0
	for n < min(len(u.words), len(v.words)) && u.words[n] == v.words[n] {
		n++
	}
	return n
}

// end returns the bytes of the first n words.
func (u *unitPrint) end(n int) int {
	if n == 0 {
		return 0
	}
	return int(u.ends[n-1])
}

// Compare compares the prompt that parse returns with the kept one for the same model that it has the longest beginning in
// common with, the newest of several.
func (h *History) Compare(model string, parse func() []Unit) *Print {
	h.mu.Lock()
	defer h.mu.Unlock()
	units := parse()
	p := h.print(units)
	p.model = model
	var best *Print
	b := &p.Reuse
	for _, q := range slices.Backward(h.prompts) {
		if q.model == model {
			if n := p.common(q); n > b.Common {
				best, b.Common = q, n
			}
		}
	}
	if best != nil {
		b.With = best.number
		for _, u := range p.units {
			b.Bytes += u.bytes
		}
		h.compare(p, best, units, b)
	}
	for i := range p.units {
		p.units[i].ends = nil
	}
	return p
}

// print hashes a prompt.
func (h *History) print(units []Unit) *Print {
	p := &Print{units: make([]unitPrint, len(units))}
	for i, u := range units {
		v := unitPrint{unitKey: unitKey{u.Role, len(u.Text), maphash.String(h.seed, u.Text)}}
		for at := 0; at < len(u.Text); {
			n, changes := nextWord(u.Text[at:])
			hash := uint32(maphash.String(h.seed, u.Text[at:at+n])) &^ 1
			if changes {
				hash |= 1
			}
			at += n
			v.words, v.ends = append(v.words, hash), append(v.ends, int32(at))
		}
		p.units[i] = v
		p.hashes += len(v.words) + unitHashes
	}
	return p
}

// Keep remembers the prompt of a request unless it is empty, and drops the oldest ones beyond the bounds.
func (h *History) Keep(number event.RequestID, p *Print) {
	if len(p.units) == 0 {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	p.number = number
	h.prompts, h.hashes = append(h.prompts, p), h.hashes+p.hashes
	drop := 0
	for len(h.prompts)-drop > maxPrompts || h.hashes > maxHashes && drop < len(h.prompts) {
		h.hashes -= h.prompts[drop].hashes
		drop++
	}
	h.prompts = slices.Delete(h.prompts, 0, drop)
}

// equalUnits returns how many units are the same from the start.
func (p *Print) equalUnits(q *Print) int {
	n := 0
	for n < min(len(p.units), len(q.units)) && p.units[n].unitKey == q.units[n].unitKey {
		n++
	}
	return n
}

// common returns the bytes that both prompts begin with.
func (p *Print) common(q *Print) (bytes int) {
	n := p.equalUnits(q)
	for i := range n {
		bytes += p.units[i].bytes
	}
	if n < min(len(p.units), len(q.units)) && p.units[n].role == q.units[n].role {
		bytes += p.units[n].end(p.units[n].equalWords(&q.units[n]))
	}
	return bytes
}

// compare sets the kind and the place of the break with an earlier prompt.
func (h *History) compare(p, q *Print, units []Unit, b *event.Reuse) {
	n := p.equalUnits(q)
	if n == len(q.units) || n == len(p.units) {
		return // one goes on where the other ends
	}
	u, v := &p.units[n], &q.units[n]
	if n+1 == len(q.units) && u.role == v.role && u.bytes > v.bytes && maphash.String(h.seed, units[n].Text[:v.bytes]) == v.whole {
		return // the text of its last unit goes on
	}
	word := 0
	if u.role == v.role {
		word = u.equalWords(v)
	}
	b.Place, b.At = units[n].Place, utf8.RuneCountInString(units[n].Text[:u.end(word)])
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
	if u.role == v.role && word < min(len(u.words), len(v.words)) && u.words[word]&v.words[word]&1 != 0 {
		if kind, where := volatileAt(units[n].Text, u.end(word), u.end(word+1)); kind != event.BreakNone {
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

// sameAfter returns the bytes after the break that both prompts have: words of the unit with the break, if it has as many
// in both, and later units, wherever they are.
func (p *Print) sameAfter(q *Print, n int) (bytes int) {
	u, v := &p.units[n], &q.units[n]
	if u.role == v.role && len(u.words) == len(v.words) {
		for i := u.equalWords(v); i < len(u.words); i++ {
			if u.words[i] == v.words[i] {
				bytes += u.end(i+1) - u.end(i)
			}
		}
	}
	left := map[unitKey]int{}
	for i := range q.units[n:] {
		left[q.units[n+i].unitKey]++
	}
	for i := range p.units[n:] {
		if w := &p.units[n+i]; left[w.unitKey] > 0 {
			left[w.unitKey]--
			bytes += w.bytes
		}
	}
	return bytes
}

// sameTools reports whether both prompts have the same tools, in any order.
func (p *Print) sameTools(q *Print) bool {
	count := map[unitKey]int{}
	for i := range p.units {
		if p.units[i].role == Tool {
			count[p.units[i].unitKey]++
		}
	}
	for i := range q.units {
		if q.units[i].role == Tool {
			count[q.units[i].unitKey]--
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
func (p *Print) trimmed(q *Print, n int) bool {
	return p.units[n].bytes > 0 && slices.ContainsFunc(q.units[n+1:], func(v unitPrint) bool { return p.units[n].unitKey == v.unitKey })
}
