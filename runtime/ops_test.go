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

func (e profiledEngine) Ops() *runtime.Ops {
	e.mu.Lock()
	defer e.mu.Unlock()
	n := len(e.batches)
	return &runtime.Ops{Passes: n, Times: []runtime.OpTime{{Op: "MUL_MAT", Calls: int64(n), Time: time.Duration(n) * time.Millisecond}}}
}

// TestOps: the times are known when a request has ended, and only where they are wanted.
func TestOps(t *testing.T) {
	for _, on := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			e := newFake(t, 1, 64, 16)
			b := start(e, runtime.Options{Clock: runtime.NewClock(), Hooks: runtime.Hooks{Ops: on}}, runtime.Loaded(profiledEngine{e}))
			want(t, b.ask(t, "abc", 4), event.StateFinished, "length", "defg")
			ops, err := b.Ops(t.Context())
			if err != nil || (ops != nil) != on || on && (ops.Passes != 4 || ops.Times[0].Time != 4*time.Millisecond) {
				t.Errorf("on %v: %+v, %v", on, ops, err)
			}
			if err := b.stop(); err != nil {
				t.Error(err)
			}
		})
	}
}
