package placement

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
)

// LlamaArgs returns the arguments of llama.cpp and ik_llama.cpp for a plan of whole layers: all layers on the GPU, and the
// experts of those that are not kept on the CPU. It uses --n-cpu-moe if these are the first layers.
func (in *Input) LlamaArgs(p *Plan) []string {
	args := []string{"--n-gpu-layers", "999"}
	var slow []string
	end, fast := 0, len(in.Counts) // the layer after the last slow one, and the first kept one
	for l, row := range slices.Backward(in.Counts) {
		switch {
		case sum(row) == 0:
		case len(p.Kept[l]) > 0:
			fast = l
		default:
			slow, end = append(slow, strconv.Itoa(l)), max(end, l+1)
		}
	}
	switch {
	case len(slow) == 0:
		return args
	case end <= fast:
		return append(args, "--n-cpu-moe", strconv.Itoa(end))
	}
	slices.Reverse(slow)
	return append(args, "--override-tensor", `blk\.(`+strings.Join(slow, "|")+`)\.ffn_(up|down|gate|gate_up)_exps\.=CPU`)
}

// LogicalCounts returns the picks as JSON that SGLang reads with --init-expert-location: counts of one pass, by layer and
// expert. ktransformers reads the same as a file of PyTorch.
func (in *Input) LogicalCounts() []byte {
	out, _ := json.Marshal(struct { // numbers only: it cannot fail
		Counts [][][]uint64 `json:"logical_count"`
	}{[][][]uint64{in.Counts}})
	return out
}
