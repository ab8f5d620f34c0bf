package ui

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/theme"
	"github.com/llmtop/llmtop/ui/view/viewtest"
)

var _ Past = (*store.Past)(nil)

// withHistory makes the model over a live session with its history, and returns the snapshots that it showed, one per
// second.
func withHistory(w, h int, profile theme.Profile) (*app, *viewtest.Scene, []*store.Snapshot) {
	s := viewtest.Live()
	shown := []*store.Snapshot{s.Snapshot()}
	a := newApp(Config{
		Sessions: One(Session{Snapshots: s.Snapshot, Past: s.Store.Past(), Actions: (&calls{}).actions()}),
		Profile:  profile, ASCII: profile == theme.NoColour,
	})
	a.saveScreen = discardScreen
	a.Update(tea.WindowSizeMsg{Width: w, Height: h})
	for i := range 20 {
		if i%5 == 0 {
			s.Request(event.RequestID(9+i/5), "code", viewtest.PromptText, viewtest.AnswerText, 60, 300, false)
			s.Host()
		}
		s.Now = (s.Now/event.Time(time.Second) + 1) * event.Time(time.Second)
		shown = append(shown, s.Snapshot())
		s.Now++ // later events get later times
	}
	s.Now = shown[len(shown)-1].Now
	a.Update(tickMsg{})
	return a, s, shown
}

// Each view shows a past moment exactly as it did then, except the rows of the timeline and the footer.
func TestPastViewsMatchLiveViews(t *testing.T) {
	for v := range viewEngines {
		a, _, shown := withHistory(160, 45, theme.TrueColour)
		a.show(v)
		a.press("space")
		compared := 0
		for back := range 16 {
			a.press("shift+left") // left alone selects tokens of a request
			i := slices.IndexFunc(shown, func(s *store.Snapshot) bool { return s.Now == a.snap.Now })
			if i < 0 { // no snapshot was taken at that time
				continue
			}
			was := *shown[i]
			was.Verdicts = a.snap.Verdicts // their lifetime depends on how often snapshots are taken
			compared++
			then := open(&was, theme.TrueColour, false, 160, 45)
			then.changeSession(func(x *Session) { x.Actions = a.session.Actions })
			then.show(v)
			then.status.Paused = true
			then.history.timeline = a.history.timeline
			then.dirty = true
			is, want := strings.Split(a.screen(), "\n"), strings.Split(then.screen(), "\n")
			if !slices.Equal(is[:43], want[:43]) {
				for y := range is[:43] {
					if is[y] != want[y] {
						t.Fatalf("%s, %d s back, row %d:\n%s\nwant\n%s", viewName(v), back+1, y, is[y], want[y])
					}
				}
			}
		}
		if compared < 8 {
			t.Errorf("compared only %d moments", compared)
		}
	}
}

// TestHistory checks that the session continues while the view is paused, and that end returns to it.
func TestHistory(t *testing.T) {
	a, s, shown := withHistory(120, 36, theme.TrueColour)
	last := shown[len(shown)-1]
	a.press("space")
	holds(t, a, "paused · just now")
	a.press("[", "left")
	holds(t, a, "paused · 11 s ago · "+last.Wall.Add(-11*time.Second).Format("15:04:05"))
	s.Now += 4 * event.Time(time.Second)
	s.Emit(event.Event{Kind: event.KindLog, Text: "meanwhile"})
	s.Now += event.Time(time.Second)
	a.Update(tickMsg{})
	holds(t, a, "paused · 16 s ago")
	a.press("]", "right", "right", "right")
	if want := last.Now + 2*event.Time(time.Second); a.snap.Now != want || logged(a.snap) {
		t.Errorf("after 14 s forward the time is %v, want %v", a.snap.Now, want)
	}
	a.press("]", "]")
	if a.snap.Now != s.Now || !logged(a.snap) {
		t.Errorf("the history ends at %v, the present is %v", a.snap.Now, s.Now)
	}
	a.press("home")
	if from, _ := a.session.Past.Range(); a.snap.Now != from || a.snap.Counts.GeneratedTokens >= last.Counts.GeneratedTokens {
		t.Errorf("home leads to %v, the history starts at %v", a.snap.Now, from)
	}
	a.press("left")
	holds(t, a, "the history reaches back")
	a.press("end")
	if a.status.Paused || a.history.timeline != nil || a.snap.Now != s.Now {
		t.Errorf("end leads to %v, the present is %v", a.snap.Now, s.Now)
	}
	a.View()
	a.press("right")
	if a.overview.Focus != 1 {
		t.Error("after the return to live the keys do not move the focus")
	}
}

// logged reports whether the last log line has arrived.
func logged(s *store.Snapshot) bool {
	return len(s.Log) > 0 && s.Log[len(s.Log)-1].Text == "meanwhile"
}

