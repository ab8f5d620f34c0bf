package tensor

import "os"

// level is a set of kernels; a higher one needs more CPU features.
type level int

const (
	portable level = iota
	avx2           // AVX2, FMA, F16C
	avx512         // AVX-512 F, BW, DQ, VL and VNNI
)

// names are the results of Features; LLMTOP_CPU takes the part before the dash.
var names = map[level]string{portable: "portable", avx2: "avx2", avx512: "avx512-vnni"}

// active is the set of kernels in use. After start, only tests change it.
var active = chooseLevel(os.Getenv("LLMTOP_CPU"), detect())

// chooseLevel returns the requested set, or the best one if the request is unknown or not supported.
func chooseLevel(asked string, best level) level {
	wanted, ok := map[string]level{"portable": portable, "avx2": avx2, "avx512": avx512}[asked]
	if !ok {
		return best
	}
	return min(wanted, best)
}

// Features returns the set of kernels in use: "avx512-vnni", "avx2" or "portable".
func Features() string { return names[active] }
