package native

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/llmtop/llmtop/runtime/engine/native/gguf"
	"github.com/llmtop/llmtop/runtime/engine/native/tensor"
)

// A model's pace is that of its types, weighted by the time that they take.
func TestSpeed(t *testing.T) {
	old := ratios
	defer func() { ratios = old }()
	ratios = map[string]map[tensor.Type]float64{"avx2": {tensor.Q4_K: 0.5, tensor.Q6_K: 1}, portable: {tensor.Q4_K: 0.2}}
	f := &gguf.File{Tensors: []gguf.Tensor{
		{Type: tensor.Q4_K, Bytes: 300 << 20}, {Type: tensor.Q6_K, Bytes: 100 << 20}, {Type: tensor.F32, Bytes: 1000}, // F32 was not measured
	}}
	p := speedOf(f, "avx2")
	if math.Abs(p.Ratio-400.0/700) > 1e-9 || p.Type != "Q4_K" || !strings.Contains(p.String(), "Q4_K at 0.57 of llama.cpp's speed with avx2 kernels") {
		t.Errorf("the pace is %+v: %s", p, p)
	}
	ratios["avx2"+onAMD] = map[tensor.Type]float64{tensor.Q4_K: 0.8}
	if p := speedOf(f, "avx2"+onAMD); p.Ratio != 0.8 || !strings.HasSuffix(p.String(), "with avx2 kernels on AMD") {
		t.Errorf("the pace on AMD is %+v: %s", p, p)
	}
	if p := speedOf(f, portable); p.Ratio != 0.2 || !strings.Contains(p.String(), "Q4_K several times slower") {
		t.Errorf("the pace of portable kernels is %+v: %s", p, p)
	}
	if p := speedOf(f, "avx512-vnni"); p.Ratio != 0 {
		t.Errorf("the pace of kernels that were not measured is %+v", p)
	}
	f.Tensors = f.Tensors[1:] // a small model
	if p := speedOf(f, "avx2"); p.Ratio != 0 {
		t.Errorf("the pace of a small model is %+v", p)
	}
}

// The table names types and kernels that exist, with plausible ratios.
func TestRatios(t *testing.T) {
	for kernels, types := range ratios {
		if !slices.Contains([]string{portable, "avx2", "avx512-vnni"}, strings.TrimSuffix(kernels, onAMD)) {
			t.Errorf("there are no %s kernels", kernels)
		}
		for kind, ratio := range types {
			if !kind.Supported() || ratio < 0.001 || ratio > 10 {
				t.Errorf("%s with %s kernels at %g", kind, kernels, ratio)
			}
		}
	}
	for _, kernels := range []string{"avx512-vnni", "avx512-vnni" + onAMD, kernelsHere()} {
		if ratio := ratios[kernels][tensor.Q4_K]; ratio < LeastRatio && kernels != portable {
			t.Errorf("most files are Q4_K, whose kernels reach llama.cpp's speed, and the table says otherwise: %g with %s", ratio, kernels)
		}
	}
}
