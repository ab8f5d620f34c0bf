package native

import (
	"errors"
	"fmt"

	"github.com/llmtop/llmtop/runtime/native/gguf"
	"github.com/llmtop/llmtop/runtime/native/model"
	"github.com/llmtop/llmtop/runtime/native/tokenizer"
)

// Check says whether Open can run the model in a file, whatever its size, without loading it: nil, or what stands in the way.
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

// sizes is the error of a tokenizer that is not the model's.
func sizes(tokens, rows int) error {
	return fmt.Errorf("the vocabulary has %d tokens, the embedding %d rows", tokens, rows)
}
