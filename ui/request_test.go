package ui

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/report"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/theme"
	"github.com/llmtop/llmtop/ui/view/overview"
	"github.com/llmtop/llmtop/ui/view/request"
	"github.com/llmtop/llmtop/ui/view/viewtest"
)

func openRequest(s *store.Snapshot, id, w, h int) *app {
	a := open(s, theme.TrueColour, false, w, h)
	a.press("2", "/")
	a.Update(tea.PasteMsg{Content: fmt.Sprintf("id=%d", id)})
	a.View()
	a.press("enter", "enter")
	a.View()
	return a
}

// The view shows all data of a token, and a stall names the prompt that it waited for.
func TestTokenDetailsAreComplete(t *testing.T) {
	a := openRequest(chunks().Snapshot(), 1, 160, 60)
	a.press("n")
	for _, words := range []string{
		"Token 60", "3 tokens arrived together", "while #20's prompt was processed", `" w20"`, "id 120", "61 %, logprob -0.500",
		"top       61 %   this", "14 %  ↵", "L0 1 2", "L2 5 6", "· rerank ", "token    60", "token   120",
	} {
		holds(t, a, words)
	}
	a.press("right") // with the same timestamp
	holds(t, a, "Token 61")
	holds(t, a, "while #20's prompt was processed")
	a.press("n")
	holds(t, a, "while #40's prompt was processed")
}

// The mouse selects every cell, at every size.
func TestMouseOverTokens(t *testing.T) {
	for _, size := range sizes {
		a := openRequest(viewtest.LiveSnapshot(), 1, size[0], size[1])
		m := a.request.Cells
		seen := map[int]bool{}
		for y := range a.h {
			for x := range a.w {
				n := m.Token(x, y)
				if n < 0 {
					continue
				}
				seen[n] = true
				if n%37 == 0 {
					a.Update(tea.MouseMotionMsg{X: x, Y: y})
					if a.request.Token != n || !a.dirty {
						t.Errorf("%v: the mouse over token %d shows token %d", size, n, a.request.Token)
					}
				}
			}
		}
		if len(seen) != m.Last-m.First+1 {
			t.Errorf("%v: the mouse reaches %d of the tokens %d to %d", size, len(seen), m.First, m.Last)
		}
		if a.Mouse() != tea.MouseModeAllMotion {
			t.Error("the view does not report mouse motion")
		}
	}
}

// Keys reach every token, one by one and by rows.
func TestEveryTokenIsReached(t *testing.T) {
	s := viewtest.LiveSnapshot()
	a := openRequest(s, 1, 80, 24)
	a.press("home")
	for want := range 420 {
		a.View()
		m := a.request.Cells
		if v := a.request; v.Token != want || v.Token < m.First || v.Token > m.Last {
			t.Fatalf("token %d is selected, %d to %d are shown, want %d", v.Token, m.First, m.Last, want)
		}
		a.press("right")
	}
	a.press("home")
	a.View()
	a.press("down", "down", "up")
	if v := a.request; v.Token != v.Cells.PerRow {
		t.Errorf("one row down is token %d of %d a row", v.Token, v.Cells.PerRow)
	}
}

// Another request resets the selected token.
func TestAnotherRequestResetsTheToken(t *testing.T) {
	a := openRequest(viewtest.LiveSnapshot(), 1, 120, 36)
	a.press("home", "right")
	holds(t, a, "Token 1 ")
	a.press("esc", "esc", "3", "<")
	a.View()
	if a.request.Chosen {
		t.Error("the token of another request is still selected")
	}
}

// The copied JSON parses as a request of a report, and its gaps add up to the decode time of the store.
func TestCopiedRequest(t *testing.T) {
	s := viewtest.LiveSnapshot()
	for _, r := range append(s.Requests, chunks().Snapshot().Requests...) {
		text, err := request.JSON(s, r)
		if err != nil {
			t.Fatal(err)
		}
		var got report.Request
		if err := json.Unmarshal([]byte(text), &got); err != nil {
			t.Fatalf("#%d: %v", r.ID, err)
		}
		if got.ID != r.ID || got.State != r.State.String() || len(got.Tokens) != len(r.Tokens) || got.Generated != r.Generated {
			t.Errorf("#%d is copied as #%d, %s, %d tokens", r.ID, got.ID, got.State, len(got.Tokens))
		}
		sum := 0.0
		for i, tok := range got.Tokens {
			sum += tok.Gap.V * float64(r.Tokens[i].N)
		}
		if r.Decode.OK() && math.Abs(sum-r.Decode.V) > 1e-6*sum+1e-6 {
			t.Errorf("#%d: gaps add up to %v s, decoding took %v", r.ID, sum, r.Decode.V)
		}
		if strings.Contains(text, "\n ") {
			t.Error("the copy has several lines")
		}
	}
}

