package ui

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/recording"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/theme"
	"github.com/llmtop/llmtop/ui/view/overview"
	"github.com/llmtop/llmtop/ui/view/viewtest"
)

var _ Travel = (*recording.Player)(nil)

// player replaces a recording with requests 1 to 9: it records the calls and moves to the requested position.
type player struct {
	recording.PlayStatus
	calls []string
	err   error
}

func (p *player) note(format string, args ...any) {
	p.calls = append(p.calls, fmt.Sprintf(format, args...))
}

func (p *player) Status() recording.PlayStatus { return p.PlayStatus }

func (p *player) Play() {
	p.note("play")
	p.State = recording.Playing
}

func (p *player) Pause() {
	p.note("pause")
	p.State = recording.Paused
}

func (p *player) Step(by recording.Step) {
	p.note("step %d", by)
	p.State = recording.Paused
}

func (p *player) SetSpeed(x float64) error {
	p.note("speed %v", x)
	p.Speed = x
	return p.err
}

func (p *player) SeekTime(at event.Time) error {
	p.note("seek %v", time.Duration(at))
	if p.State != recording.Seeking {
		p.Now = at
	}
	return p.err
}

func (p *player) SeekRequest(_ string, id event.RequestID) error {
	if id > 9 {
		return errors.New("find request: it is not in the recording")
	}
	p.note("request %d", id)
	return p.err
}

// newPlayer returns a player at the end of the live session, in a recording that is one minute longer.
func newPlayer() *player {
	s := viewtest.LiveSnapshot()
	return &player{PlayStatus: recording.PlayStatus{
		State: recording.Playing, Speed: 1, Now: s.Now, End: s.Now + event.Time(time.Minute),
	}}
}

// openReplay makes the model over a replay of the live session.
func openReplay(p *player, w, h int) *app { return openReplayOf(viewtest.LiveSnapshot(), p, w, h) }

func openReplayOf(s *store.Snapshot, p *player, w, h int) *app {
	a := newApp(Config{Sessions: One(Session{Snapshots: func() *store.Snapshot { return s }}), Replay: p, Profile: theme.TrueColour})
	a.saveScreen = discardScreen
	a.Update(tea.WindowSizeMsg{Width: w, Height: h})
	return a
}

// replayKeyCases list the calls of the player for each key of a replay.
var replayKeyCases = map[string]struct {
	keys []string
	want []string
}{
	"play or pause":    {[]string{"space", "space"}, []string{"pause", "play"}},
	"step":             {[]string{"."}, []string{"step 2"}},
	"back 1 s":         {[]string{"left", "shift+left"}, []string{"seek 1m31.", "seek 1m30."}},
	"forward 1 s":      {[]string{"right", "shift+right"}, []string{"seek 1m33.", "seek 1m34."}},
	"previous request": {[]string{"{"}, []string{"request 8"}},
	"request":          {[]string{"}"}, []string{"request 9"}},
	"speed":            {[]string{"+", "="}, []string{"speed 2", "speed 5"}},
	"speed down":       {[]string{"-", "-", "-", "-", "-"}, []string{"speed 0.5", "speed 0.2", "speed 0.1", "speed 0.1", "speed 0.1"}},
	"back 10 s":        {[]string{"["}, []string{"seek 1m22."}},
	"forward 10 s":     {[]string{"]"}, []string{"seek 1m42."}},
	"start":            {[]string{"home"}, []string{"seek 0s"}},
	"end":              {[]string{"end"}, []string{"seek 2m32."}},
	"previous engine":  {[]string{"("}, nil}, // see TestReplayOfSeveralEngines
	"engine":           {[]string{")"}, nil},
}

// The search for the next request stops at the largest id.
func TestNextRequestAtTheEndOfIDs(t *testing.T) {
	for _, newest := range []event.RequestID{math.MaxUint64, math.MaxUint64 - 1, math.MaxUint64 - idGap, math.MaxUint64 - idGap - 1} {
		p := newPlayer()
		s := store.Empty()
		s.Requests = []*store.Request{{ID: newest}}
		a := openReplayOf(s, p, 120, 36)
		a.press("}")
		if len(p.calls) != 0 || !strings.Contains(a.screen(), "no later request") {
			t.Errorf("after request %d: calls of the player: %q", newest, p.calls)
		}
	}
}

func TestReplayKeysCallThePlayer(t *testing.T) {
	keys, _ := timeKeys()
	for _, b := range keys {
		test, ok := replayKeyCases[b.name()]
		if !ok {
			t.Errorf("key %s has no test", b.Show)
			continue
		}
		for _, mode := range []string{"", "z", "2"} { // in the overview, with a full-screen pane, and in another view
			p := newPlayer()
			a := openReplay(p, 120, 36)
			if mode != "" {
				a.press(mode)
			}
			a.press(test.keys...)
			if !slices.EqualFunc(p.calls, test.want, strings.HasPrefix) {
				t.Errorf("%v: calls of the player: %q, want %q", test.keys, p.calls, test.want)
			}
		}
	}
}

// The footer says what space does now.
func TestFooterOfReplaySaysPlayOrPause(t *testing.T) {
	p := newPlayer()
	a := openReplay(p, 120, 36)
	for i, want := range []string{"space pause", "space play", "space pause"} {
		if holds(t, a, want); i < 2 {
			a.press("space")
		}
	}
	p.State = recording.Ended
	a.Update(tickMsg{})
	holds(t, a, "space play")
}

