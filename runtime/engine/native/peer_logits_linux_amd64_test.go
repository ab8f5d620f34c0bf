package native_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/llmtop/llmtop/runtime/engine/native"
)

// TestPeerLogits compares the engine with llama.cpp for models of every architecture and tensor type: the likeliest
// token at 97 % of all positions (95 % of the hundred positions of one model), log-probabilities within 0.05 on
// average. llama.cpp computes the text as one prompt with flash attention, which keeps queries and weights in float32
// as the engine does; its other code paths round them to 16-bit floats, and random networks magnify the difference.
func TestPeerLogits(t *testing.T) {
	needLibllama(t)
	var cases []blueprint
	for _, kind := range types {
		cases = append(cases, shapes(kind)...)
	}
	var total agreement
	for _, p := range cases {
		t.Run(p.String(), func(t *testing.T) {
			path := filepath.Join(t.TempDir(), p.String()+".gguf")
			if err := os.WriteFile(path, p.bytes(t), 0o600); err != nil {
				t.Fatal(err)
			}
			tokens := text(3, 100, p.vocab)
			peer := openLibllama(t, path, 128, 128, 1, flashAuto)
			if err := peer.run(tokens, 0, true); err != nil {
				t.Fatal(err)
			}
			var a agreement
			compute(t, p.open(t, native.Options{Context: 128, Threads: 1}), tokens, 50, func(pos int, logits []float32, _ []uint16) {
				a.add(logProbs(logits), logProbs(peer.row(pos)))
			})
			a.check(t, 0.05, 0.95)
			total.join(a)
		})
	}
	total.check(t, 0.05, 0.97)
}
