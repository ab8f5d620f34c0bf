package tokenizer

import (
	"cmp"
	"slices"
	"strings"
)

// specials are the tokens that are matched as a whole, before the text between them is encoded: longest first, then by id.
type specials []special

type special struct {
	id      int32
	text    string
	control bool // matched only on request

	stripLeft, stripRight bool // include the white space on that side
}

// part is a piece of text, or a special token.
type part struct {
	lo, hi int
	id     int32 // None for text
}

func newSpecials(v *vocab) (s specials) {
	for id, a := range v.attrs {
		if a&attrSpecial != 0 {
			id := int32(id)
			s = append(s, special{
				id: id, text: v.tokens[id], control: a&(attrControl|attrUnknown) != 0,
				stripLeft: v.stripLeft[id], stripRight: v.stripRight[id],
			})
		}
	}
	slices.SortStableFunc(s, func(a, b special) int { return cmp.Compare(len(b.text), len(a.text)) })
	return s
}

// split splits text at its special tokens. As in llama.cpp, all occurrences of a longer token are matched before any of
// a shorter one, even if that one starts further left. The result is stored in w.
func (s specials) split(text string, control bool, w *scratch) []part {
	parts, spare := w.parts[:0], w.spare[:0]
	if text != "" {
		parts = append(parts, part{0, len(text), None})
	}
	for _, t := range s {
		if t.control && !control || !strings.Contains(text, t.text) {
			continue
		}
		spare = spare[:0]
		for _, p := range parts {
			spare = t.cut(spare, text, p)
		}
		parts, spare = spare, parts
	}
	w.parts, w.spare = parts, spare
	return parts
}

// whiteSpace is that of C's isspace.
const whiteSpace = " \t\n\v\f\r"

// cut appends p to dst, split at each occurrence of t.
func (t special) cut(dst []part, text string, p part) []part {
	for p.id == None {
		i := strings.Index(text[p.lo:p.hi], t.text)
		if i < 0 {
			break
		}
		left := text[p.lo : p.lo+i]
		if t.stripLeft {
			left = strings.TrimRight(left, whiteSpace)
		}
		if left != "" {
			dst = append(dst, part{p.lo, p.lo + len(left), None})
		}
		dst = append(dst, part{id: t.id})
		p.lo += i + len(t.text)
		if t.stripRight {
			p.lo = p.hi - len(strings.TrimLeft(text[p.lo:p.hi], whiteSpace))
		}
		if p.lo == p.hi {
			return dst
		}
	}
	return append(dst, p)
}
