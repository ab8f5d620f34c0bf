package native

import (
	"testing"

	"github.com/llmtop/llmtop/runtime/engine/native/gguf"
	"github.com/llmtop/llmtop/runtime/engine/native/tokenizer"
)

// TestModel compares the model card with the file.
func TestDemoModel(t *testing.T) {
	f, err := gguf.Parse(DemoModel())
	if err != nil {
		t.Fatal(err)
	}
	if err := f.CheckTypes(); err != nil {
		t.Error(err)
	}
	if arch, err := f.Metadata.String("general.architecture"); arch != "qwen3moe" || err != nil {
		t.Errorf("architecture %q, %v", arch, err)
	}
	for key, want := range map[string]uint64{
		"block_count": 8, "embedding_length": 192, "attention.head_count": 6, "attention.key_length": 32, "attention.head_count_kv": 2,
		"expert_count": 16, "expert_used_count": 2, "expert_feed_forward_length": 128, "context_length": 1024, "vocab_size": 4096,
	} {
		if n, err := f.Metadata.Uint("qwen3moe." + key); n != want || err != nil {
			t.Errorf("%s is %d, %v; the model card has %d", key, n, err, want)
		}
	}
	params := uint64(0)
	for _, tensor := range f.Tensors {
		params += tensor.Elements()
	}
	if (params+5_000)/10_000 != 1104 {
		t.Errorf("%d parameters; the model card has 11.04 M", params)
	}
}

func TestDemoModelIsNotCopied(t *testing.T) {
	if n := testing.AllocsPerRun(10, func() { DemoModel() }); n != 0 {
		t.Errorf("Model allocates %v times", n)
	}
	if first, second := DemoModel(), DemoModel(); &first[0] != &second[0] {
		t.Error("DemoModel is another slice at the second call")
	}
}

func TestPrompts(t *testing.T) {
	f, err := gguf.Parse(DemoModel())
	if err != nil {
		t.Fatal(err)
	}
	tok, err := tokenizer.New(f)
	if err != nil {
		t.Fatal(err)
	}
	kinds := []string{"Go code", "scripture", "novel", "speech", "dictionary"}
	seen := map[string]bool{}
	for i, p := range DemoPrompts() {
		if p.Kind != kinds[i%5] || seen[p.Text] {
			t.Errorf("prompt %d is of kind %q: %q", i, p.Kind, p.Text)
		}
		seen[p.Text] = true
		if ids := tok.Encode(nil, p.Text, false); len(ids) < 3 || tok.Decode(ids) != p.Text {
			t.Errorf("prompt %q has the tokens %v", p.Text, ids)
		}
	}
	if len(seen) != 20 {
		t.Errorf("%d prompts", len(seen))
	}
}
