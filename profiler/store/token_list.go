package store

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/bits"
	"sync"
	"unsafe"
	"weak"

	"github.com/llmtop/llmtop/profiler/event"
)

// TokenList holds the tokens of a request: as they are while it is open, and once it has ended as bytes, a quarter of the
// size.
type TokenList struct {
	open   []Token
	packed *packedTokens
}

// All returns the tokens, oldest first. The caller must not write to them.
func (l TokenList) All() []Token {
	if l.packed == nil {
		return l.open
	}
	return l.packed.all()
}

// Len returns how many there are.
func (l TokenList) Len() int {
	if l.packed == nil {
		return len(l.open)
	}
	return l.packed.n
}

// size returns the memory of packed tokens in bytes.
func (l TokenList) size() int {
	if l.packed == nil {
		return 0
	}
	return int(unsafe.Sizeof(*l.packed)) + len(l.packed.fields) + len(l.packed.text)
}

// packedTokens are tokens as bytes. Whoever shows them needs them again soon: they stay unpacked until the next garbage
// collection.
type packedTokens struct {
	n, picks int
	fields   []byte
	text     string // of tokens and alternatives, one after the other

	mu   sync.Mutex
	list weak.Pointer[[]Token]
}

// pack returns the same tokens as bytes.
func (l TokenList) pack() TokenList {
	if len(l.open) == 0 {
		return TokenList{}
	}
	p := &packedTokens{n: len(l.open)}
	const guess = 40 // bytes per token
	c := tokenCodec{write: true, before: new(Token), fields: make([]byte, 0, guess*len(l.open))}
	for i := range l.open {
		t := l.open[i] // others read the list
		p.picks += len(t.Picks)
		c.token(&t)
		c.before = &l.open[i]
	}
	p.fields, p.text = bytes.Clone(c.fields), string(c.texts)
	return TokenList{packed: p}
}

// all returns the tokens unpacked.
func (p *packedTokens) all() []Token {
	p.mu.Lock()
	defer p.mu.Unlock()
	if list := p.list.Value(); list != nil {
		return *list
	}
	list := p.unpack()
	p.list = weak.Make(&list)
	return list
}

func (p *packedTokens) unpack() []Token {
	list := make([]Token, p.n)
	c := tokenCodec{before: new(Token), fields: p.fields, text: p.text, picks: make([]uint16, p.picks)}
	for i := range list {
		c.token(&list[i])
		c.before = &list[i]
	}
	return list
}

// tokenCodec writes or reads tokens. Both take the same steps: see token.
type tokenCodec struct {
	write  bool
	before *Token   // the token before
	fields []byte   // written, or still to read
	texts  []byte   // written
	text   string   // still to read
	picks  []uint16 // room for those to read
}

// token writes a token, or sets it to the next one. Most fields follow from the token before.
func (c *tokenCodec) token(t *Token) {
	p := c.before
	t.ID = int32(c.number(int64(t.ID), 0))
	t.N = int(c.number(int64(t.N), 1))
	t.Nth = int(c.number(int64(t.Nth), int64(p.Nth+p.N)))
	t.Index = int(c.number(int64(t.Index), int64(p.Index+p.N)))
	t.At = event.Time(c.number(int64(t.At), int64(p.At)))
	t.Gap = c.number(t.Gap, int64(t.At-p.At))
	t.Paced = c.number(t.Paced, 0)
	t.Step = uint64(c.number(int64(t.Step), int64(p.Step+1)))
	now, last := t.Split.Parts(), p.Split.Parts()
	for i, v := range now {
		*v = uint32(c.number(int64(*v), int64(*last[i])))
	}
	t.Text = c.string(t.Text)
	t.LogP = c.float(t.LogP)
	t.HasLP = c.flag(t.HasLP)
	t.Read = c.whole(t.Read)
	c.alternatives(t)
	c.experts(t)
}

// number writes the difference of a number to the expected one, or reads it.
func (c *tokenCodec) number(v, expected int64) int64 {
	if c.write {
		c.fields = binary.AppendVarint(c.fields, v-expected)
		return v
	}
	d, n := binary.Varint(c.fields)
	c.fields = c.fields[n:]
	return expected + d
}

func (c *tokenCodec) flag(v bool) bool {
	n := int64(0)
	if v {
		n = 1
	}
	return c.number(n, 0) == 1
}

func (c *tokenCodec) float(v float32) float32 {
	return math.Float32frombits(uint32(c.number(int64(math.Float32bits(v)), 0)))
}

// whole is for numbers without a fraction: their last bits are 0.
func (c *tokenCodec) whole(v float64) float64 {
	return math.Float64frombits(bits.Reverse64(uint64(c.number(int64(bits.Reverse64(math.Float64bits(v))), 0))))
}

func (c *tokenCodec) string(v string) string {
	n := c.number(int64(len(v)), 0)
	if c.write {
		c.texts = append(c.texts, v...)
		return v
	}
	v, c.text = c.text[:n], c.text[n:]
	return v
}

func (c *tokenCodec) alternatives(t *Token) {
	if n := c.number(int64(len(t.Top)), int64(len(c.before.Top))); !c.write && n > 0 {
		t.Top = make([]event.TopProb, n)
	}
	for i, a := range t.Top {
		a = event.TopProb{ID: int32(c.number(int64(a.ID), 0)), LogP: c.float(a.LogP), Text: c.string(a.Text)}
		if !c.write { // others may read it
			t.Top[i] = a
		}
	}
}

func (c *tokenCodec) experts(t *Token) {
	if n := c.number(int64(len(t.Picks)), int64(len(c.before.Picks))); !c.write && n > 0 {
		t.Picks, c.picks = c.picks[:n:n], c.picks[n:]
	}
	if c.write {
		for _, e := range t.Picks {
			c.fields = binary.AppendUvarint(c.fields, uint64(e))
		}
		return
	}
	for i := range t.Picks {
		e, n := binary.Uvarint(c.fields)
		t.Picks[i], c.fields = uint16(e), c.fields[n:]
	}
}
