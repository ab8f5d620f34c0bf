package engine_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime/engine"
)

// profiledEngine is a fakeEngine that times one operation, which takes 1 ms in every pass.
type profiledEngine struct{ *fakeEngine }

func (e profiledEngine) Info() event.EngineInfo {
	info := e.fakeEngine.Info()
	info.Caps = event.CapOps
	return info
}

func (e profiledEngine) Ops() *event.Ops {
	e.mu.Lock()
	defer e.mu.Unlock()
	n := int64(len(e.batches))
	return &event.Ops{Passes: n, Times: []event.OpTime{{Op: "MUL_MAT", Calls: n, Dur: n * int64(time.Millisecond)}}}
}

// TestOps: operation times are reported at intervals and when a request ends, only if the hook is set. The capability
// is always reported.
func TestOps(t *testing.T) {
	for _, on := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			e := newFake(t, 1, 64, 16)
			b := start(e, engine.Options{Clock: engine.NewClock(), Pace: 2, Hooks: engine.Hooks{Ops: on}}, loaded(profiledEngine{e}))
			want(t, b.mustSubmit(t, "abc", 8), event.StateFinished, "length", "defghijk")
			reports := b.byKind(event.KindOps, 0)
			if (len(reports) > 0) != on {
				t.Fatalf("on %v: reported %d times", on, len(reports))
			}
			if on {
				if last := reports[len(reports)-1].Data.(*event.Ops); last.Passes != 8 || last.Times[0].Dur != 8*int64(time.Millisecond) {
					t.Errorf("last report: %+v", last)
				}
				if len(reports) < 4 {
					t.Errorf("reported %d times in four seconds", len(reports))
				}
			}
			engines := b.byKind(event.KindEngine, 0)
			if !engines[len(engines)-1].Data.(*event.EngineInfo).Caps.Has(event.CapOps) {
				t.Error("the engine does not report that it can time operations")
			}
			if err := b.stop(); err != nil {
				t.Error(err)
			}
		})
	}
}
