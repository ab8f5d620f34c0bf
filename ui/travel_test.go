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
)

var _ Past = (*store.Trip)(nil)

// voyage is a model over a live session with its past, and the snapshots that it showed on the way, one a second.
func voyage(w, h int, profile theme.Profile) (*app, *scene, []*store.Snapshot) {
	s := live()
	shown := []*store.Snapshot{s.drain()}
	a := newApp(Config{
		Snapshots: s.drain, Past: func() Past { return s.store.Travel() }, Profile: profile, ASCII: profile == theme.NoColour,
		Actions: (&asked{}).actions(),
	})
	a.save = kept
	a.Update(tea.WindowSizeMsg{Width: w, Height: h})
	for i := range 20 {
		if i%5 == 0 {
			s.request(event.RequestID(9+i/5), "code", promptText, answerText, 60, 300, false)
			s.host()
		}
		s.now = (s.now/event.Time(time.Second) + 1) * event.Time(time.Second)
		shown = append(shown, s.drain())
		s.now++ // what comes is later
	}
	s.now = shown[len(shown)-1].Now
	a.Update(tickMsg{})
	return a, s, shown
}

// A moment of the past looks on every view as it did then, to the cell; the row with the time line and the footer apart.
func TestThePastLooksAsItDid(t *testing.T) {
	for v := range viewEngines {
		a, _, shown := voyage(160, 45, theme.TrueColour)
		a.show(v)
		a.press("space")
		looked := 0
		for back := range 16 {
			a.press("shift+left") // left alone moves along the tokens of a request
			i := slices.IndexFunc(shown, func(s *store.Snapshot) bool { return s.Now == a.snap.Now })
			if i < 0 { // nobody looked then
				continue
			}
			was := *shown[i]
			was.Verdicts = a.snap.Verdicts // how long they stay depends on how often somebody looks
			looked++
			then := open(&was, theme.TrueColour, false, 160, 45)
			then.session.Actions = a.session.Actions
			then.show(v)
			then.panes.Paused = true
			then.panes.Timeline = a.panes.Timeline
			then.dirty = true
			is, want := strings.Split(a.screen(), "\n"), strings.Split(then.screen(), "\n")
			if !slices.Equal(is[:43], want[:43]) {
				for y := range is[:43] {
					if is[y] != want[y] {
						t.Fatalf("%s, %d s back, row %d:\n%s\nwant\n%s", tabNames[v], back+1, y, is[y], want[y])
					}
				}
			}
		}
		if looked < 8 {
			t.Errorf("%d moments could be compared", looked)
		}
	}
}

// The session goes on while its past is looked at, and end leads back to it.
func TestTravel(t *testing.T) {
	a, s, shown := voyage(120, 36, theme.TrueColour)
	last := shown[len(shown)-1]
	a.press("space")
	holds(t, a, "paused · just now")
	a.press("[", "left")
	holds(t, a, "paused · 11 s ago · "+last.Wall.Add(-11*time.Second).Format("15:04:05"))
	s.now += 5 * event.Time(time.Second)
	s.emit(event.Event{Kind: event.KindLog, Text: "meanwhile"})
	a.Update(tickMsg{})
	holds(t, a, "paused · 16 s ago")
	a.press("]", "right", "right", "right")
	if want := last.Now + 2*event.Time(time.Second); a.snap.Now != want || logged(a.snap) {
		t.Errorf("14 s on it is %v, want %v", a.snap.Now, want)
	}
	a.press("]", "]")
	if a.snap.Now != s.now || !logged(a.snap) {
		t.Errorf("the way on ends at %v, the present is %v", a.snap.Now, s.now)
	}
	a.press("home")
	if from := a.travel.from; a.snap.Now != from || a.snap.Counts.GeneratedTokens != 0 {
		t.Errorf("the way back ends at %v, it begins at %v", a.snap.Now, from)
	}
	a.press("left")
	holds(t, a, "the history reaches back")
	a.press("end")
	if a.panes.Paused || a.panes.Timeline != nil || a.snap.Now != s.now {
		t.Errorf("end leads to %v, the present is %v", a.snap.Now, s.now)
	}
	a.View()
	a.press("right")
	if a.panes.Focus != 1 {
		t.Error("once it is live again the keys do not move the focus")
	}
}