// A moment that left the history stays on the screen, with a note.
func TestMomentThatLeftTheHistory(t *testing.T) {
	a, _, _ := withHistory(120, 36, theme.TrueColour)
	a.press("space", "[")
	was := a.snap
	p := &shortHistory{Past: a.session.Past, from: a.snap.Now + 1}
	a.changeSession(func(x *Session) { x.Past = p })
	a.Update(tickMsg{})
	holds(t, a, "evicted: only this frame")
	p.blank = true
	a.press("left")
	holds(t, a, "this moment is no longer in the history")
	if a.snap != was {
		t.Error("another moment is shown")
	}
}

// shortHistory is a history that reaches back to from only, or is blank.
type shortHistory struct {
	Past
	from  event.Time
	blank bool
}

func (f *shortHistory) Range() (from, to event.Time) {
	_, to = f.Past.Range()
	return f.from, to
}

func (f *shortHistory) At(at event.Time) *store.Snapshot {
	if f.blank {
		return nil
	}
	return f.Past.At(at)
}

// Without a history the keys of a paused view keep their live meaning.
func TestPauseWithoutHistory(t *testing.T) {
	a := open(viewtest.LiveSnapshot(), theme.TrueColour, false, 120, 36)
	a.View()
	a.press("space", "right", "[")
	if a.overview.Focus != 1 || a.history.timeline != nil || !a.status.Paused {
		t.Errorf("focus %v, %+v", a.overview.Focus, a.history.timeline)
	}
}

// All engines are shown at the same moment.
func TestHistoryOfSeveralEngines(t *testing.T) {
	var all []Session
	scenes := []*viewtest.Scene{viewtest.Live(), viewtest.Live()}
	for i, s := range scenes {
		all = append(all, Session{Name: fmt.Sprint("engine ", i), Snapshots: s.Snapshot, Past: s.Store.Past()})
	}
	a := openFleet(&all, false, 120, 36)
	a.showSession(0)
	a.show(viewOverview)
	a.press("space", "[", "[")
	at := a.snap.Now
	a.press("7")
	for i, r := range a.engines.Engines {
		if r.Snapshot.Now != at {
			t.Errorf("engine %d is shown at %v, want %v", i, r.Snapshot.Now, at)
		}
	}
	a.press("down", "enter")
	if a.session.Name != "engine 1" || a.snap.Now != at {
		t.Errorf("%s is shown at %v, want %v", a.session.Name, a.snap.Now, at)
	}
}

func TestGoldenTravel(t *testing.T) {
	a, _, _ := withHistory(120, 36, theme.TrueColour)
	a.press("m", "space", "[", "left")
	goldenColours(t, "past", a)
	a, _, _ = withHistory(120, 36, theme.NoColour)
	a.press("2", "space", "[")
	goldenText(t, "past_requests_ascii", a)
}

// The history keys do what the help says.
func TestHistoryKeys(t *testing.T) {
	far := map[string]event.Time{"back 1 s": -shortStep, "forward 1 s": shortStep, "back 10 s": -longStep, "forward 10 s": longStep}
	paused, _, _ := withHistory(120, 36, theme.TrueColour)
	paused.press("space")
	boundOnce(t, paused.bindings)
	_, keys := timeKeys()
	for _, b := range keys {
		for _, key := range b.Keys {
			a, _, _ := withHistory(120, 36, theme.TrueColour)
			a.press("space", "[", "[")
			from := a.snap.Now
			oldest, now := a.session.Past.Range()
			a.press(key)
			switch by, moves := far[b.name()]; {
			case moves && a.snap.Now != min(max(from+by, oldest), now):
				t.Errorf("%s leads from %v to %v", key, from, a.snap.Now)
			case b.name() == "start" && a.snap.Now != oldest:
				t.Errorf("%s leads to %v", key, a.snap.Now)
			case (b.name() == "play or pause" || b.name() == "end") && a.status.Paused:
				t.Errorf("%s does not return to live", key)
			}
		}
	}
	a, _, _ := withHistory(120, 36, theme.TrueColour)
	a.press("space", "?")
	holds(t, a, "go back 10 s")
}

// The keys of requests go to the first kept moments that have them, there and back.
func TestRequestsOfThePast(t *testing.T) {
	a, scene, _ := withHistory(120, 36, theme.TrueColour)
	a.press("space", "home")
	began := func(id event.RequestID) event.Time {
		for _, s := range scene.Store.Past().Until(scene.Now) {
			if slices.ContainsFunc(s.Requests, func(r *store.Request) bool { return r.ID == id }) {
				return s.Now
			}
		}
		return 0
	}
	for a.snap.Requests[0].ID < 9 {
		a.press("}")
	}
	for id := event.RequestID(9); id < 12; id++ {
		if a.snap.Now != began(id) || a.snap.Requests[0].ID != id {
			t.Fatalf("} leads to %v with request %d, want request %d at %v", a.snap.Now, a.snap.Requests[0].ID, id, began(id))
		}
		a.press("}")
	}
	a.press("}")
	holds(t, a, "no later request")
	for id := event.RequestID(11); id >= 9; id-- {
		if a.press("{"); a.snap.Now != began(id) {
			t.Fatalf("{ leads to %v, want request %d at %v", a.snap.Now, id, began(id))
		}
	}
}
