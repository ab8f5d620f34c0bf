package ui

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/theme"
	"github.com/llmtop/llmtop/ui/table"
	"github.com/llmtop/llmtop/ui/view/overview"
	"github.com/llmtop/llmtop/ui/view/viewtest"
)

// requestsOf opens the table over a snapshot that the test may change.
func requestsOf(n, w, h int) (*app, **store.Snapshot) {
	s := viewtest.Crowd(n)
	a := newApp(Config{Sessions: One(Session{Snapshots: func() *store.Snapshot { return s }}), Profile: theme.TrueColour})
	a.saveScreen = discardScreen
	a.Update(tea.WindowSizeMsg{Width: w, Height: h})
	a.press("2")
	a.View()
	return a, &s
}

// newer returns the snapshot with one more request, running.
func newer(s *store.Snapshot) *store.Snapshot {
	next := *s
	r := *s.Requests[0]
	r.ID, r.Enqueued, r.State = s.Requests[0].ID+1, s.Now, event.StateDispatched
	next.Requests = append([]*store.Request{&r}, s.Requests...)
	next.Current, next.Version = &r, s.Version+1
	return &next
}

// Following selects the newest request; a pinned request stays selected while others arrive.
func TestSelectionFollowsOrStays(t *testing.T) {
	a, s := requestsOf(20, 120, 36)
	selected := func() event.RequestID { return a.requests.List.Rows[a.requests.Selected].ID }
	if selected() != (*s).Current.ID {
		t.Errorf("#%d is selected, the current request is #%d", selected(), (*s).Current.ID)
	}
	*s = newer(*s)
	a.Update(tickMsg{})
	a.View()
	if selected() != 21 {
		t.Errorf("following, #%d is selected after #21 arrived", selected())
	}
	a.press("down", "down")
	at := selected()
	for range 5 {
		*s = newer(*s)
		a.Update(tickMsg{})
		a.View()
	}
	if selected() != at || at == 21 {
		t.Errorf("#%d was pinned, #%d is selected", at, selected())
	}
	a.press("home")
	if a.View(); selected() != 26 {
		t.Errorf("home selects #%d", selected())
	}
	a.press("end")
	if a.View(); selected() != 1 {
		t.Errorf("end selects #%d", selected())
	}
}

// Sorting selects the first row.
func TestSortingGoesToTheTop(t *testing.T) {
	a, _ := requestsOf(5000, 120, 36)
	a.press("pgdown", "pgdown", "pgdown", "pgdown", "<")
	a.View()
	if v := a.requests; v.Selected != 0 || v.First != 0 {
		t.Errorf("row %d is selected and row %d at the top", v.Selected, v.First)
	}
}

func TestMouseInTheTable(t *testing.T) {
	a, _ := requestsOf(5000, 160, 45)
	click := func(x, y int) {
		a.Update(tea.MouseClickMsg{X: x, Y: y, Button: tea.MouseLeft})
		a.View()
	}
	for _, h := range a.requests.Heads {
		a.requests.List.By, a.requests.List.Down = table.NumFields-1, false
		click(h.At.X+h.At.W/2, h.At.Y)
		if l := a.requests.List; l.By != h.Field && h.Field != table.NumFields-1 {
			t.Errorf("a click on %v sorts by %v", h.Field, l.By)
		}
		down := a.requests.List.Down
		click(h.At.X, h.At.Y)
		if a.requests.List.Down == down {
			t.Errorf("a second click on %v does not reverse the order", h.Field)
		}
	}
	a.press("home")
	a.View()
	body := a.requests.Body
	click(body.X+20, body.Y+7)
	if a.requests.Selected != 7 || a.requests.Follow {
		t.Errorf("a click on the eighth row selects row %d", a.requests.Selected)
	}
	a.Update(tea.MouseWheelMsg{Button: tea.MouseWheelDown})
	if a.View(); a.requests.Selected != 7+wheel {
		t.Errorf("a notch of the wheel leads to row %d", a.requests.Selected)
	}
}

// Narrow screens drop columns by rank, and no cell runs into another column.
func TestColumnsByWidth(t *testing.T) {
	had := 0
	for w := overview.MinWidth; w <= 220; w++ {
		a, _ := requestsOf(20, w, 30)
		heads := a.requests.Heads
		if len(heads) < had {
			t.Errorf("a screen of %d columns shows %d of the table, a narrower one %d", w, len(heads), had)
		}
		had = len(heads)
		for i := range heads[1:] {
			if before := heads[i].At; before.X+before.W >= heads[i+1].At.X {
				t.Errorf("%d columns: %v touches %v", w, heads[i].Field, heads[i+1].Field)
			}
		}
	}
	if had != int(table.NumFields)-2 { // all but the model, which is the same for all, and the answer: none reasons
		t.Errorf("the widest screen shows %d columns", had)
	}
}

// The sums cover all rows that match the filter, not only the visible ones.
func TestSumsOfTheTable(t *testing.T) {
	a, s := requestsOf(5000, 160, 45)
	a.press(append(strings.Split("/failed", ""), "enter")...)
	n := 0
	for _, r := range append((*s).Earlier, (*s).Requests...) {
		if r.State == event.StateFailed {
			n++
		}
	}
	holds(t, a, fmt.Sprintf("%d of 5 000, newest first", n))
	holds(t, a, fmt.Sprintf("%d failed", n))
	if strings.Contains(a.screen(), "4847 finished") {
		t.Error("the sums cover all requests")
	}
}

// Pasted text is inserted into the filter.
func TestPasteIntoTheFilter(t *testing.T) {
	a, _ := requestsOf(20, 120, 36)
	a.press("/")
	a.Update(tea.PasteMsg{Content: "group=\x1b[2Jbase"})
	checkFrame(t, a.View().Content, 120, 36)
	a.press("ctrl+u")
	a.Update(tea.PasteMsg{Content: "group=base"})
	holds(t, a, "7 of 20")
}

// A click on the selected row opens it.
func TestClickOpensTheSelectedRow(t *testing.T) {
	a, _ := requestsOf(20, 120, 36)
	body := a.requests.Body
	for _, want := range []viewID{viewRequests, viewRequest} {
		a.Update(tea.MouseClickMsg{X: body.X + 5, Y: body.Y + 9, Button: tea.MouseLeft})
		if a.view != want {
			t.Errorf("a click shows view %d, want %d", a.view, want)
		}
	}
	holds(t, a, "╭─ Request ─ #11 ")
}

// The cancel key cancels the selected request.
func TestCancelSelectedRequest(t *testing.T) {
	a := open(viewtest.Crowd(20), theme.TrueColour, false, 120, 36)
	k := &calls{}
	a.changeSession(func(x *Session) { x.Actions = k.actions() })
	a.press("2", "home", "c", "down", "enter", "c", "end", "esc", "end", "c")
	if !slices.Equal(k.cancels, []event.RequestID{20, 19}) {
		t.Errorf("cancelled %v, want 20 and 19, which are queued, and not 1, which has finished", k.cancels)
	}
	holds(t, a, "no request is running")
}

// The pane of requests on the overview of an engine without experts opens the table, which opens a request.
func TestRequestsPaneOpensTheTable(t *testing.T) {
	a := open(viewtest.Sparse().Snapshot(), theme.TrueColour, false, 120, 36)
	a.View()
	for range 10 {
		if a.overview.Focus != overview.Requests {
			a.press("tab")
		}
	}
	if a.press("enter"); a.view != viewRequests {
		t.Fatalf("enter leads to view %d", a.view)
	}
	if a.press("enter"); a.view != viewRequest {
		t.Errorf("enter in the table leads to view %d", a.view)
	}
}
