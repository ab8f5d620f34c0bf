package native_test

import (
	"testing"

	"github.com/llmtop/llmtop/runtime/engine"
	"github.com/llmtop/llmtop/runtime/engine/native"
)

// TestForwardDoesNotAllocate checks that a batch makes no allocation, with any hooks.
func TestForwardDoesNotAllocate(t *testing.T) {
	for _, hooks := range []engine.Hooks{{}, {Split: true, Experts: true}, {Split: true, Experts: true, Picks: true}} {
		for _, threads := range []int{1, 2} {
			e := openDemo(t, native.Options{Context: 64, Threads: threads, Slots: 6})
			e.SetHooks(hooks)
			decode, together := engine.Batch{}, engine.Batch{}
			prompt := engine.Batch{Rows: (&sequence{tokens: text(1, 30, 4096)}).next(30, true, false)}
			measure := func(what string, b *engine.Batch, next func(pos int32)) {
				pos := int32(30)
				var n float64
				for range 5 { // Go may start threads meanwhile, whose allocations count, but not every time
					n = testing.AllocsPerRun(5, func() {
						next(pos)
						if err := e.Forward(b); err != nil {
							t.Fatal(err)
						}
						pos++
					})
					if n == 0 {
						break
					}
				}
				if n != 0 {
					t.Errorf("hooks %+v, %d threads: %s allocates %v times", hooks, threads, what, n)
				}
			}
			measure("a prompt", &prompt, func(int32) {})
			measure("a decoded token", &decode, func(pos int32) {
				decode.Rows = append(decode.Rows[:0], engine.Row{Token: 7, Pos: pos, Logits: true})
			})
			measure("a batch of six requests", &together, func(pos int32) {
				together.Rows = together.Rows[:0]
				for slot := range int32(6) {
					together.Rows = append(together.Rows, engine.Row{Token: 7, Pos: pos, Slot: slot, Logits: true})
				}
			})
		}
	}
}