// In a replay of several engines the time keys keep their meaning, and others switch engines.
func TestReplayOfSeveralEngines(t *testing.T) {
	p := newPlayer()
	var all []Session
	for _, name := range []string{"http://one:8000", "http://two:8000", "http://three:8000"} {
		all = append(all, Session{Name: name, Snapshots: viewtest.LiveSnapshot})
	}
	joined := all[:1] // the others join later
	a := newApp(Config{Sessions: func() []Session { return joined }, StartWithList: func() bool { return true }, Replay: p, Profile: theme.TrueColour})
	joined = all
	a.Update(tickMsg{})
	a.Update(tea.WindowSizeMsg{Width: 120, Height: 36})
	holds(t, a, "REPLAY")
	holds(t, a, "3 engines")
	a.press("enter")
	for _, step := range []struct{ key, shown string }{{")", "2/3 http://two:8000"}, {")", "3/3 http://three:8000"}, {")", "1/3 http://one:8000"}, {"(", "3/3 http://three:8000"}} {
		a.press(step.key)
		holds(t, a, step.shown)
	}
	if len(p.calls) > 0 {
		t.Errorf("calls of the player: %q", p.calls)
	}
	a.press("[", "]")
	if len(p.calls) != 2 {
		t.Errorf("calls of the player: %q, want two seeks", p.calls)
	}
}

// In a live session the replay keys keep their live meaning.
func TestLiveKeysIgnoreReplayKeys(t *testing.T) {
	a, k := withCalls(t)
	a.View()
	a.press("right", ".", "{", "}")
	if a.overview.Focus != 1 {
		t.Errorf("right leads to %v", a.overview.Focus)
	}
	a.press("space", "+")
	holds(t, a, "view paused")
	if len(k.paces) != 1 {
		t.Error("+ does not set the pace")
	}
}

// The help lists the keys of a replay, once each, and scrolls with its own.
func TestReplayHelp(t *testing.T) {
	p := newPlayer()
	a := openReplay(p, 120, 36)
	a.press("?", "end", "home")
	holds(t, a, "play or pause the recording")
	if len(p.calls) != 0 || strings.Contains(a.screen(), "pause and go back in time") {
		t.Errorf("the help of a replay shows the live keys; calls %q", p.calls)
	}
}

// Repeated seek keys add up during a seek.
func TestSeeksAddUp(t *testing.T) {
	p := newPlayer()
	a := openReplay(p, 120, 36)
	p.Now = event.Time(40 * time.Second)
	a.press("left")
	p.State, p.Now = recording.Seeking, event.Time(3*time.Second) // a seek back restarts from the beginning
	a.press("[", "left", "right")
	if want := []string{"seek 39s", "seek 29s", "seek 28s", "seek 29s"}; !slices.Equal(p.calls, want) {
		t.Errorf("calls %q, want %q", p.calls, want)
	}
}

// Space works during a seek, when the replay does not report whether it is paused, and at the end.
func TestPlayKeyAtAnyTime(t *testing.T) {
	p := newPlayer()
	a := openReplay(p, 120, 36)
	a.press("space")
	p.State = recording.Seeking
	a.Update(tickMsg{})
	a.press("space")
	p.State = recording.Ended
	a.Update(tickMsg{})
	a.press("space")
	if want := []string{"pause", "play", "seek 0s", "play"}; !slices.Equal(p.calls, want) {
		t.Errorf("calls %q, want %q", p.calls, want)
	}
}

// An engine that does not report tokens is stepped by events; the last request has no next one.
func TestStepsAndRequestsOfAPlainEngine(t *testing.T) {
	s := *viewtest.LiveSnapshot()
	s.Engine.Caps = event.CapSteps
	last := *s.Requests[0]
	last.ID, last.Enqueued = 9, s.Now
	s.Requests = append([]*store.Request{&last}, s.Requests...)
	p := newPlayer()
	a := openReplayOf(&s, p, 120, 36)
	a.press(".", "}")
	holds(t, a, "no later request")
	a.press("{")
	s.Requests = nil
	a.press("{")
	if want := []string{"step 1", "request 8", "seek 0s"}; !slices.Equal(p.calls, want) {
		t.Errorf("calls %q, want %q", p.calls, want)
	}
}

func TestErrorsOfReplaysAreShown(t *testing.T) {
	p := newPlayer()
	p.err = errors.New("seek back: this replay only goes forward\x1b[2J")
	a := openReplay(p, 120, 36)
	a.press("left")
	holds(t, a, "seek back: this replay only goes forward")
}

// A playing replay is drawn as its clock moves, a paused one is not.
func TestReplayIsDrawnAsItMoves(t *testing.T) {
	p := newPlayer()
	a := openReplay(p, 120, 36)
	a.View()
	draws := func(move event.Time) (n int) {
		for range 20 {
			p.Now += move
			a.Update(tickMsg{})
			if a.dirty {
				n++
			}
			a.View()
		}
		return n
	}
	if n := draws(0); n != 0 {
		t.Errorf("a paused replay was drawn %d times", n)
	}
	if n := draws(replayFrame); n != 20 {
		t.Errorf("a playing replay was drawn %d times of 20", n)
	}
}

// The progress line shows the position, and is hidden where the panes need its row.
func TestProgressOfReplays(t *testing.T) {
	p := newPlayer()
	for _, c := range []struct {
		at   event.Time
		done int
	}{{p.Begin, 0}, {(p.Begin + p.End) / 2, 59}, {p.End, 118}, {p.End + 1e12, 118}, {p.Begin - 1e12, 0}} {
		p.Now = c.at
		a := openReplay(p, 120, 36)
		rows := strings.Split(strings.TrimSuffix(a.screen(), "\n"), "\n")
		if n := strings.Count(rows[34], "━"); n != c.done {
			t.Errorf("at %v the line is %d cells long, want %d", c.at, n, c.done)
		}
	}
	if a := openReplay(p, 80, overview.MinHeight); strings.Contains(a.screen(), "━") || len(a.overview.Placements) == 0 {
		t.Error("the smallest screen gives a row to the progress line")
	}
}
