package tokenizer

import (
	"errors"
	"fmt"
	"math"
	"strconv"

	"github.com/llmtop/llmtop/profiler/clean"
	"github.com/llmtop/llmtop/runtime/engine/native/gguf"
)

// attr is a set of attributes of a token. attrControl may be added to the attribute of its type.
type attr uint8

const (
	attrNormal attr = 1 << iota
	attrUnknown
	attrControl
	attrUserDefined
	attrByte

	attrSpecial = attrUnknown | attrControl | attrUserDefined // found as a whole before the text is split
)

// attrOf maps the values of tokenizer.ggml.token_type to attributes; unused tokens (5) have none.
var attrOf = map[int64]attr{1: attrNormal, 2: attrUnknown, 3: attrControl, 4: attrUserDefined, 6: attrByte}

// vocab holds the tokens of a model and their special roles.
type vocab struct {
	tokens []string // as stored: byte-encoded or with ▁ for spaces
	scores []float32
	attrs  []attr
	ids    map[string]int32

	bos, eos       int32
	addBOS, addEOS bool
	addSpace       bool // in front of the text
	eog            map[int32]struct{}

	stripLeft, stripRight map[int32]bool // special tokens that include the white space on that side
}

func (v *vocab) read(m gguf.Metadata) error {
	var err error
	if v.tokens, err = m.Strings("tokenizer.ggml.tokens"); err != nil {
		return err
	}
	n := len(v.tokens)
	if n == 0 || n > math.MaxInt32 {
		return fmt.Errorf("a vocabulary of %d tokens", n)
	}
	v.ids = make(map[string]int32, n)
	for i, text := range v.tokens {
		if text == "" {
			text = "[EMPTY_" + strconv.Itoa(i) + "]"
			v.tokens[i] = text
		}
		if old, ok := v.ids[text]; ok {
			return fmt.Errorf("tokens %d and %d are both %s", old, i, clean.Quote(text))
		}
		v.ids[text] = int32(i)
	}
	if err := v.readScores(m); err != nil {
		return err
	}
	return v.readTypes(m)
}

func (v *vocab) readScores(m gguf.Metadata) error {
	const key = "tokenizer.ggml.scores"
	v.scores = make([]float32, len(v.tokens))
	if !m.Has(key) {
		return nil
	}
	if ints, err := m.Ints(key); err == nil {
		if len(ints) < len(v.scores) {
			return fmt.Errorf("%d scores for %d tokens", len(ints), len(v.scores))
		}
		for i := range v.scores {
			v.scores[i] = float32(ints[i])
		}
		return nil
	}
	floats, err := m.Floats(key)
	if err != nil {
		return err
	}
	if copy(v.scores, floats) < len(v.scores) {
		return fmt.Errorf("%d scores for %d tokens", len(floats), len(v.scores))
	}
	return nil
}

func (v *vocab) readTypes(m gguf.Metadata) error {
	v.attrs = make([]attr, len(v.tokens))
	types, err := m.Ints("tokenizer.ggml.token_type")
	switch {
	case errors.Is(err, gguf.ErrMissing):
		for i := range v.attrs {
			v.attrs[i] = attrNormal
		}
		return nil
	case err != nil:
		return err
	case len(types) < len(v.attrs):
		return fmt.Errorf("%d token types for %d tokens", len(types), len(v.attrs))
	}
	for i := range v.attrs {
		v.attrs[i] = attrOf[types[i]]
	}
	return nil
}

// id returns the token with that text, or None.
func (v *vocab) id(text string) int32 {
	if id, ok := v.ids[text]; ok {
		return id
	}
	return None
}

// byteToken returns the value of a byte token's text, such as <0x0A>.
func byteToken(text string) (byte, bool) {
	if len(text) != 6 || text[:3] != "<0x" || text[5] != '>' {
		return 0, false
	}
	n, err := strconv.ParseUint(text[3:5], 16, 8)
	return byte(n), err == nil
}
