package placement

import (
	"encoding/json"
	"math"
	"math/bits"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func near(a, b float64) bool { return math.Abs(a-b) <= 1e-9*(1+math.Abs(a)) }

// drawn returns the experts of a small model, all of the same size, one layer perhaps dense.
func drawn(t *rapid.T) *Input {
	in := &Input{Used: 2, Batch: rapid.IntRange(1, 8).Draw(t, "batch")}
	for range rapid.IntRange(1, 3).Draw(t, "layers") {
		in.Counts = append(in.Counts, rapid.SliceOfN(rapid.Uint64Range(0, 20), 4, 4).Draw(t, "counts"))
		in.ExpertBytes = append(in.ExpertBytes, 10)
	}
	return in
}

// slowBytes returns the bytes that a token reads of experts outside kept.
func slowBytes(in *Input, kept func(layer, e int) bool) (slow, served float64) {
	picks := 0.0
	for l, row := range in.Counts {
		total := float64(sum(row))
		for e, n := range row {
			if total == 0 {
				continue
			}
			picks += float64(n)
			if kept(l, e) {
				served += float64(n)
			} else {
				slow += (1 - math.Pow(1-min(float64(n)*float64(in.Used)/total, 1), float64(in.Batch))) * in.ExpertBytes[l] / float64(in.Batch)
			}
		}
	}
	return slow, served / max(picks, 1)
}

// TestPlansAreBest compares plans with all plans that fit the budget.
func TestPlansAreBest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := drawn(t)
		budget := rapid.Float64Range(0, 130).Draw(t, "budget")
		const experts = 4
		cells := len(in.Counts) * experts
		for name, c := range map[string]struct {
			*Plan
			units, per int
		}{"experts": {in.PerExpert(budget), cells, 1}, "layers": {in.WholeLayers(budget), len(in.Counts), experts}} {
			slow, served := slowBytes(in, func(l, e int) bool { return slices.Contains(c.Kept[l], e) })
			if !near(slow, c.SlowBytes) || !near(served, c.Served) || c.Bytes > budget {
				t.Fatalf("%s: %+v, want %v bytes and %v served", name, c.Plan, slow, served)
			}
			for set := range 1 << c.units {
				used := float64(bits.OnesCount(uint(set)) * c.per * 10)
				if best, _ := slowBytes(in, func(l, e int) bool { return set>>((l*experts+e)/c.per)&1 == 1 }); used <= budget && best < slow-1e-9 {
					t.Fatalf("%s: %v bytes per token, set %b has %v", name, slow, set, best)
				}
			}
		}
	})
}

func TestLlamaArgs(t *testing.T) {
	in := &Input{Counts: [][]uint64{{0, 0}, {5, 5}, {9, 1}, {5, 5}}, Used: 1, Batch: 4, ExpertBytes: []float64{0, 10, 10, 10}}
	for budget, want := range map[float64][]string{ // layer 2 is worth the least: tokens of a pass share its experts
		0: {"--n-cpu-moe", "4"}, 20: {"--n-cpu-moe", "3"}, 40: {"--override-tensor", `blk\.(2)\.ffn_(up|down|gate|gate_up)_exps\.=CPU`}, 60: nil,
	} {
		if got := in.LlamaArgs(in.WholeLayers(budget)); !slices.Equal(got, append([]string{"--n-gpu-layers", "999"}, want...)) {
			t.Errorf("%v bytes: %q, want %q", budget, got, want)
		}
	}
	in.Batch = 1 // all layers read as much: the last ones are kept
	if got := in.LlamaArgs(in.WholeLayers(40)); !slices.Equal(got[2:], []string{"--n-cpu-moe", "2"}) {
		t.Errorf("one token per pass: %q", got)
	}
}

// TestLogicalCounts checks the form that both readers require: SGLang reads logical_count with a dimension of layers and
// one of experts, with or without one of passes; ktransformers requires all three.
func TestLogicalCounts(t *testing.T) {
	in := &Input{Counts: [][]uint64{{0, 0, 0}, {5, 1, 2}}}
	var got map[string][][][]int
	if err := json.Unmarshal(in.LogicalCounts(), &got); err != nil {
		t.Fatal(err)
	}
	if c := got["logical_count"]; len(got) != 1 || len(c) != 1 || len(c[0]) != 2 || !slices.Equal(c[0][0], []int{0, 0, 0}) || !slices.Equal(c[0][1], []int{5, 1, 2}) {
		t.Errorf("%v", got)
	}
}
