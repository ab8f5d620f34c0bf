package expertcache

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/llmtop/llmtop/profiler/metric"
)

// tokens draws picks of tokens: layers x used, some of them missing, the experts of a layer in any order.
func tokens(t *rapid.T, layers, experts, used int) (all [][]uint16) {
	for range rapid.IntRange(1, 40).Draw(t, "tokens") {
		var picks []uint16
		for range layers {
			row := rapid.Permutation(slices.Collect(func(yield func(uint16) bool) {
				for e := range experts {
					if !yield(uint16(e)) {
						return
					}
				}
			})).Draw(t, "row")[:used]
			if rapid.IntRange(0, 9).Draw(t, "missing") == 0 {
				row = slices.Repeat([]uint16{0xffff}, used)
			}
			picks = append(picks, row...)
		}
		all = append(all, picks)
	}
	return all
}

// simulate returns the hits of a cache of n slots in the second half, and all picks in it, by playing one layer.
func simulate(all [][]uint16, layer, used, n int, lfu bool, of func(token int) bool) (hits, picks uint64) {
	held := []uint16{}
	count, last, now := map[uint16]int{}, map[uint16]int{}, 0
	for token, t := range all {
		row := slices.Clone(t[layer*used:][:used])
		slices.Sort(row)
		for _, e := range row {
			if e == 0xffff {
				continue
			}
			hit := slices.Contains(held, e)
			if token >= len(all)/2 && of(token) {
				picks++
				if hit {
					hits++
				}
			}
			if !hit {
				if len(held) == n {
					victim := slices.MinFunc(held, func(a, b uint16) int {
						if d := count[a] - count[b]; lfu && d != 0 {
							return d
						}
						return last[a] - last[b]
					})
					held = slices.DeleteFunc(held, func(e uint16) bool { return e == victim })
				}
				held = append(held, e)
			}
			now++
			count[e]++
			last[e] = now
		}
	}
	return hits, picks
}

// staticPicks counts the picks in the second half of the n experts most picked in the first one.
func staticPicks(all [][]uint16, layer, experts, used, n int, of func(token int) bool) (hits uint64) {
	first := make([]int, experts)
	for _, t := range all[:len(all)/2] {
		for _, e := range t[layer*used:][:used] {
			if e != 0xffff {
				first[e]++
			}
		}
	}
	order := make([]int, experts)
	for e := range order {
		order[e] = e
	}
	slices.SortStableFunc(order, func(a, b int) int { return first[b] - first[a] })
	for i, t := range all[len(all)/2:] {
		for _, e := range t[layer*used:][:used] {
			if of(i+len(all)/2) && e != 0xffff && slices.Contains(order[:n], int(e)) {
				hits++
			}
		}
	}
	return hits
}

// TestAgainstSimulation compares every point of every curve with a simulation of a cache of that size.
func TestAgainstSimulation(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		layers, experts := rapid.IntRange(1, 3).Draw(t, "layers"), rapid.IntRange(1, 9).Draw(t, "experts")
		used := rapid.IntRange(1, experts).Draw(t, "used")
		all := tokens(t, layers, experts, used)
		l := NewLog(layers, experts, used)
		kinds := make([]string, len(all))
		for i, picks := range all {
			kinds[i] = rapid.SampledFrom([]string{"code", "prose"}).Draw(t, "kind")
			l.Add(kinds[i], picks)
		}
		r := Run(l.View())
		compare := func(name string, c *Curve, layers []int, of func(int) bool) {
			for n := range experts + 1 {
				var want, picks [NumPolicies]uint64
				for _, layer := range layers {
					want[Static] += staticPicks(all, layer, experts, used, n, of)
					for _, p := range []Policy{LRU, LFU} {
						hits, judged := uint64(0), uint64(0)
						if n > 0 {
							hits, judged = simulate(all, layer, used, n, p == LFU, of)
						} else {
							_, judged = simulate(all, layer, used, experts+1, false, of)
						}
						want[p], picks[p] = want[p]+hits, picks[p]+judged
					}
				}
				for p := range NumPolicies {
					if got := c.Hits[p][n]; got != want[p] || c.Picks != picks[LRU] {
						t.Fatalf("%s, %v, %d slots: %d of %d hits, want %d of %d", name, p, n, got, c.Picks, want[p], picks[LRU])
					}
				}
			}
		}
		every := func(int) bool { return true }
		var list []int
		for layer := range layers {
			list = append(list, layer)
			compare(fmt.Sprint("layer ", layer), &r.ByLayer[layer], []int{layer}, every)
		}
		compare("all", &r.All, list, every)
		for i := range r.Kinds {
			k := &r.Kinds[i]
			compare(k.Name, &k.Curve, list, func(token int) bool { return kinds[token] == k.Name })
		}
	})
}

// TestFromCounts compares a static set from counts with that of the tokens they count.
func TestFromCounts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const layers, experts, used = 2, 6, 2
		all := tokens(t, layers, experts, used)
		l := NewLog(layers, experts, used)
		var halves [2][]uint64
		for h := range halves {
			halves[h] = make([]uint64, layers*experts)
		}
		for i, picks := range all {
			l.Add("", picks)
			half := 0
			if i >= len(all)/2 {
				half = 1
			}
			for j, e := range picks {
				if e < experts {
					halves[half][j/used*experts+int(e)]++
				}
			}
		}
		want, got := Run(l.View()), FromCounts(layers, experts, halves[0], halves[1], [2]uint64{uint64(len(all) / 2), uint64(len(all) - len(all)/2)})
		if d := cmp.Diff(want.All.Hits[Static], got.All.Hits[Static]); d != "" || want.Chosen != got.Chosen || want.MeanDrift != got.MeanDrift {
			t.Fatalf("%d and %d tokens, %v", got.Chosen, got.Judged, d)
		}
		if _, ok := got.All.Share(LRU, 3); ok {
			t.Fatal("counts have an LRU curve")
		}
	})
}