// For requests that left the ring, the view shows that their tokens are no longer kept.
func TestPastRequests(t *testing.T) {
	a := openRequest(viewtest.Crowd(5000), 17, 160, 45)
	holds(t, a, "evicted: tokens are kept for the last 256 ended requests")
	holds(t, a, "= TTFT")
	a.press("right", "left", "n", "x", "home", "end", "up")
	checkFrame(t, a.View().Content, 160, 45)
	if _, _, ok := request.Received(a.request.Request); ok {
		t.Error("tokens of a past request are kept")
	}
}

// The shown parts add up, whichever are folded into one on a small screen.
func TestSmallScreensFoldStages(t *testing.T) {
	for h := overview.MinHeight; h < 40; h++ {
		a := openRequest(viewtest.LiveSnapshot(), 1, 60, h)
		holds(t, a, "= TTFT")
		holds(t, a, "39.4 ms")
	}
	a := openRequest(viewtest.LiveSnapshot(), 1, 60, overview.MinHeight)
	holds(t, a, " shorter ")
}

// The selection follows the last token of a running request; any other token stays selected.
func TestLastTokenIsFollowed(t *testing.T) {
	s := chunks()
	a := openRequest(s.Snapshot(), 1, 120, 36)
	more := func() {
		s.Now += 6 * ms
		s.Emit(event.Event{Kind: event.KindToken, Req: 1, N: 2})
		a.changeSession(func(x *Session) { x.Snapshots = s.Snapshot })
		a.Update(tickMsg{})
	}
	more()
	holds(t, a, "Token 181  the last")
	a.press("left")
	more()
	holds(t, a, "Token 180")
	a.press("end")
	more()
	holds(t, a, "Token 185  the last")
}

// chunks plays a request with several tokens per event, with picks, alternatives and custom stages; two stalls have an
// evident cause.
func chunks() *viewtest.Scene {
	s := viewtest.NewScene()
	s.Slots = 2
	s.Load(event.StageNone)
	s.Model("moe", 3, 8, 2)
	s.Emit(event.Event{Kind: event.KindRequest, Req: 1, State: event.StateQueued, Data: &event.Request{Label: "chunked", Group: "a"}})
	s.Now += 2 * viewtest.Millisecond
	s.Emit(event.Event{Kind: event.KindRequest, Req: 1, State: event.StateDispatched})
	s.Emit(event.Event{Kind: event.KindStage, Req: 1, Layer: -1, Dur: int64(viewtest.Millisecond), Text: "rerank"})
	s.Stage(1, event.StagePrompt, 7e6, 30)
	for i := range 60 {
		gap := 6 * viewtest.Millisecond
		if i == 20 || i == 40 {
			gap = 60 * viewtest.Millisecond
			s.Emit(event.Event{Kind: event.KindRequest, Req: event.RequestID(i), State: event.StateQueued, Data: &event.Request{}})
			s.Emit(event.Event{Kind: event.KindRequest, Req: event.RequestID(i), State: event.StateDispatched})
			s.Now += gap / 2
			s.Emit(event.Event{Kind: event.KindStep, Dur: int64(gap / 2), N: 1, Prompt: 400})
			gap /= 2
		}
		s.Now += gap
		s.Emit(event.Event{
			Kind: event.KindToken, Req: 1, ID: int32(100 + i), Index: int32(3 * i), N: 3, Text: fmt.Sprintf(" w%d", i), HasLogP: true, LogP: -0.5,
			Top: []event.TopProb{{ID: 7, LogP: -0.5, Text: " this"}, {ID: 8, LogP: -2, Text: "\n"}}, Picks: []uint16{1, 2, 3, 4, 5, 6},
		})
	}
	s.ReportExperts()
	return s
}
