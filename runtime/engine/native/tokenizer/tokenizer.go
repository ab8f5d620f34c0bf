// Package tokenizer converts text to the token ids of a model and back. It returns the same ids as llama.cpp's
// llama_tokenize (with add_special set), for byte-level BPE ("gpt2") and SentencePiece BPE ("llama") vocabularies.
//
// There is one intended difference: a byte that is not valid UTF-8 is kept, where llama.cpp inserts U+FFFD, so that
// Decode returns the input of Encode.
package tokenizer

import (
	"fmt"
	"strings"
	"sync"

	"github.com/llmtop/llmtop/profiler/clean"
	"github.com/llmtop/llmtop/runtime/engine/native/gguf"
)

// None is the id of a missing token.
const None int32 = -1

// Tokenizer holds the vocabulary of one model. It is safe for concurrent use.
type Tokenizer struct {
	vocab
	pieces   []string // results of Piece; "" for control tokens
	specials specials
	model    encoder
	scratch  sync.Pool // of *scratch
}

// encoder appends the ids of text without special tokens to dst. afterSpecial means that text is at the start or
// directly after a special token.
type encoder interface {
	encode(dst []int32, text string, afterSpecial bool, s *scratch) []int32
	// join reports whether two neighbours can merge, in which order, and the result.
	join(text []byte, left, right symbol) (order uint32, id int32, ok bool)
	// piece returns the text of a token of type normal.
	piece(token string) string
}

// scratch is the working memory of one Encode.
type scratch struct {
	merger
	parts, spare []part
	text         []byte
}

// New reads the tokenizer from the metadata of a model. It does not need tensors.
func New(f *gguf.File) (*Tokenizer, error) {
	t, err := load(f.Metadata)
	if err != nil {
		return nil, fmt.Errorf("read tokenizer: %w", err)
	}
	return t, nil
}

func load(m gguf.Metadata) (*Tokenizer, error) {
	t := &Tokenizer{scratch: sync.Pool{New: func() any { return new(scratch) }}}
	kind, err := m.String("tokenizer.ggml.model")
	if err != nil {
		return nil, err
	}
	if err := t.vocab.read(m); err != nil {
		return nil, err
	}
	switch kind {
	case "gpt2":
		t.model, err = newBPE(m, &t.vocab)
	case "llama":
		t.model, err = newSPM(m, &t.vocab)
	default:
		return nil, fmt.Errorf("tokenizer.ggml.model is %s; supported: gpt2, llama", clean.Quote(kind))
	}
	if err != nil {
		return nil, err
	}
	if err := t.vocab.readRoles(m); err != nil {
		return nil, err
	}
	t.specials = newSpecials(&t.vocab)
	t.pieces = make([]string, len(t.tokens))
	for id := range t.pieces {
		t.pieces[id] = t.render(int32(id), false)
	}
	return t, nil
}

// Encode appends the ids of text to dst, with BOS in front and EOS at the end if the model requires them. With special
// set, control tokens spelled out in text become their ids. User-defined tokens always do.
func (t *Tokenizer) Encode(dst []int32, text string, special bool) []int32 {
	if t.addBOS {
		dst = append(dst, t.bos)
	}
	s := t.scratch.Get().(*scratch)
	afterSpecial := true
	for _, p := range t.specials.split(text, special, s) {
		if p.id != None {
			dst = append(dst, p.id)
		} else {
			dst = t.model.encode(dst, text[p.lo:p.hi], afterSpecial, s)
		}
		afterSpecial = p.id != None
	}
	t.scratch.Put(s)
	if t.addEOS {
		dst = append(dst, t.eos)
	}
	return dst
}

// Decode returns the text of ids, without control tokens and without the space that the tokenizer put in front. It is
// the inverse of Encode.
func (t *Tokenizer) Decode(ids []int32) string {
	var b strings.Builder
	for _, id := range ids {
		b.WriteString(t.Piece(id))
	}
	if t.addSpace {
		return strings.TrimPrefix(b.String(), " ")
	}
	return b.String()
}

// Piece returns the raw bytes of a token; they may be part of a UTF-8 sequence. It is empty for control tokens and for
// ids outside the vocabulary.
func (t *Tokenizer) Piece(id int32) string {
	if id < 0 || int(id) >= len(t.pieces) {
		return ""
	}
	return t.pieces[id]
}

// render returns the text of a token.
func (t *Tokenizer) render(id int32, special bool) string {
	text := t.tokens[id]
	switch a := t.attrs[id]; {
	case a&(attrControl|attrUnknown) != 0:
		if special {
			return text
		}
	case a == attrUserDefined:
		return text
	case a == attrByte:
		if b, ok := byteToken(text); ok {
			return string([]byte{b})
		}
	case a == attrNormal:
		return t.model.piece(text)
	}
	return ""
}

// Size returns the number of tokens in the vocabulary.
func (t *Tokenizer) Size() int { return len(t.tokens) }

// BOS returns the token that starts a text, or None. Encode adds it only if the model requires it.
func (t *Tokenizer) BOS() int32 { return t.bos }

// EOS returns the token that ends a text, or None.
func (t *Tokenizer) EOS() int32 { return t.eos }

// IsEOG reports whether the token ends a generation: end of text, of turn or of message.
func (t *Tokenizer) IsEOG(id int32) bool {
	_, ok := t.eog[id]
	return ok
}
