package native

import (
	"errors"
	"fmt"

	"github.com/llmtop/llmtop/runtime/engine/native/gguf"
	"github.com/llmtop/llmtop/runtime/engine/native/model"
	"github.com/llmtop/llmtop/runtime/engine/native/tokenizer"
)

// Check reports why Open could not run the model in a file, or nil. It neither loads the model nor considers memory.
func Check(path string) (err error) {
	f, err := gguf.Open(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	w, err := model.Load(f)
	if err != nil {
		return err
	}
	t, err := tokenizer.New(f)
	if err == nil && t.Size() != w.Vocab {
		err = sizes(t.Size(), w.Vocab)
	}
	return err
}

// sizes returns the error of a tokenizer that does not match the model.
func sizes(tokens, rows int) error {
	return fmt.Errorf("the vocabulary has %d tokens, the embedding %d rows", tokens, rows)
}
