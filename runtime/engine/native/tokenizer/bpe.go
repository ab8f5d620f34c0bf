package tokenizer

import (
	"fmt"
	"strings"

	"github.com/llmtop/llmtop/profiler/clean"
	"github.com/llmtop/llmtop/runtime/engine/native/gguf"
)

// bpe is byte-level BPE as in GPT-2: text is split into words, and within a word neighbouring symbols merge in the
// order of a list.
type bpe struct {
	preTokenizer
	byteIDs [256]int32 // symbols of single bytes
	merges  map[uint64]merge
	words   map[string]int32 // tokens by their bytes, for vocabularies that match whole words first
	tokens  int32            // symbols from here on are not tokens
}

// merge is the result of merging two symbols, and its rank in the list.
type merge struct {
	rank uint32
	id   int32
}

func newBPE(m gguf.Metadata, v *vocab) (*bpe, error) {
	pre, err := m.String("tokenizer.ggml.pre")
	if err != nil {
		return nil, err
	}
	b := &bpe{tokens: int32(len(v.tokens))}
	var ok bool
	if b.preTokenizer, ok = preTokenizers[pre]; !ok {
		return nil, fmt.Errorf("tokenizer.ggml.pre is %s; supported: %s", clean.Quote(pre), preTokenizerNames())
	}
	v.bos, v.eos, v.addBOS = 11, 11, b.addBOS // llama.cpp's defaults for this kind of vocabulary
	list, err := m.Strings("tokenizer.ggml.merges")
	if err != nil {
		return nil, err
	}
	b.readMerges(list, v)
	if b.wholeWords {
		b.words = make(map[string]int32, len(v.tokens))
		for id, text := range v.tokens {
			if raw, ok := decodeBytes(text); ok {
				b.words[raw] = int32(id)
			}
		}
	}
	return b, nil
}

// readMerges assigns every text in the list a symbol: its token id, or a number above the vocabulary.
func (b *bpe) readMerges(list []string, v *vocab) {
	others := map[string]int32{}
	symbol := func(text string) int32 {
		if id, ok := v.ids[text]; ok {
			return id
		}
		id, ok := others[text]
		if !ok {
			id = b.tokens + int32(len(others))
			others[text] = id
		}
		return id
	}
	for i := range b.byteIDs {
		b.byteIDs[i] = symbol(string(byteRunes[i]))
	}
	b.merges = make(map[uint64]merge, len(list))
	for rank, line := range list {
		if line == "" {
			continue
		}
		i := strings.IndexByte(line[1:], ' ') + 1 // the left side is not empty
		if i == 0 {
			continue
		}
		left, right := line[:i], line[i+1:]
		key := pairKey(symbol(left), symbol(right))
		if _, ok := b.merges[key]; !ok {
			b.merges[key] = merge{uint32(rank), symbol(left + right)}
		}
	}
}

func pairKey(left, right int32) uint64 { return uint64(left)<<32 | uint64(right) }

func (b *bpe) join(_ []byte, left, right symbol) (uint32, int32, bool) {
	m, ok := b.merges[pairKey(left.id, right.id)]
	return m.rank, m.id, ok
}

func (b *bpe) encode(dst []int32, text string, _ bool, s *scratch) []int32 {
	for len(text) > 0 {
		n := b.next(text)
		dst = b.word(dst, text[:n], s)
		text = text[n:]
	}
	return dst
}

// word appends the tokens of one word. A symbol that is not a token occurs only with an inconsistent vocabulary. As in
// llama.cpp, its printable ASCII characters that are tokens are kept.
func (b *bpe) word(dst []int32, word string, s *scratch) []int32 {
	if id, ok := b.words[word]; ok {
		return append(dst, id)
	}
	s.reset()
	for i := range len(word) {
		s.add(1, b.byteIDs[word[i]])
	}
	s.run(nil, b)
	for i := int32(0); i >= 0; i = s.symbols[i].next {
		sym := s.symbols[i]
		if sym.id < b.tokens {
			dst = append(dst, sym.id)
			continue
		}
		for _, c := range []byte(word[sym.at : sym.at+sym.n]) {
			if id := b.byteIDs[c]; id < b.tokens && c > ' ' && c < 0x7f {
				dst = append(dst, id)
			}
		}
	}
	return dst
}

func (b *bpe) piece(token string) string {
	if raw, ok := decodeBytes(token); ok {
		return raw
	}
	return token
}

// byteRunes maps bytes to the characters of a byte-level vocabulary: printable bytes to themselves, the others to
// U+0100 and following. runeBytes is the inverse plus 1, so that 0 means none.
var byteRunes, runeBytes = func() (runes [256]rune, bytes [0x200]uint16) {
	next := rune(0x100)
	for b := range runes {
		r := rune(b)
		if r <= ' ' || r > '~' && r < 0xa1 || r == 0xad {
			r = next
			next++
		}
		runes[b] = r
		bytes[r] = uint16(b) + 1
	}
	return runes, bytes
}()

// decodeBytes returns the bytes of a token in a byte-level vocabulary; ok is false if the text has characters other
// than byteRunes.
func decodeBytes(text string) (string, bool) {
	out := make([]byte, 0, len(text))
	for _, r := range text {
		if int(r) >= len(runeBytes) || runeBytes[r] == 0 {
			return "", false
		}
		out = append(out, byte(runeBytes[r]-1))
	}
	return string(out), true
}
