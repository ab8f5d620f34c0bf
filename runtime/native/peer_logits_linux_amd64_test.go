package native_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/llmtop/llmtop/runtime/native"
)

// TestPeerLogits holds the engine to what llama.cpp computes from models of every architecture and every tensor type: the likeliest
// token at 97 % of all positions (95 % of the hundred of one model), log-probabilities within 0.05 in the mean. The text goes through it as one prompt with flash
// attention, which keeps queries and weights in float32 as the engine does; its other ways round them to half floats, and random
// networks magnify that.
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