// A single total judges itself, and says so.
func TestFromOneTotal(t *testing.T) {
	r := FromCounts(1, 4, []uint64{6, 1, 2, 1}, nil, [2]uint64{10})
	share, _ := r.All.Share(Static, 2)
	if !r.SelfJudged || r.Judged != 10 || share != 0.8 || r.Knee() != 1 || r.MeanDrift.Moved != 0 {
		t.Errorf("%+v", r)
	}
}

// TestLogIsBounded checks that a full log drops its oldest tokens, and that views and forks do not change.
func TestLogIsBounded(t *testing.T) {
	const layers, used = 64, 64
	l := NewLog(layers, 256, used)
	picks := make([]uint16, layers*used)
	var view, fork *Log
	const all = MaxPicks/layers/used + 100
	for i := range all {
		picks[0] = uint16(i % 256)
		l.Add(fmt.Sprint("kind ", i%(MaxKinds+3)), picks)
		if i == 9 {
			view = l.View()
			fork = l.View()
			fork.Add("kind 0", make([]uint16, layers*used))
		}
	}
	if l.Tokens*layers*used > MaxPicks || l.Tokens < all*9/10 || l.Dropped+uint64(l.Tokens) != all || len(l.Kinds) != MaxKinds {
		t.Errorf("%d tokens, %d dropped, %d kinds", l.Tokens, l.Dropped, len(l.Kinds))
	}
	if shared, own := view.BytesWithout(view.View()), view.BytesWithout(l); shared != 0 || own != 10*(2*layers*used+1) {
		t.Errorf("the view alone has %d bytes, %d beside its copy", own, shared)
	}
	first := -1
	l.Layer(0, func(token int, _ uint8, picks []uint16) {
		if first < 0 {
			first = int(picks[0])
		}
		if int(picks[0]) != (first+token)%256 {
			t.Fatalf("token %d of the log picks %d", token, picks[0])
		}
	})
	if uint64(first) != l.Dropped%256 {
		t.Errorf("the oldest token picks %d, %d are dropped", first, l.Dropped)
	}
	for name, c := range map[string]struct {
		*Log
		last uint16
	}{"view": {view, 9}, "fork": {fork, 0}} {
		n, last := 0, uint16(99)
		c.Layer(0, func(_ int, _ uint8, picks []uint16) { n, last = n+1, picks[0] })
		if n != c.Tokens || last != c.last {
			t.Errorf("%s: %d tokens, the last one picks %d", name, n, last)
		}
	}
}

// TestPicksAreKept checks the first and last expert and a missing pick.
func TestPicksAreKept(t *testing.T) {
	for _, experts := range []int{16, 255, 256, 300} {
		l := NewLog(1, experts, 3)
		l.Add("", []uint16{0, uint16(experts - 1), math.MaxUint16})
		l.Layer(0, func(_ int, _ uint8, picks []uint16) {
			if picks[0] != 0 || int(picks[1]) != experts-1 || int(picks[2]) < experts {
				t.Errorf("%d experts: picks %d", experts, picks)
			}
		})
	}
}

// BenchmarkRun measures the analysis of a token.
func BenchmarkRun(b *testing.B) {
	for _, c := range [][3]int{{8, 16, 2}, {94, 256, 8}} {
		b.Run(fmt.Sprintf("%dx%d", c[0], c[1]), func(b *testing.B) {
			l, picks := NewLog(c[0], c[1], c[2]), make([]uint16, c[0]*c[2])
			const n = 256
			for token := range n {
				for i := range picks {
					picks[i] = uint16((token*token*31 + i*17) % c[1])
				}
				l.Add("", picks)
			}
			for b.Loop() {
				Run(l)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/token")
		})
	}
}

// TestBalanceOfKinds plants one kind whose picks are even and then all of one expert, and one that is always even.
func TestBalanceOfKinds(t *testing.T) {
	const experts = 4
	const tokens = 40 * metric.LeastPicks * experts
	l := NewLog(2, experts, 1)
	for i := range tokens {
		turning := uint16(i % experts)
		if i >= tokens/2 {
			turning = 3
		}
		l.Add("turning", []uint16{turning, 0})
		l.Add("even", []uint16{uint16(i % experts), uint16(i % experts)})
	}
	l.Add("rare", []uint16{0, 0})
	r := Run(l)
	even, all := slices.Repeat([]float32{1}, MaxPoints), slices.Repeat([]float32{experts}, MaxPoints)
	for _, k := range r.Kinds {
		want := map[string][][]float32{
			"turning": {slices.Concat(even[:MaxPoints/2], all[:MaxPoints/2]), all}, "even": {even, even}, "rare": {{}, {}},
		}[k.Name]
		if !slices.EqualFunc(k.Balance, want, slices.Equal[[]float32]) {
			t.Errorf("%s: %v, want %v", k.Name, k.Balance, want)
		}
	}
	if len(r.Kinds) != 3 {
		t.Errorf("%d kinds", len(r.Kinds))
	}
}
