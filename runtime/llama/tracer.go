//go:build !nollama && (linux || darwin || windows) && (amd64 || arm64)

package llama

import (
	"strconv"
	"strings"
	"time"
	"unsafe"

	"github.com/llmtop/llmtop/runtime"
)

// tracer sees what the library computes in the passes that are watched.
type tracer struct {
	lib  *library
	info shape
	want runtime.Hooks // what is wanted of this pass

	// The library takes the rows of several sequences in an order, and in pieces, of its own, as it does with recurrent models. Then
	// all rows whose picks are counted are of the same phase.
	reorders bool

	rows   []runtime.Row // of the batch
	wanted []int32       // the rows of it that want logits
	count  *counts       // nil for a dense model
	chosen []uint16      // [row][layer][rank], with Hooks.Picks
	raw    []byte        // of the tensor at hand

	began   time.Time
	lap     time.Time // the end of the last part
	split   splits
	ops     *ops
	started time.Time // when the node at hand began, with Hooks.Ops
}

// shape is what of a model the tracer needs to know.
type shape struct{ layers, experts, used int }

// The names of the nodes that are looked at, up to the number of the layer. Source: llama-graph.cpp and the models beside it.
const (
	nodeTopK      = "ffn_moe_topk-" // the experts picked, i32 [used, tokens], a view of all experts in order
	nodeAttention = "ffn_inp-"      // what attention and its residual leave
	nodeLayer     = "l_out-"        // what a layer leaves
	nodeEmbedding = "embd"          // the rows of the tokens
)

// prepare makes room for a model.
func (t *tracer) prepare(s shape) {
	t.info = s
	if s.experts > 0 {
		t.count = newCounts(s)
	}
}

// begin prepares for a pass.
func (t *tracer) begin(rows []runtime.Row, wanted []int32, want runtime.Hooks) {
	t.rows, t.wanted, t.want = rows, wanted, want
	t.began = time.Now()
	t.lap, t.started = t.began, t.began
	t.split.begin(t.info.layers)
	if want.Picks {
		for i := range t.chosen[:len(rows)*t.info.layers*t.info.used] {
			t.chosen[i] = runtime.NoPick
		}
	}
}

// prefixes are the beginnings of the names of the nodes to look at; nil is all.
func (t *tracer) prefixes() []string {
	switch {
	case t.want.Ops:
		return nil
	case t.want.Split:
		return []string{nodeTopK, nodeAttention, nodeLayer, nodeEmbedding}
	}
	return []string{nodeTopK}
}

// see is the library's question whether a node is wanted, and its call once the node is computed.
func (t *tracer) see(tensor uintptr, ask bool) bool {
	if ask {
		t.started = time.Now()
		return true
	}
	name := t.lib.nameOf(tensor)
	if t.want.Ops {
		t.ops.add(t.lib.opName(tensor), name, t.info.layers, time.Since(t.started))
	}
	if t.want.Split {
		t.part(name)
	}
	if layer, ok := layerOf(name, nodeTopK); ok && (t.want.Experts || t.want.Picks) && layer < t.info.layers {
		t.picks(tensor, layer)
	}
	return true
}

// layerOf is the number behind a name.
func layerOf(name, prefix string) (int, bool) {
	rest, ok := strings.CutPrefix(name, prefix)
	if !ok {
		return 0, false
	}
	n, err := strconv.Atoi(rest)
	return n, err == nil && n >= 0
}

// picks takes in the experts that were picked in a layer. The rows of the tensor are those of the batch; in the last layer only
// those that want logits are left.
func (t *tracer) picks(tensor uintptr, layer int) {
	used, n := min(int(at[int64](tensor, tensorNE)), t.info.used), int(at[int64](tensor, tensorNE+8))
	step, stride := int(at[uintptr](tensor, tensorNB)), int(at[uintptr](tensor, tensorNB+8))
	rowOf := t.rowOf(n)
	if used <= 0 || n <= 0 || rowOf == nil {
		return
	}
	size := int(t.lib.tensorBytes(tensor))
	if len(t.raw) < size {
		t.raw = make([]byte, size)
	}
	t.lib.tensorGet(tensor, &t.raw[0], 0, uintptr(size))
	for i := range n {
		row := rowOf(i)
		for rank := range used {
			if expert := int(*(*int32)(unsafe.Pointer(&t.raw[i*stride+rank*step]))); expert >= 0 && expert < t.info.experts {
				t.pick(row, layer, rank, expert)
			}
		}
	}
}

// rowOf says which row of the batch each of n rows of a tensor is, nil if that cannot be told.
func (t *tracer) rowOf(n int) func(int) int {
	switch {
	case n == len(t.rows):
		return func(i int) int { return i }
	case n == len(t.wanted):
		return func(i int) int { return int(t.wanted[i]) }
	case t.reorders && !t.want.Picks: // as good as any other
		return func(int) int { return 0 }
	}
	return nil
}

// pick takes in one pick of a row.
func (t *tracer) pick(row, layer, rank, expert int) {
	if t.want.Experts {
		t.count.add(t.rows[row].Prompt, layer, expert)
	}
	if t.want.Picks {
		t.chosen[(row*t.info.layers+layer)*t.info.used+rank] = uint16(expert)
	}
}
