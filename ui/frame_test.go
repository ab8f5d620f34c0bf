package ui

import (
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/theme"
	"github.com/llmtop/llmtop/ui/input"
	"github.com/llmtop/llmtop/ui/view"
	"github.com/llmtop/llmtop/ui/view/viewtest"
)

// builtIn are the built-in prompts of tests.
var builtIn = []input.Suggestion{{Label: "scripture", Text: viewtest.PromptText}, {Label: "code", Text: "func main() {"}}

// open makes the model over one snapshot, w by h cells.
func open(s *store.Snapshot, profile theme.Profile, ascii bool, w, h int) *app {
	a := newApp(Config{
		Sessions: One(Session{Snapshots: func() *store.Snapshot { return s }, Actions: view.Actions{
			Prompt: func(string, string) (string, error) { return "", nil }, Cancel: func(event.RequestID) error { return nil },
			SetPace: func(float64) error { return nil },
		}}),
		Profile: profile, ASCII: ascii,
		Prompts: builtIn,
	})
	a.saveScreen = discardScreen
	a.Update(tea.WindowSizeMsg{Width: w, Height: h})
	return a
}

// discardScreen replaces saving a screenshot; it writes nothing.
func discardScreen(_, _ []byte) (string, error) { return "llmtop-20260102-150405.svg", nil }

// ms is a millisecond of a scene.
const ms = viewtest.Millisecond

// sessionsOf returns a session per engine.
func sessionsOf(engines []viewtest.Engine) (out []Session) {
	for _, e := range engines {
		out = append(out, Session{Name: e.Name, Snapshots: func() *store.Snapshot { return e.Snapshot }})
	}
	return out
}

// changeSession changes the session on the screen.
func (a *app) changeSession(change func(*Session)) {
	i := slices.IndexFunc(a.sessions, func(x Session) bool { return x.Name == a.session.Name })
	change(&a.sessions[i])
	a.session = a.sessions[i]
}

// press presses keys one after another and returns the command of the last one.
func (a *app) press(keys ...string) (cmd tea.Cmd) {
	for _, k := range keys {
		a.throttle.frames = 0 // nobody presses as many keys in a tick
		cmd = a.Update(keyPress(k))
	}
	return cmd
}

// View returns the current frame as text: rows separated by newlines, with styles.
func (a *app) View() tea.View {
	a.Draw()
	return tea.NewView(a.grid.Encode(a.skin))
}

// View returns the current frame as text.
func (c *choice) View() tea.View {
	g, skin := c.Draw()
	return tea.NewView(g.Encode(skin))
}

// screen returns the frame as text without styles.
func (a *app) screen() string {
	a.Draw()
	return a.grid.Plain()
}

// numTabs is the number of views with a number key.
const numTabs = viewEngines + 1

// allViews are all views.
var allViews = []viewID{viewOverview, viewRequests, viewRequest, viewLatency, viewExperts, viewSystem, viewEngines, viewPane, viewOps, viewHelp}

// viewName returns the name of a view.
func viewName(v viewID) string { return keysOf(Config{}).views[v].Name() }

// digits are the number keys.
func digits() (keys []string) {
	for v := range numTabs {
		keys = append(keys, viewKey(v))
	}
	return keys
}

// keysOf makes the model of an empty session, for its tables of keys.
func keysOf(cfg Config) *app {
	cfg.Sessions = One(Session{Snapshots: func() *store.Snapshot { return store.Empty() }})
	return newApp(cfg)
}

// liveKeys are the keys of a live screen.
func liveKeys() []binding { return keysOf(Config{}).live }

// timeKeys are the keys that move in a replay, and in a paused live session.
func timeKeys() (replay, history []binding) {
	for _, k := range keysOf(Config{Replay: newPlayer()}).travel.keys() {
		replay = append(replay, binding{Key: k, views: everywhere})
	}
	for _, k := range keysOf(Config{}).travel.keys() {
		history = append(history, binding{Key: k, views: everywhere})
	}
	return replay, history
}

// checkFrame checks what holds for every frame: h rows, each exactly w cells by both ways of measuring, and no control
// codes except the encoder's styles.
func checkFrame(t *testing.T, frame string, w, h int) {
	t.Helper()
	rows := strings.Split(frame, "\n")
	if len(rows) != h {
		t.Fatalf("%dx%d: %d rows", w, h, len(rows))
	}
	for y, row := range rows {
		plain := viewtest.StripStyles(row)
		if seen, ok := checkedRows.Load(plain); ok && seen == w {
			continue
		}
		for _, r := range plain {
			if r < 0x20 || r >= 0x7f && r < 0xa0 || r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069 {
				t.Fatalf("%dx%d: %U in row %d: %q", w, h, r, y, plain)
			}
		}
		if a, b := ansi.StringWidth(plain), ansi.StringWidthWc(plain); a != w || b != w {
			t.Fatalf("%dx%d: row %d is %d or %d wide: %q", w, h, y, a, b, plain)
		}
		if kept.Add(1)%10_000 == 0 { // bounds the memory
			checkedRows.Clear()
		}
		checkedRows.Store(plain, w)
	}
}

// checkedRows are those that checkFrame has seen, with their widths: most rows of a frame were in the one before, and
// measuring takes longer than drawing.
var (
	checkedRows sync.Map
	kept        atomic.Int64
)
