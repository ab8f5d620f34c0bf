//go:build !amd64

package tensor

func detect() level { return portable }

func (p *product) run(lo, hi int) { p.runGo(lo, hi) }

func quantizeQ80(dst []actBlock, x []float32)    { quantizeQ80Go(dst, x) }
func dot(x, y []float32) float32                 { return dotGo(x, y) }
func axpy(y []float32, a float32, x []float32)   { axpyGo(y, a, x) }
func addTo(y, x []float32)                       { addToGo(y, x) }
func scaleTo(dst, x []float32, s float32)        { scaleToGo(dst, x, s) }
func scaleMul(dst, x, w []float32, s float32)    { scaleMulGo(dst, x, w, s) }
func expSum(x []float32, scale float32) float32  { return expSumGo(x, scale) }
func swiGLU(dst, gate, up []float32)             { swiGLUGo(dst, gate, up) }
func rotateHalves(x, y, cos, sin []float32)      { rotateHalvesGo(x, y, cos, sin) }
func floatsToHalves(dst []uint16, src []float32) { floatsToHalvesGo(dst, src) }
func storeKey(tile []uint16, key []float32)      { storeKeyGo(tile, key) }

func attnScores(scores []float32, stride int, q []float32, rows int, keys []uint16, dim int) {
	attnScoresGo(scores, stride, q, rows, keys, dim)
}

func attnMix(out, weights []float32, stride, rows int, values []uint16, dim, n int) {
	attnMixGo(out, weights, stride, rows, values, dim, n)
}