// logged reports whether the last line of the log has come.
func logged(s *store.Snapshot) bool {
	return len(s.Log) > 0 && s.Log[len(s.Log)-1].Text == "meanwhile"
}

// A moment that is no longer known stays on the screen, and says so.
func TestAMomentThatIsNoLongerKnown(t *testing.T) {
	a, _, _ := voyage(120, 36, theme.TrueColour)
	a.press("space", "[")
	was := a.snap
	p := &forgetful{Past: a.travel.past[""], from: a.snap.Now + 1}
	a.travel.past[""] = p
	a.Update(tickMsg{})
	holds(t, a, "no longer known")
	p.blank = true
	a.press("left")
	holds(t, a, "this moment is no longer known")
	if a.snap != was {
		t.Error("another moment is shown")
	}
}

// forgetful is a past that reaches back no further than from, or to nothing.
type forgetful struct {
	Past
	from  event.Time
	blank bool
}

func (f *forgetful) Reach() (from, to event.Time) {
	_, to = f.Past.Reach()
	return f.from, to
}

func (f *forgetful) At(at event.Time) *store.Snapshot {
	if f.blank {
		return nil
	}
	return f.Past.At(at)
}

// Without a past a pause is only that, and its keys stay what they are.
func TestPauseWithoutAPast(t *testing.T) {
	a := open(liveSnapshot(), theme.TrueColour, false, 120, 36)
	a.View()
	a.press("space", "right", "[")
	if a.panes.Focus != 1 || a.panes.Timeline != nil || !a.panes.Paused {
		t.Errorf("focus %v, %+v", a.panes.Focus, a.panes.Timeline)
	}
}

// Engines side by side are all shown as they were at one moment.
func TestTravelWithSeveralEngines(t *testing.T) {
	var all []Session
	scenes := []*scene{live(), live()}
	for i, s := range scenes {
		all = append(all, Session{Name: fmt.Sprint("engine ", i), Snapshots: s.drain, Past: func() Past { return s.store.Travel() }})
	}
	a := openFleet(&all, false, 120, 36)
	a.choose(0)
	a.show(viewOverview)
	a.press("space", "[", "[")
	at := a.snap.Now
	a.press("7")
	for i, r := range a.engines.rows {
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
	for _, size := range sizes {
		a, _, _ := voyage(size[0], size[1], theme.TrueColour)
		a.press("m", "space", "[", "left")
		golden(t, fmt.Sprintf("travel_%dx%d.ansi", size[0], size[1]), a.View().Content)
	}
	a, _, _ := voyage(120, 36, theme.NoColour)
	a.press("2", "space", "[")
	golden(t, "travel_requests_120x36_none.txt", strings.TrimSuffix(a.screen(), "\n"))
}

// The keys of the past do what the help says of them.
func TestKeysOfThePast(t *testing.T) {
	far := map[action]event.Time{actBackward: -nearBy, actForward: nearBy, actFarBack: -farBy, actFarOn: farBy}
	boundOnce(t, travelBindings)
	for _, b := range travelling {
		for _, key := range b.keys {
			a, _, _ := voyage(120, 36, theme.TrueColour)
			a.press("space", "[", "[")
			from := a.snap.Now
			a.press(key)
			switch by, moves := far[b.act]; {
			case moves && a.snap.Now != max(from+by, a.travel.from):
				t.Errorf("%s leads from %v to %v", key, from, a.snap.Now)
			case b.act == actToBegin && a.snap.Now != a.travel.from:
				t.Errorf("%s leads to %v", key, a.snap.Now)
			case (b.act == actPause || b.act == actToEnd) && a.panes.Paused:
				t.Errorf("%s does not lead back to live", key)
			}
		}
	}
	a, _, _ := voyage(120, 36, theme.TrueColour)
	a.press("space", "?")
	holds(t, a, "10 s back")
}
