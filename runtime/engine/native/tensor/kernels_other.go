//go:build !amd64

package tensor

var sets = [...]kernels{portable: portableKernels}

func detect() level { return portable }

func (p *product) run(lo, hi int) { p.runGo(lo, hi) }
