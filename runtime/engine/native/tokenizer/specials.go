package tokenizer

import (
	"cmp"
	"slices"
	"strings"
)

// specials finds tokens that are matched as a whole, before the text between them is encoded.
type specials struct {
	tokens []special // longest first, then by id
	nodes  []node    // a trie of their texts; nodes[0] is the root
}

type special struct {
	id      int32
	text    string
	control bool // matched only on request

	stripLeft, stripRight bool // include the white space on that side
}

type node struct {
	children map[byte]int32
	token    int32 // index into tokens, or None
}

// part is a piece of text, or a special token.
type part struct {
	lo, hi int
	id     int32 // None for text
}

func newSpecials(v *vocab) specials {
	s := specials{nodes: []node{{token: None}}}
	for id, a := range v.attrs {
		if a&attrSpecial != 0 {
			id := int32(id)
			s.tokens = append(s.tokens, special{
				id: id, text: v.tokens[id], control: a&(attrControl|attrUnknown) != 0,
				stripLeft: v.stripLeft[id], stripRight: v.stripRight[id],
			})
		}
	}
	slices.SortStableFunc(s.tokens, func(a, b special) int { return cmp.Compare(len(b.text), len(a.text)) })
	for i, t := range s.tokens {
		s.insert(t.text, int32(i))
	}
	return s
}

func (s *specials) insert(text string, token int32) {
	at := int32(0)
	for i := range len(text) {
		next, ok := s.nodes[at].children[text[i]]
		if !ok {
			next = int32(len(s.nodes))
			s.nodes = append(s.nodes, node{token: None})
			if s.nodes[at].children == nil {
				s.nodes[at].children = map[byte]int32{}
			}
			s.nodes[at].children[text[i]] = next
		}
		at = next
	}
	s.nodes[at].token = token
}

// split splits text at its special tokens. As in llama.cpp, all occurrences of a longer token are matched before any of
// a shorter one, even if that one starts further left. The result is stored in w.
func (s *specials) split(text string, control bool, w *scratch) []part {
	parts, spare := w.parts[:0], w.spare[:0]
	if text != "" {
		parts = append(parts, part{0, len(text), None})
	}
	for _, i := range s.present(text) {
		t := s.tokens[i]
		if t.control && !control {
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

// present returns the indexes of the tokens that occur in text, in order.
func (s *specials) present(text string) []int32 {
	root := s.nodes[0].children
	if len(root) == 0 {
		return nil
	}
	var starts [256]bool
	for b := range root {
		starts[b] = true
	}
	var found []int32
	for i := range len(text) {
		if !starts[text[i]] {
			continue
		}
		at, ok := int32(0), true
		for j := i; ok && j < len(text); j++ {
			if at, ok = s.nodes[at].children[text[j]]; ok && s.nodes[at].token != None && !slices.Contains(found, s.nodes[at].token) {
				found = append(found, s.nodes[at].token)
			}
		}
	}
	slices.Sort(found)
	return found
}
