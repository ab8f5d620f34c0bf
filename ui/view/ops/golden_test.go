package ops

import (
	"testing"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/ui/view/viewtest"
)

// Few layers and many, in every size; the colours are the shares of the time.
func TestGolden(t *testing.T) {
	few, many := viewtest.Timed().Snapshot(), viewtest.Huge().Snapshot()
	for _, size := range []viewtest.Size{viewtest.Narrow, viewtest.Wide} {
		viewtest.NewScreen(t, few, size).Show(&View{}).Press("down", "down").Golden("few")
		viewtest.NewScreen(t, many, size).Show(&View{}).Press("down", "down").Golden("many")
	}
	viewtest.NewScreen(t, few, viewtest.Medium).Show(&View{}).GoldenColours("few")
	viewtest.NewScreen(t, few, viewtest.Medium).ASCII().Show(&View{}).Golden("ascii")
}

// Without times the view says why there are none, and what to do.
func TestNoTimes(t *testing.T) {
	able := viewtest.Ready()
	able.Emit(event.Event{Kind: event.KindEngine, Data: &event.EngineInfo{Name: "llama.cpp", State: event.EngineReady, Caps: event.CapOps}})
	unable := func(s *store.Snapshot) *store.Snapshot {
		v := *s
		v.Engine.Caps &^= event.CapOps
		return &v
	}
	for want, s := range map[string]*store.Snapshot{
		"no operation timed yet": able.Snapshot(), "time per operation: not reported by this engine": unable(viewtest.LiveSnapshot()),
		"waiting for the model to load": unable(viewtest.Loading().Snapshot()),
	} {
		viewtest.NewScreen(t, s, viewtest.Narrow).Show(&View{}).Holds(want)
	}
}
