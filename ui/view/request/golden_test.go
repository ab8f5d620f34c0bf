package request

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/ui/table"
	"github.com/llmtop/llmtop/ui/view/viewtest"
)

// show shows the selected request.
func show(p *viewtest.Screen, selection *table.Selection) *viewtest.Screen {
	return p.Show(New(p, selection, nil, nil))
}

// A request in every state: running, stalled, no longer kept, cold, queued, failed.
func TestGolden(t *testing.T) {
	crowd := viewtest.Crowd(5000)
	for _, c := range []struct {
		state, filter string
		s             *store.Snapshot
		whole         bool // the time axis up to the end differs
	}{
		{"running", "running", viewtest.LiveSnapshot(), false},
		{"stalled", "stalled id>4900", crowd, true},
		{"past", "id=17", crowd, false},
		{"cold", "cold", viewtest.LiveSnapshot(), true},
		{"waiting", "queued", crowd, false},
		{"failed", "failed id>4800", crowd, false},
	} {
		selection := viewtest.Selection(t, c.s, c.filter)
		p := show(viewtest.NewScreen(t, c.s, viewtest.Medium), selection)
		if c.state == "stalled" {
			p.GoldenColours(c.state) // of stages and gaps
		} else {
			p.Golden(c.state)
		}
		if c.whole {
			show(viewtest.NewScreen(t, c.s, viewtest.Wide), selection).Press("x", "n").Golden(c.state + "_whole")
		}
	}
	cuda := show(viewtest.NewScreen(t, viewtest.Played("cuda"), viewtest.Medium), &table.Selection{Follow: true})
	cuda.Golden("cuda")
	cuda.Press(slices.Repeat([]string{"right"}, 17)...).Golden("cuda_uncounted")
	stalled := viewtest.Selection(t, crowd, "stalled id>4900")
	show(viewtest.NewScreen(t, crowd, viewtest.Narrow), stalled).Golden("stalled")
	show(viewtest.NewScreen(t, crowd, viewtest.Medium).ASCII(), &table.Selection{Follow: true}).Golden("ascii")
}

// TestThinking draws a request that reasons: thinking is a stage of it.
func TestThinking(t *testing.T) {
	s := viewtest.NewScene()
	s.Engine(event.EngineReady, "")
	s.Emit(event.Event{Kind: event.KindRequest, Req: 1, State: event.StateQueued, Data: &event.Request{Label: "chat"}})
	for i := range int32(48) {
		s.Now += event.Time(20e6)
		e := event.Event{Kind: event.KindToken, Req: 1, N: 1, Index: i, ID: -1}
		if i < 32 {
			e.Reasoning = 1
		}
		s.Emit(e)
	}
	s.Emit(event.Event{Kind: event.KindRequest, Req: 1, State: event.StateFinished, Data: &event.Outcome{Reason: "stop", Prompt: 12, Generated: 48, Drafted: 40, Accepted: 30}})
	show(viewtest.NewScreen(t, s.Snapshot(), viewtest.Wide), &table.Selection{Follow: true}).Press("x").Golden("thinking_whole")
}

// TestHandover checks that the selected token says when its text was handed over, if that is reported.
func TestHandover(t *testing.T) {
	s := *viewtest.LiveSnapshot()
	s.Requests = slices.Clone(s.Requests)
	i := slices.IndexFunc(s.Requests, func(r *store.Request) bool { return r.State == event.StateFinished && len(r.Tokens) > 0 })
	r := *s.Requests[i]
	r.Tokens = slices.Clone(r.Tokens)
	s.Requests[i] = &r
	for ns, want := range map[uint32]bool{0: false, 1_500_000: true} {
		for i := range r.Tokens {
			r.Tokens[i].Handover = ns
		}
		screen := show(viewtest.NewScreen(t, &s, viewtest.Wide), viewtest.Selection(t, &s, fmt.Sprintf("id=%d", r.ID))).Text()
		if strings.Contains(screen, "handover  1.50 ms later") != want || strings.Contains(screen, "handover") != want {
			t.Errorf("a token that was handed over after %d ns:\n%s", ns, screen)
		}
	}
}

// TestCacheMiss checks that the place where the prompt differs is named below why.
func TestCacheMiss(t *testing.T) {
	s := *viewtest.LiveSnapshot()
	s.Requests = slices.Clone(s.Requests)
	i := slices.IndexFunc(s.Requests, func(r *store.Request) bool { return r.State == event.StateFinished })
	r := *s.Requests[i]
	r.PromptTokens, r.CachedTokens = 400, 40
	r.Reuse = event.Reuse{With: 3, Kind: event.BreakTimestamp, Place: "messages[0].content", At: 130, Common: 100, Same: 800, Bytes: 1000}
	s.Requests[i] = &r
	screen := show(viewtest.NewScreen(t, &s, viewtest.Medium), viewtest.Selection(t, &s, fmt.Sprintf("id=%d", r.ID))).Text()
	for _, words := range []string{"Cache miss  a timestamp differs since #3", "320 tokens", "messages[0].content, character 130"} {
		if !strings.Contains(screen, words) {
			t.Errorf("the screen lacks %q:\n%s", words, screen)
		}
	}
}
