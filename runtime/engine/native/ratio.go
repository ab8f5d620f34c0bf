package native

import (
	"fmt"
	"runtime"
	"strings"

	"github.com/klauspost/cpuid/v2"

	"github.com/llmtop/llmtop/runtime/engine/native/gguf"
	"github.com/llmtop/llmtop/runtime/engine/native/tensor"
)

// LeastRatio is the ratio of speeds below which llama.cpp is the better choice.
const LeastRatio = 0.95

// portable is the name of the kernels without instructions of a processor.
const portable = "portable"

// measuredFrom is the size in bytes of the smallest models that ratios was measured with. Decoding small models, native
// is several times as fast as llama.cpp.
const measuredFrom = 256 << 20

// onAMD follows the name of kernels on a processor of AMD, which were measured on a Zen 4; the others on an Intel Xeon.
const onAMD = " on AMD"

// ratios holds decode speeds relative to llama.cpp's, by kernels and type of weights: the tables of docs/performance.md,
// the smallest ratio of a dense model.
var ratios = map[string]map[tensor.Type]float64{
	portable: {tensor.Q8_0: 0.28, tensor.Q4_K: 0.34}, // at most: a rough measurement
	"avx2":   {tensor.Q8_0: 1.68, tensor.Q4_0: 1.71, tensor.Q4_K: 1.62, tensor.Q6_K: 1.34, tensor.F16: 1.43},
	"avx512-vnni": {
		tensor.Q8_0: 1.08, tensor.Q4_0: 0.92, tensor.Q4_K: 1.52, tensor.Q5_K: 2.00, tensor.Q6_K: 1.74,
		tensor.F16: 0.99, tensor.BF16: 1.16,
	},
	"avx2" + onAMD: {
		tensor.Q8_0: 1.00, tensor.Q4_0: 1.02, tensor.Q4_K: 0.99, tensor.Q5_K: 1.18, tensor.Q6_K: 1.00,
		tensor.F16: 0.98, tensor.BF16: 0.98,
	},
	"avx512-vnni" + onAMD: {
		tensor.Q8_0: 0.97, tensor.Q4_0: 0.98, tensor.Q4_K: 0.97, tensor.Q5_K: 1.15, tensor.Q6_K: 0.96,
		tensor.F16: 0.96, tensor.BF16: 0.99,
	},
}

// kernelsHere returns the kernels in use as a key of ratios.
func kernelsHere() string {
	kernels := tensor.Features()
	if _, measured := ratios[kernels+onAMD]; measured && cpuid.CPU.VendorID == cpuid.AMD {
		kernels += onAMD
	}
	return kernels
}

// Speed is the expected speed of decoding a model.
type Speed struct {
	Ratio   float64 // to llama.cpp's; 0: not measured for models like this
	Type    string  // type of weights that takes the most time
	Kernels string
}

// String describes the speed in a few words.
func (p Speed) String() string {
	if p.Kernels == portable {
		return fmt.Sprintf("native decodes %s several times slower than llama.cpp, with portable kernels", p.Type)
	}
	kernels, amd := strings.CutSuffix(p.Kernels, onAMD)
	words := fmt.Sprintf("native decodes %s at %.2f of llama.cpp's speed with %s kernels", p.Type, p.Ratio, kernels)
	if amd {
		words += onAMD
	}
	return words
}

// speedOf weighs the measured ratios of the types by the bytes that they have in the model.
func speedOf(f *gguf.File, kernels string) Speed {
	p := Speed{Kernels: kernels}
	if m := f.Describe(); m.Bytes < measuredFrom || m.Experts > 0 && kernels != portable { // with experts native was faster
		return p
	}
	bytes := map[tensor.Type]float64{}
	for _, t := range f.Tensors {
		bytes[t.Type] += float64(t.Bytes)
	}
	var all, time, most float64
	for t, n := range bytes {
		ratio := ratios[kernels][t]
		if ratio == 0 {
			continue
		}
		all, time = all+n, time+n/ratio
		if cost := n / ratio; cost > most || cost == most && t.String() < p.Type {
			most, p.Type = cost, t.String()
		}
	}
	if time > 0 {
		p.Ratio = all / time
	}
	return p
}

// Slow returns why the engine is slow with any model on this machine, or "".
func Slow() string {
	switch {
	case tensor.Features() != portable:
		return ""
	case runtime.GOARCH == "amd64":
		return "slow: native runs without AVX2"
	}
	return "slow: native has no kernels for " + runtime.GOARCH
}
