package store

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
)

// emitPicks emits a copy of cumulative counts.
func (p *session) emitPicks(layers, experts int, prompt, decode []uint64, tokens [2]uint64) {
	p.emit(0, event.Event{Kind: event.KindExperts, Data: &event.Experts{
		Layers: layers, Experts: experts, Used: 1, Prompt: slices.Clone(prompt), Decode: slices.Clone(decode),
		PromptTokens: tokens[metric.Prompt], DecodeTokens: tokens[metric.Decode],
	}})
}

func TestExpertsByPhase(t *testing.T) {
	p := newSession()
	p.emitPicks(2, 3, []uint64{1, 2, 3, 4, 0, 2}, []uint64{10, 0, 0, 5, 5, 0}, [2]uint64{metric.Prompt: 6, metric.Decode: 10})
	x := p.store.Snapshot().Experts
	for w := range metric.NumWindows {
		for phase, counts := range map[metric.Phase][]uint64{
			metric.Prompt: {1, 2, 3, 4, 0, 2}, metric.Decode: {10, 0, 0, 5, 5, 0}, metric.Both: {11, 2, 3, 9, 5, 2},
		} {
			if got := x.Hits(w, phase); !slices.Equal(got.Counts, counts) {
				t.Errorf("%v, %v: %v, want %v", w, phase, got.Counts, counts)
			}
		}
	}
	decode := x.Hits(metric.Session, metric.Decode)
	if decode.Tokens != 10 || decode.Max != 1 || x.Hits(metric.Session, metric.Both).Tokens != 16 {
		t.Errorf("%d tokens of %d, largest share %v; want 10 of 16 and 1", decode.Tokens, x.Hits(metric.Session, metric.Both).Tokens, decode.Max)
	}
	even := decode.Layers[1]
	if even.Total != 10 || even.MaxMean != 1.5 || even.Dead != 1 || !slices.Equal(even.Hot, []int{0, 1, 2}) || !slices.Equal(even.Cold, []int{2, 0, 1}) {
		t.Errorf("layer 1 is %+v", even)
	}
}

func TestCountsOfWrongShapeAreIgnored(t *testing.T) {
	p := newSession()
	for _, x := range []*event.Experts{
		{},
		{Layers: -1, Experts: -1, Prompt: []uint64{1}, Decode: []uint64{1}},
		{Layers: 1, Experts: 2, Prompt: []uint64{1, 2}, Decode: []uint64{1}},
		{Layers: 1 << 40, Experts: 1 << 40},
		{Layers: MaxCells, Experts: 2, Prompt: make([]uint64, 2*MaxCells), Decode: make([]uint64, 2*MaxCells)},
		nil,
	} {
		p.emit(0, event.Event{Kind: event.KindExperts, Data: x})
	}
	if x := p.store.Snapshot().Experts; x != nil {
		t.Errorf("accepted %d layers of %d experts", x.Layers, x.Experts)
	}
}

func TestCountsRestartWithAnotherModel(t *testing.T) {
	total := func(p *session) uint64 {
		return p.store.Snapshot().Experts.Hits(metric.Session, metric.Decode).Layers[0].Total
	}
	p := newSession()
	p.emitPicks(1, 2, []uint64{0, 0}, []uint64{5, 5}, [2]uint64{10, 0})
	p.emitPicks(1, 2, []uint64{0, 0}, []uint64{2, 1}, [2]uint64{3, 0}) // the engine was restarted
	if got := total(p); got != 3 {
		t.Errorf("%d picks after a restart, want 3", got)
	}
	p.emitPicks(1, 3, []uint64{0, 0, 0}, []uint64{9, 0, 0}, [2]uint64{9, 0})
	if got := total(p); got != 9 {
		t.Errorf("%d picks after a change of shape, want 9", got)
	}
	p.emit(0, event.Event{Kind: event.KindOps, Data: &event.Ops{Passes: 1}})
	p.emit(0, event.Event{Kind: event.KindOps, Data: &event.Ops{Passes: 2}})
	if o := p.store.Snapshot().Ops; o == nil || o.Passes != 2 {
		t.Errorf("operations %+v, want the newest", o)
	}
	p.emit(0, event.Event{Kind: event.KindModel, Data: &event.Model{Name: "dense"}})
	if o := p.store.Snapshot().Ops; o != nil {
		t.Errorf("a new model starts with operations %+v", o)
	}
	if x := p.store.Snapshot().Experts; x != nil {
		t.Errorf("a new model starts with picks %+v", x.Hits(metric.Session, metric.Both).Counts)
	}
}

// TestExpertWindowsMatchPicks compares each window with the sum of the picks of its seconds.
func TestExpertWindowsMatchPicks(t *testing.T) {
	type pick struct {
		second int64
		expert int
	}
	rapid.Check(t, func(rt *rapid.T) {
		p := newSession()
		var all []pick
		counts, none := make([]uint64, 4), make([]uint64, 4)
		for range rapid.IntRange(1, 150).Draw(rt, "picks") {
			p.now += event.Time(rapid.OneOf(rapid.Int64Range(0, sec), rapid.Int64Range(0, 4*sec)).Draw(rt, "wait"))
			if rapid.IntRange(0, 9).Draw(rt, "look") == 0 {
				p.store.Snapshot()
				continue
			}
			e := rapid.IntRange(0, 3).Draw(rt, "expert")
			all = append(all, pick{int64(p.now) / sec, e})
			counts[e]++
			p.emitPicks(1, 4, none, counts, [2]uint64{metric.Decode: uint64(len(all))})
		}
		p.now += event.Time(rapid.Int64Range(0, 3*sec).Draw(rt, "later"))
		if len(all) == 0 {
			return
		}
		p.emit(0, event.Event{Kind: event.KindLog})
		x, now := p.store.Snapshot().Experts, int64(p.now)/sec
		within := func(first, last int64) []uint64 {
			sums := make([]uint64, 4)
			for _, c := range all {
				if c.second >= first && c.second <= last {
					sums[c.expert]++
				}
			}
			return sums
		}
		last := within(now-1, now-1)
		if slices.Max(last) == 0 {
			last = within(now, now)
		}
		for w, want := range [metric.NumWindows][]uint64{last, within(now-9, now), within(now-59, now), counts} {
			if got := x.Hits(metric.Window(w), metric.Decode).Counts; !slices.Equal(got, want) {
				rt.Fatalf("%v: %v, want %v", metric.Window(w), got, want)
			}
		}
	})
}
