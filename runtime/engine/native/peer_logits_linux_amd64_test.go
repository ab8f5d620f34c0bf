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
//
// For K-quants llama.cpp rounds activations in larger blocks. There the log-probabilities are compared with an exact
// computation of the first positions: within 0.05 or as near as llama.cpp's, and in total nearer.
func TestPeerLogits(t *testing.T) {
	needLibllama(t)
	var cases []blueprint
	for _, kind := range types {
		cases = append(cases, shapes(kind)...)
	}
	var total, own, other agreement
	for _, p := range cases {
		t.Run(p.String(), func(t *testing.T) {
			data, path := p.bytes(t), filepath.Join(t.TempDir(), p.String()+".gguf")
			if err := os.WriteFile(path, data, 0o600); err != nil {
				t.Fatal(err)
			}
			tokens := text(3, 100, p.vocab)
			peer := openLibllama(t, path, 128, 128, 1, flashAuto)
			if err := peer.run(tokens, 0, true); err != nil {
				t.Fatal(err)
			}
			kQuant := p.kind.BlockElems() == 256
			ref := newReference(t, p, data)
			var a, exact, theirExact agreement
			compute(t, p.open(t, native.Options{Context: 128, Threads: 1}), tokens, 50, func(pos int, logits []float32, _ []uint16) {
				got, theirs := logProbs(logits), logProbs(peer.row(pos))
				a.add(got, theirs)
				if kQuant && pos < 40 {
					truth := logsOf(softmax(ref.forward(tokens[pos])))
					exact.add(got, truth)
					theirExact.add(theirs, truth)
				}
			})
			limit := 0.05
			if kQuant {
				exact.check(t, max(limit, theirExact.off/float64(theirExact.terms)), 0.95)
				own.join(exact)
				other.join(theirExact)
				limit = 2 * limit // the errors of both
			}
			a.check(t, limit, 0.95)
			total.join(a)
		})
	}
	total.check(t, 0.05, 0.97)
	t.Logf("K-quants: mean |Δ log p| from the exact computation %.5f, of llama.cpp %.5f",
		own.off/float64(own.terms), other.off/float64(other.terms))
	if own.off > 0.9*other.off {
		t.Error("llama.cpp is nearer to the exact computation of K-quants, or as near")
	}
}
