//go:build amd64 || arm64

package probe

import (
	"bytes"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime/engine"
)

// pickTensor is the prefix of the names of the tensors that hold picks; the layer follows.
const pickTensor = "ffn_moe_topk-"

// addPicks adds the picks of a part of a layer's rows to the pass in progress.
func (t *tracker) addPicks(tid uint32, p *probesPickedMany) {
	f := t.running(tid)
	name, _, _ := bytes.Cut(p.Of.Name[:], []byte{0})
	layer, err := strconv.Atoi(strings.TrimPrefix(string(name), pickTensor))
	if err != nil {
		t.malformed++
	}
	if f == nil || err != nil || layer < 0 || layer >= t.experts.Layers || int(p.Of.Used) != t.experts.Used {
		return
	}
	if f.picks == nil {
		f.picks = map[int][][]uint16{}
	}
	for i := range p.Of.N {
		picks := make([]uint16, p.Of.Used)
		for j := range picks {
			id := p.Pick[i][j]
			if id < 0 || int(id) >= t.experts.Experts {
				picks = nil
				t.unread++
				break
			}
			picks[j] = uint16(id)
		}
		f.picks[layer] = append(f.picks[layer], picks)
	}
}

// enoughPasses is how many passes must be counted before a layer without picks is reported.
const enoughPasses = 20

// lookForPicks notes in which layers a pass had picks, all of which were counted, and reports once which have none.
func (t *tracker) lookForPicks(f *forward, at int64) {
	if !slices.ContainsFunc(f.rows, func(v row) bool { return v.output }) {
		return // has no rows in the last layer
	}
	for layer, rows := range f.picks {
		t.seen[layer] = t.seen[layer] || slices.ContainsFunc(rows, func(picks []uint16) bool { return picks != nil })
	}
	if t.whole++; t.whole != enoughPasses {
		return
	}
	var without []string
	for layer := range t.experts.Layers {
		if !t.seen[layer] {
			without = append(without, strconv.Itoa(layer))
		}
	}
	if n := len(without); n > 0 && n < t.experts.Layers {
		text := "no router picks seen in layers " + strings.Join(without, ", ") + ": dense, or not computed on the CPU"
		t.emit(event.Event{Kind: event.KindLog, Text: text}, at)
	}
}

// blind reports whether passes have no picks that could be seen, in any layer.
func (t *tracker) blind() bool {
	return t.whole >= enoughPasses && !slices.Contains(slices.Collect(maps.Values(t.seen)), true)
}

// rowsOf returns the rows of a pass to which n picks of a layer belong, in their order: all rows, or those with outputs,
// since the last layer computes only these. It returns nil if it is unknown: llama.cpp may reorder the rows of several
// sequences.
func (f *forward) rowsOf(n int) []int {
	order := f.order
	if f.unordered || len(order) != len(f.rows) {
		if len(f.shares) != 1 {
			return nil
		}
		order = make([]int, len(f.rows))
		for i := range order {
			order[i] = i
		}
	}
	if n == len(order) {
		return order
	}
	var outputs []int
	for _, i := range order {
		if f.rows[i].output {
			outputs = append(outputs, i)
		}
	}
	if n == len(outputs) {
		return outputs
	}
	return nil
}

// picksOf returns the picks of a row, layer by layer and in ascending order, nil without any.
func (f *forward) picksOf(row int, e event.Experts) []uint16 {
	if len(f.picks) == 0 {
		return nil
	}
	out := slices.Repeat([]uint16{engine.NoPick}, e.Layers*e.Used)
	for layer, picks := range f.picks {
		if i := slices.Index(f.rowsOf(len(picks)), row); i >= 0 && picks[i] != nil {
			copy(out[layer*e.Used:], picks[i])
			slices.Sort(out[layer*e.Used:][:e.Used])
		}
	}
	return out
}

// countPicks adds the picks of a pass to the sums, and emits them now and then.
func (t *tracker) countPicks(f *forward, at int64) {
	if len(f.picks) == 0 {
		return
	}
	decodes := make([]bool, len(f.rows))
	for i, v := range f.rows {
		decodes[i] = slices.ContainsFunc(f.shares, func(x share) bool { return x.seq == v.seq && x.decode })
		if decodes[i] {
			t.experts.DecodeTokens++
		} else {
			t.experts.PromptTokens++
		}
	}
	for layer, picks := range f.picks {
		for i, r := range f.rowsOf(len(picks)) {
			to := t.experts.Prompt
			if decodes[r] {
				to = t.experts.Decode
			}
			for _, x := range picks[i] {
				to[layer*t.experts.Experts+int(x)]++
			}
		}
	}
	t.unsent = true
	if at-t.expertsAt >= expertsEvery {
		t.emitExperts(at)
	}
}

// emitExperts emits a copy of the sums of picks.
func (t *tracker) emitExperts(at int64) {
	t.expertsAt, t.unsent = at, false
	t.experts.EveryN = t.sampling.share
	t.emit(event.Event{Kind: event.KindExperts, Data: engine.CopyPicks(&t.experts)}, at)
}
