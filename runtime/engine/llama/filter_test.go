//go:build !nollama && (linux || darwin || windows) && (amd64 || arm64)

package llama

import (
	"testing"
	"unsafe"

	"github.com/ebitengine/purego"
)

// tensorNamed returns a tensor with a name; its other fields are not used.
func tensorNamed(name string) *fakeTensor {
	t := &fakeTensor{}
	copy(t.rest[:], name)
	return t
}

// TestFilter calls the filter as the library does: without patterns every call reaches Go, with patterns only those for
// computed nodes.
func TestFilter(t *testing.T) {
	var calls []bool
	w := &watch{nameAt: unsafe.Offsetof(fakeTensor{}.rest), callback: purego.NewCallback(func(_, ask, _ uintptr) uintptr {
		calls = append(calls, ask&0xff != 0)
		return 1
	})}
	filter := func(name string, ask bool) bool {
		word := uintptr(0x5500) // the upper bits of a bool are undefined
		if ask {
			word |= 1
		}
		got, _, _ := purego.SyscallN(filterAddress, uintptr(unsafe.Pointer(tensorNamed(name))), word, w.address())
		return got&0xff != 0
	}
	for _, c := range []struct {
		what     string
		prefixes []string
		off      bool
		name     string
		ask      bool
		want     bool
		through  int
	}{
		{"off", nil, true, nodeTopK + "1", true, false, 0},
		{"off, computed", nil, true, nodeTopK + "1", false, false, 0},
		{"all", nil, false, "anything", true, true, 1},
		{"all, computed", nil, false, "anything", false, true, 1},
		{"wanted", []string{nodeTopK}, false, nodeTopK + "1", true, true, 0},
		{"wanted, another layer", []string{nodeTopK}, false, nodeTopK + "123", true, true, 0},
		{"wanted, computed", []string{nodeTopK}, false, nodeTopK + "1", false, true, 1},
		{"first word differs", []string{nodeTopK}, false, "ffn_inp_topk-1", true, false, 0},
		{"second word differs", []string{nodeTopK}, false, "ffn_moe_weights-1", true, false, 0},
		{"shorter", []string{nodeTopK}, false, "ffn_moe", true, false, 0},
		{"without a name", []string{nodeTopK}, false, "", true, false, 0},
		{"first of four", []string{nodeLayer, nodeTopK, nodeAttention, nodeEmbedding}, false, "l_out-7", true, true, 0},
		{"last of four", []string{nodeLayer, nodeTopK, nodeAttention, nodeEmbedding}, false, nodeEmbedding, true, true, 0},
		{"none of four", []string{nodeLayer, nodeTopK, nodeAttention, nodeEmbedding}, false, "l_in-7", true, false, 0},
	} {
		calls = nil
		w.enable(c.prefixes)
		if c.off {
			w.disable()
		}
		if got := filter(c.name, c.ask); got != c.want || len(calls) != c.through || c.through > 0 && calls[0] != c.ask {
			t.Errorf("%s: answered %v through %d calls %v, want %v through %d", c.what, got, len(calls), calls, c.want, c.through)
		}
	}
}
