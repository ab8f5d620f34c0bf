package native

import (
	"errors"
	"fmt"

	"github.com/llmtop/llmtop/runtime/engine/native/gguf"
	"github.com/llmtop/llmtop/runtime/engine/native/model"
	"github.com/llmtop/llmtop/runtime/engine/native/tokenizer"
)

// Check returns how fast Open would run the model in a file, or why it could not. It neither loads the model nor
// considers memory.
func Check(path string) (p Speed, err error) {
	f, err := gguf.Open(path)
	if err != nil {
		return p, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	w, err := model.Load(f)
	if err != nil {
		return p, err
	}
	t, err := tokenizer.New(f)
	if err == nil && t.Size() != w.Vocab {
		err = sizes(t.Size(), w.Vocab)
	}
	return speedOf(f, kernelsHere()), err
}

// sizes returns the error of a tokenizer that does not match the model.
func sizes(tokens, rows int) error {
	return fmt.Errorf("the vocabulary has %d tokens, the embedding %d rows", tokens, rows)
}
