package tensor

// kernels are the functions of one instruction set. Slices are not empty.
type kernels struct {
	dot            func(x, y []float32) float32
	axpy           func(y []float32, a float32, x []float32)
	addTo          func(y, x []float32)
	scaleTo        func(dst, x []float32, s float32)
	scaleMul       func(dst, x, w []float32, s float32)
	expSum         func(x []float32, scale float32) float32
	swiGLU         func(dst, gate, up []float32)
	rotateHalves   func(x, y, cos, sin []float32)
	floatsToHalves func(dst []uint16, src []float32)
	quantizeQ80    func(dst []actBlock, x []float32)

	// Some rows of attention (rowsAtOnce); nil: attnScoresGo and attnMixGo. Heads have a multiple of 16 values for attnMix.
	attnScores func(scores *float32, stride int, q *float32, rows int, keys *uint16, dim, positions int)
	attnMix    func(out, weights *float32, stride, rows int, values *uint16, dim, n int)
}

var portableKernels = kernels{
	dot: dotGo, axpy: axpyGo, addTo: addToGo, scaleTo: scaleToGo, scaleMul: scaleMulGo, expSum: expSumGo, swiGLU: swiGLUGo,
	rotateHalves: rotateHalvesGo, floatsToHalves: floatsToHalvesGo, quantizeQ80: quantizeQ80Go,
}
