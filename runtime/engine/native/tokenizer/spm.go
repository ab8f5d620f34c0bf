package tokenizer

import (
	"math"
	"strings"

	"github.com/llmtop/llmtop/runtime/engine/native/gguf"
)

// blank represents a space in a SentencePiece vocabulary.
const blank = "▁"

// spm is SentencePiece's BPE: the two neighbours that form the token with the highest score merge first. Remaining
// symbols that are not tokens are encoded as byte tokens.
type spm struct {
	vocab   *vocab
	longest int        // length of the longest token in bytes
	byteIDs [256]int32 // None if there is no token for the byte
}

func newSPM(m gguf.Metadata, v *vocab) (*spm, error) {
	s := &spm{vocab: v}
	v.bos, v.eos, v.addBOS = 1, 2, true // llama.cpp's defaults for this kind of vocabulary
	var err error
	if v.addSpace, err = gguf.OrDefault(m.Bool, "tokenizer.ggml.add_space_prefix", true); err != nil {
		return nil, err
	}
	for _, t := range v.tokens {
		s.longest = max(s.longest, len(t))
	}
	unknown, err := v.keyed(m, "unknown_token_id", 0)
	if err != nil {
		return nil, err
	}
	const hex = "0123456789ABCDEF"
	for b := range s.byteIDs {
		s.byteIDs[b] = v.id("<0x" + string([]byte{hex[b>>4], hex[b&15]}) + ">")
		if s.byteIDs[b] == None {
			s.byteIDs[b] = v.id(string([]byte{byte(b)}))
		}
		if s.byteIDs[b] == None {
			s.byteIDs[b] = unknown
		}
	}
	return s, nil
}

func (s *spm) encode(dst []int32, text string, afterSpecial bool, w *scratch) []int32 {
	w.text = w.text[:0]
	if s.vocab.addSpace && afterSpecial {
		w.text = append(w.text, blank...)
	}
	for i := range len(text) {
		if text[i] == ' ' {
			w.text = append(w.text, blank...)
		} else {
			w.text = append(w.text, text[i])
		}
	}
	w.reset()
	for at := 0; at < len(w.text); {
		n := min(runeLen(w.text[at]), len(w.text)-at)
		w.add(n, s.find(w.text[at:at+n]))
		at += n
	}
	w.run(w.text, s)
	for i := int32(0); i >= 0; i = w.symbols[i].next {
		sym := w.symbols[i]
		if sym.id != None {
			dst = append(dst, sym.id)
			continue
		}
		for _, b := range w.text[sym.at : sym.at+sym.n] {
			if id := s.byteIDs[b]; id != None {
				dst = append(dst, id)
			}
		}
	}
	return dst
}

func (s *spm) find(text []byte) int32 {
	if id, ok := s.vocab.ids[string(text)]; ok {
		return id
	}
	return None
}

func (s *spm) join(text []byte, left, right symbol) (uint32, int32, bool) {
	n := left.n + right.n
	if int(n) > s.longest {
		return 0, None, false
	}
	id := s.find(text[left.at : left.at+n])
	if id == None {
		return 0, None, false
	}
	return ^sortable(s.vocab.scores[id]), id, true
}

func (s *spm) piece(token string) string { return strings.ReplaceAll(token, blank, " ") }

// sortable maps floats to integers in the same order.
func sortable(f float32) uint32 {
	if f == 0 {
		f = 0 // negative zero becomes zero
	}
	b := math.Float32bits(f)
	if b>>31 != 0 {
		return ^b
	}
	return b | 1<<31
}

// runeLen returns the length of a UTF-8 sequence by its first byte, 1 for an invalid first byte.
func runeLen(first byte) int {
	switch {
	case first >= 0xf0:
		return 4
	case first >= 0xe0:
		return 3
	case first >= 0xc0:
		return 2
	}
	return 1
}
