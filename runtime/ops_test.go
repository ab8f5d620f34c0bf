package runtime_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime"
)

// profiledEngine is a fakeEngine that times one operation, which takes 1 ms in every pass.
type profiledEngine struct{ *fakeEngine }

func (e profiledEngine) Ops() *event.Ops {
	e.mu.Lock()
	defer e.mu.Unlock()
	n := int64(len(e.batches))
	return &event.Ops{Passes: n, Times: []event.OpTime{{Op: "MUL_MAT", Calls: n, Dur: n * int64(time.Millisecond)}}}
}

// TestOps: the times are told now and then, at the latest when a request ends, and only where they are wanted; that they could be is told anyway.
func TestOps(t *testing.T) {
	for _, on := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			e := newFake(t, 1, 64, 16)
			b := start(e, runtime.Options{Clock: runtime.NewClock(), Pace: 2, Hooks: runtime.Hooks{Ops: on}}, runtime.Loaded(profiledEngine{e}))
			want(t, b.ask(t, "abc", 8), event.StateFinished, "length", "defghijk")
			told := b.of(event.KindOps, 0)
			if (len(told) > 0) != on {
				t.Fatalf("on %v: told %d times", on, len(told))
			}
			if on {
				if last := told[len(told)-1].Data.(*event.Ops); last.Passes != 8 || last.Times[0].Dur != 8*int64(time.Millisecond) {
					t.Errorf("told last: %+v", last)
				}
				if len(told) < 4 {
					t.Errorf("told %d times in four seconds", len(told))
				}
			}
			engines := b.of(event.KindEngine, 0)
			if !engines[len(engines)-1].Data.(*event.Engine).Caps.Has(event.CapOps) {
				t.Error("the engine does not say that it can time operations")
			}
			if err := b.stop(); err != nil {
				t.Error(err)
			}
		})
	}
}
