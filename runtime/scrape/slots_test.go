package scrape

import (
	"testing"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime/prober"
)

// TestTokensThatNobodySaw: rates and totals count what is seen in slots, live, and what only the server's own counts tell: of requests that came and
// went between two looks, and of those that ended after the last look. Nothing counts twice.
func TestTokensThatNobodySaw(t *testing.T) {
	works := func(task int64, prompt, decoded int) []slot {
		return []slot{{ID: 0, Context: 64, Processing: true, Task: task, Processed: prompt, Next: nextToken{Decoded: decoded}}}
	}
	const second = event.Time(1e9)
	f := slots{shared: new(prober.Shared)}
	for _, look := range []struct {
		at                event.Time
		slots             []slot
		counts            bool    // the server's metrics were read, too
		generated, prompt float64 // that it has counted since they were read before
		waits             bool
		want              float64 // tokens since the last look
		decode, prefill   float64 // afterwards
	}{
		{1 * second, works(1, 5, 10), true, 0, 0, false, 0, 0, 0},
		{5 * second / 4, works(1, 5, 15), false, 0, 0, true, 5, 0, 0},
		{6 * second / 4, works(2, 7, 4), false, 0, 0, true, 4, 0, 0},
		{2 * second, works(3, 7, 2), true, 20 + 30, 7 + 8, false, 33, 42, 15},       // task 1 ended with 20 tokens, task 2 with 30
		{9 * second / 4, works(3, 7, 8), false, 0, 0, true, 6, 42, 15},              // seen live
		{3 * second, works(9, 6, 1), true, 10 + 5*40, 5 * 20, false, 203, 209, 100}, // task 3 ended with 10, and five came and went
		{4 * second, []slot{{ID: 0, Context: 64}}, true, 12, 0, false, 11, 11, 0},   // task 9 ended with 12
		{5 * second, []slot{{ID: 0, Context: 64}}, true, 0, 0, false, 0, 0, 0},      // and nothing came
		{21 * second / 4, works(10, 9, 3), false, 0, 0, true, 3, 0, 0},              // a request that is seen before it is counted
		{6 * second, []slot{{ID: 0, Context: 64}}, true, 50, 21, false, 47, 50, 21}, // and counted in full when it has ended
		{7 * second, []slot{{ID: 0, Context: 64}}, true, 0, 0, false, 0, 0, 0},      // once
	} {
		p := &event.Report{Interval: 1}
		if look.counts {
			p.Generated, p.Prompt, p.Cached = event.From(look.generated), event.From(look.prompt+40), event.From(40)
		}
		f.waits = look.waits
		f.follow(look.slots, look.at, p)
		if p.Generated.V != look.want || p.Decode.V != look.decode || p.Prefill.V != look.prefill {
			t.Errorf("at %v: %v new tokens, decode %v/s, prefill %v/s; want %v, %v and %v",
				look.at, p.Generated.V, p.Decode.V, p.Prefill.V, look.want, look.decode, look.prefill)
		}
	}
}
