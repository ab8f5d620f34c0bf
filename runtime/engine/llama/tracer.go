//go:build !nollama && (linux || darwin || windows) && (amd64 || arm64)

package llama

import (
	"strconv"
	"strings"
	"time"
	"unsafe"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime/engine"
)

// tracer observes the nodes that the library computes, in the passes that are sampled.
type tracer struct {
	lib     *library
	info    event.Model
	measure engine.Hooks // what to measure in this pass

	// Set if the library reorders or splits the rows of several sequences, as it does with recurrent models. All rows
	// whose picks are counted then belong to the same phase.
	reorders bool

	rows   []engine.Row   // of the batch
	wanted []int32        // its rows with logits
	count  *event.Experts // since load, in the passes that were sampled; nil for a dense model
	chosen []uint16       // [row][layer][rank], with Hooks.Picks
	raw    []byte         // content of the current tensor

	began   time.Time
	lap     time.Time // end of the last part
	split   splits
	ops     *ops
	started time.Time // start of the current node, with Hooks.Ops
}

// Names of the observed nodes, without the layer number. Source: llama-graph.cpp and the models next to it.
const (
	nodeTopK      = "ffn_moe_topk-" // picked experts, i32 [used, tokens], a view of all experts in order
	nodeAttention = "ffn_inp-"      // output of attention and its residual
	nodeLayer     = "l_out-"        // output of a layer
	nodeEmbedding = "embd"          // embeddings of the tokens
)

// prepare allocates memory for a model.
func (t *tracer) prepare(m event.Model) {
	t.info = m
	if m.Experts > 0 {
		t.count = engine.NewPicks(m.Layers, m.Experts, m.ExpertsUsed)
	}
}

// begin prepares for a pass.
func (t *tracer) begin(rows []engine.Row, wanted []int32, want engine.Hooks) {
	t.rows, t.wanted, t.measure = rows, wanted, want
	t.began = time.Now()
	t.lap, t.started = t.began, t.began
	t.split.begin(t.info.Layers)
	if want.Picks {
		for i := range t.chosen[:len(rows)*t.info.Layers*t.info.ExpertsUsed] {
			t.chosen[i] = engine.NoPick
		}
	}
}

// prefixes returns the name prefixes of the nodes to observe; nil means all.
func (t *tracer) prefixes() []string {
	switch {
	case t.measure.Ops:
		return nil
	case t.measure.Split:
		return []string{nodeTopK, nodeAttention, nodeLayer, nodeEmbedding}
	}
	return []string{nodeTopK}
}

// observe reports whether to observe a node if ask is set; otherwise it receives the node after it is computed.
func (t *tracer) observe(tensor uintptr, ask bool) bool {
	if ask {
		t.started = time.Now()
		return true
	}
	name := t.lib.nameOf(tensor)
	if t.measure.Ops {
		t.ops.add(t.lib.opName(tensor), name, t.info.Layers, time.Since(t.started))
	}
	if t.measure.Split {
		t.part(name)
	}
	if layer, ok := layerOf(name, nodeTopK); ok && (t.measure.Experts || t.measure.Picks) && layer < t.info.Layers {
		t.picks(tensor, layer)
	}
	return true
}

// layerOf returns the number after a name.
func layerOf(name, prefix string) (int, bool) {
	rest, ok := strings.CutPrefix(name, prefix)
	if !ok {
		return 0, false
	}
	n, err := strconv.Atoi(rest)
	return n, err == nil && n >= 0
}

// picks reads the picked experts of a layer. The rows of the tensor are those of the batch; the last layer has only
// rows with logits.
func (t *tracer) picks(tensor uintptr, layer int) {
	used, n := min(int(at[int64](tensor, tensorNE)), t.info.ExpertsUsed), int(at[int64](tensor, tensorNE+8))
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
			if expert := int(*(*int32)(unsafe.Pointer(&t.raw[i*stride+rank*step]))); expert >= 0 && expert < t.info.Experts {
				t.pick(row, layer, rank, expert)
			}
		}
	}
}

// rowOf maps each of n rows of a tensor to a row of the batch; nil if the mapping is not defined.
func (t *tracer) rowOf(n int) func(int) int {
	switch {
	case n == len(t.rows):
		return func(i int) int { return i }
	case n == len(t.wanted):
		return func(i int) int { return int(t.wanted[i]) }
	case t.reorders && !t.measure.Picks: // any mapping works for counts
		return func(int) int { return 0 }
	}
	return nil
}

// pick adds one pick of a row.
func (t *tracer) pick(row, layer, rank, expert int) {
	if t.measure.Experts {
		to := t.count.Decode
		if t.rows[row].Prompt {
			to = t.count.Prompt
		}
		to[layer*t.info.Experts+expert]++
	}
	if t.measure.Picks {
		t.chosen[(row*t.info.Layers+layer)*t.info.ExpertsUsed+rank] = uint16(expert)
	}
}
