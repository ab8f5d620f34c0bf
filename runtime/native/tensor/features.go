package tensor

import "os"

// level is a set of kernels; a higher one needs more of the processor.
type level int

const (
	portable level = iota
	avx2           // AVX2, FMA, F16C
	avx512         // AVX-512 F, BW, DQ, VL and VNNI
)

// names are what Features says; the words before the dash are those that LLMTOP_CPU takes.
var names = map[level]string{portable: "portable", avx2: "avx2", avx512: "avx512-vnni"}

// active is the set of kernels in use. Only tests change it after start.
var active = chooseLevel(os.Getenv("LLMTOP_CPU"), detect())

// chooseLevel is the set that was asked for, or the best one when that is unknown or not available.
func chooseLevel(asked string, best level) level {
	wanted, ok := map[string]level{"portable": portable, "avx2": avx2, "avx512": avx512}[asked]
	if !ok {
		return best
	}
	return min(wanted, best)
}

// Features names the set of kernels in use: "avx512-vnni", "avx2" or "portable".
func Features() string { return names[active] }
