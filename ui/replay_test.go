package ui

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/profiler/trace"
	"github.com/llmtop/llmtop/theme"
)

var _ Replay = (*trace.Player)(nil)

// player stands in for a recording of which requests 1 to 9 are known: it writes down what it is asked for, and is where it was sent.
type player struct {
	trace.PlayStatus
	asked []string
	err   error
}

func (p *player) note(format string, args ...any) {
	p.asked = append(p.asked, fmt.Sprintf(format, args...))
}

func (p *player) Status() trace.PlayStatus { return p.PlayStatus }

func (p *player) Play() {
	p.note("play")
	p.State = trace.Playing
}

func (p *player) Pause() {
	p.note("pause")
	p.State = trace.Paused
}

func (p *player) Step(by trace.Step) {
	p.note("step %d", by)
	p.State = trace.Paused
}

func (p *player) SetSpeed(x float64) error {
	p.note("speed %v", x)
	p.Speed = x
	return p.err
}

func (p *player) SeekTime(at event.Time) error {
	p.note("seek %v", time.Duration(at))
	if p.State != trace.Seeking {
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

// newPlayer stands at the end of the live session, of a recording that goes on for a minute more.
func newPlayer() *player {
	s := liveSnapshot()
	return &player{PlayStatus: trace.PlayStatus{
		State: trace.Playing, Speed: 1, Now: s.Now, End: s.Now + event.Time(time.Minute),
	}}
}

// openReplay makes the model over a replay of the live session.
func openReplay(p *player, w, h int) *app { return openReplayOf(liveSnapshot(), p, w, h) }

func openReplayOf(s *store.Snapshot, p *player, w, h int) *app {
	a := newApp(Config{Snapshots: func() *store.Snapshot { return s }, Replay: p, Profile: theme.TrueColour})
	a.save = kept
	a.Update(tea.WindowSizeMsg{Width: w, Height: h})
	return a
}

// Each key of a replay with what the player is asked for.
var steerCases = map[action]struct {
	keys []string
	want []string
}{
	actPlay:            {[]string{"space", "space"}, []string{"pause", "play"}},
	actStep:            {[]string{"."}, []string{"step 2"}},
	actBackward:        {[]string{"left", "shift+left"}, []string{"seek 1m31.", "seek 1m30."}},
	actForward:         {[]string{"right", "shift+right"}, []string{"seek 1m33.", "seek 1m34."}},
	actPreviousRequest: {[]string{"{"}, []string{"request 8"}},
	actNextRequest:     {[]string{"}"}, []string{"request 9"}},
	actSpeedUp:         {[]string{"+", "="}, []string{"speed 2", "speed 5"}},
	actSpeedDown:       {[]string{"-", "-", "-", "-", "-"}, []string{"speed 0.5", "speed 0.2", "speed 0.1", "speed 0.1", "speed 0.1"}},
	actFarBack:         {[]string{"["}, []string{"seek 1m22."}},
	actFarOn:           {[]string{"]"}, []string{"seek 1m42."}},
	actToBegin:         {[]string{"home"}, []string{"seek 0s"}},
	actToEnd:           {[]string{"end"}, []string{"seek 2m32."}},
	actPreviousEngine:  {[]string{"("}, nil}, // see TestReplayOfSeveralEngines
	actNextEngine:      {[]string{")"}, nil},
}

func TestKeysSteerReplays(t *testing.T) {
	for _, b := range steering {
		test, ok := steerCases[b.act]
		if !ok {
			t.Errorf("key %s has no test", b.show)
			continue
		}
		for _, mode := range []string{"", "z", "2"} { // on the overview, with a pane zoomed, and in another view
			p := newPlayer()
			a := openReplay(p, 120, 36)
			if mode != "" {
				a.press(mode)
			}
			a.press(test.keys...)
			if !slices.EqualFunc(p.asked, test.want, strings.HasPrefix) {
				t.Errorf("%v: the player is asked for %q, want %q", test.keys, p.asked, test.want)
			}
		}
	}
}

// In a replay of several engines the keys of time stay what they are, and others go from engine to engine.
func TestReplayOfSeveralEngines(t *testing.T) {
	p := newPlayer()
	var all []Session
	for _, name := range []string{"http://one:8000", "http://two:8000", "http://three:8000"} {
		all = append(all, Session{Name: name, Snapshots: liveSnapshot})
	}
	known := all[:1] // the others come a little later
	a := newApp(Config{Sessions: func() []Session { return known }, Several: true, Replay: p, Profile: theme.TrueColour})
	known = all
	a.Update(tickMsg{})
	a.Update(tea.WindowSizeMsg{Width: 120, Height: 36})
	holds(t, a, "REPLAY")
	holds(t, a, "3 engines")
	a.press("enter")
	for _, step := range []struct{ key, shown string }{{")", "2/3 http://two:8000"}, {")", "3/3 http://three:8000"}, {")", "1/3 http://one:8000"}, {"(", "3/3 http://three:8000"}} {
		a.press(step.key)
		holds(t, a, step.shown)
	}
	if len(p.asked) > 0 {
		t.Errorf("the player is asked for %q", p.asked)
	}
	a.press("[", "]")
	if len(p.asked) != 2 {
		t.Errorf("the player is asked for %q, want two moments", p.asked)
	}
}

// In a live session the keys of a replay do what they did before there were any.
func TestReplayKeysAreForReplays(t *testing.T) {
	a, k := driven(t)
	a.View()
	a.press("right", ".", "{", "}")
	if a.panes.Focus != 1 {
		t.Errorf("right leads to %v", a.panes.Focus)
	}
	a.press("space", "+")
	holds(t, a, "view paused")
	if len(k.paces) != 1 {
		t.Error("+ does not set the pace")
	}
}

// The help has the keys of a replay, once each, and its own scrolling.
func TestReplayHelp(t *testing.T) {
	p := newPlayer()
	a := openReplay(p, 120, 36)
	a.press("?", "end", "home")
	holds(t, a, "play the recording, or pause it")
	if len(p.asked) != 0 || strings.Contains(a.screen(), "freeze the view") {
		t.Errorf("the help of a replay is that of a live session; asked for %q", p.asked)
	}
}

// Seek keys that follow each other while the replay is on its way add up.
func TestSeeksAddUp(t *testing.T) {
	p := newPlayer()
	a := openReplay(p, 120, 36)
	p.Now = event.Time(40 * time.Second)
	a.press("left")
	p.State, p.Now = trace.Seeking, event.Time(3*time.Second) // it has begun anew
	a.press("[", "left", "right")
	if want := []string{"seek 39s", "seek 29s", "seek 28s", "seek 29s"}; !slices.Equal(p.asked, want) {
		t.Errorf("asked for %q, want %q", p.asked, want)
	}
}

// Space does the right thing while a seek hides whether the replay is paused, and at the end.
func TestPlayKeyAtAnyTime(t *testing.T) {
	p := newPlayer()
	a := openReplay(p, 120, 36)
	a.press("space")
	p.State = trace.Seeking
	a.Update(tickMsg{})
	a.press("space")
	p.State = trace.Ended
	a.Update(tickMsg{})
	a.press("space")
	if want := []string{"pause", "play", "seek 0s", "play"}; !slices.Equal(p.asked, want) {
		t.Errorf("asked for %q, want %q", p.asked, want)
	}
}

// An engine that does not tell of tokens is stepped through event by event; the last request has none after it.
func TestStepsAndRequestsOfAPlainEngine(t *testing.T) {
	s := *liveSnapshot()
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
	if want := []string{"step 1", "request 8", "seek 0s"}; !slices.Equal(p.asked, want) {
		t.Errorf("asked for %q, want %q", p.asked, want)
	}
}

func TestErrorsOfReplaysAreShown(t *testing.T) {
	p := newPlayer()
	p.err = errors.New("seek back: this replay only goes forward\x1b[2J")
	a := openReplay(p, 120, 36)
	a.press("left")
	holds(t, a, "seek back: this replay only goes forward")
}

// A replay that plays is drawn as its clock moves, and one that rests is not.
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
		t.Errorf("a replay that rests was drawn %d times", n)
	}
	if n := draws(moves); n != 20 {
		t.Errorf("a replay that moves was drawn %d times of 20", n)
	}
}

// The progress line ends where the replay does, and is left out where the panes need its row.
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
	if a := openReplay(p, 80, minHeight); strings.Contains(a.screen(), "━") || len(a.places) == 0 {
		t.Error("the smallest screen gives a row to the progress line")
	}
}
