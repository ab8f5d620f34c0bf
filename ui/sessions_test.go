package ui

import (
	"errors"
	"slices"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/profiler/recording"
	"github.com/llmtop/llmtop/theme"
	"github.com/llmtop/llmtop/ui/view/viewtest"
)

// openFleet makes the model over several engines; the test may change the list.
func openFleet(sessions *[]Session, ascii bool, w, h int) *app {
	profile := theme.TrueColour
	if ascii {
		profile = theme.NoColour
	}
	a := newApp(Config{Sessions: func() []Session { return *sessions }, Profile: profile, ASCII: ascii})
	a.saveScreen = discardScreen
	a.Update(tea.WindowSizeMsg{Width: w, Height: h})
	return a
}

// withRecording opens the live session while it is recorded.
func withRecording(s recording.RecordStatus, w, h int) *app {
	a := open(viewtest.LiveSnapshot(), theme.TrueColour, false, w, h)
	a.cfg.Recording = func() (recording.RecordStatus, bool) { return s, true }
	a.updateStatus()
	return a
}

// recordings are the states of a recording.
var recordings = []struct {
	name string
	recording.RecordStatus
}{
	{"recording", recording.RecordStatus{Events: 40000, Bytes: 1_234_567}},
	{"recording_lossy", recording.RecordStatus{Bytes: 1_234_567, Dropped: event.Drops{event.KindToken: 12}}},
	{"recording_failed", recording.RecordStatus{Bytes: 1_234_567, Err: errors.New("write run.llmtop: no space left on device\x1b[2J")}},
}

func TestEnginesAreSelectedInTheList(t *testing.T) {
	all := sessionsOf(viewtest.SeveralEngines())
	a := openFleet(&all, false, 120, 36)
	if a.view != viewEngines {
		t.Fatal("the screen does not start with the list of several engines")
	}
	holds(t, a, "7 engines")
	a.press("down", "down", "down", "up", "enter")
	if a.view != viewOverview || a.session.Name != all[2].Name {
		t.Errorf("enter shows %q", a.session.Name)
	}
	holds(t, a, "DISCONNECTED since 09:0")
	holds(t, a, "3/7 ")
	a.press("]")
	holds(t, a, "RESTARTED (2)")
	a.press("[", "[", "[", "[")
	if a.session.Name != all[6].Name {
		t.Errorf("the engines do not wrap around: %q", a.session.Name)
	}
	a.press("l")
	if a.view != viewEngines || a.engines.Selected != 6 {
		t.Error("l does not select the engine on the screen in the list")
	}
	a.press("l")
	if a.view != viewOverview {
		t.Error("l does not close the list")
	}
}

// The sums of the list cover connected engines, and dropped events of all; percentiles have no sum.
func TestSumsOfEngines(t *testing.T) {
	all := sessionsOf(viewtest.SeveralEngines())
	a := openFleet(&all, false, 160, 45)
	sums := ""
	for _, line := range strings.Split(a.screen(), "\n") {
		if strings.Contains(line, "sum of") {
			sums = line
		}
	}
	fields := slices.DeleteFunc(strings.Split(strings.Trim(sums, "│ "), "  "), func(f string) bool { return strings.TrimSpace(f) == "" })
	// Connected are two live engines, the quiet one, which does not report its decode rate, and the hostile one.
	decode := 2*viewtest.LiveSnapshot().Throughput.Decode.V + all[6].Snapshots().Throughput.Decode.V
	for i, want := range []string{"sum of 4 connected", metric.Rate(decode), "", "4", "1", metric.Count(1234)} {
		if i >= len(fields) || want != "" && strings.TrimSpace(fields[i]) != want {
			t.Fatalf("sums are %q, want %q at %d", fields, want, i)
		}
	}
	if len(fields) != 6 {
		t.Errorf("%q: there is a sum of percentiles", fields)
	}
}

// TestEnginesComeAndGo: the first one opens the overview, others come and go, and the one on the screen stays.
func TestEnginesComeAndGo(t *testing.T) {
	var now []Session
	a := openFleet(&now, false, 100, 30)
	holds(t, a, "no engine yet")
	all := sessionsOf(viewtest.SeveralEngines())
	now = all[:1]
	a.Update(tickMsg{})
	holds(t, a, "time to first token")
	now = all[:3]
	a.Update(tickMsg{})
	holds(t, a, "1/3 connected@")
	a.press("]")
	now = all[1:]
	a.Update(tickMsg{})
	if a.session.Name != all[1].Name {
		t.Errorf("shows %q", a.session.Name)
	}
	now = nil
	a.Update(tickMsg{})
	a.press("]", "[", "l", "enter", "down", "l", "l")
	checkFrame(t, a.View().Content, 100, 30)
}

// The screen sends an engine in another process only the requests that it supports.
func TestRemoteEnginesLimitTheActions(t *testing.T) {
	s := viewtest.Remote(viewtest.Links[0].Remote)
	s.Engine.Caps = event.CapTokens
	k := &calls{}
	a := open(s, theme.TrueColour, false, 120, 36)
	a.changeSession(func(x *Session) { x.Actions = k.actions() })
	a.press("p", "c")
	if a.editor.Open || len(k.cancels) != 0 {
		t.Error("the screen sent an action that the engine does not support")
	}
	s.Engine.Caps |= event.CapPrompt | event.CapCancel
	a.press("c", "p")
	if !a.editor.Open || len(k.cancels) != 1 {
		t.Error("the screen did not send an action that the engine supports")
	}
}

func TestRecordingStatusIsShown(t *testing.T) {
	for i, words := range []string{"REC 1.2", "dropped 12", "REC failed: write run.llmtop: no space left on device"} {
		a := withRecording(recordings[i].RecordStatus, 200, 45)
		holds(t, a, words)
	}
	a := withRecording(recordings[2].RecordStatus, 80, 24)
	holds(t, a, "REC failed")
	holds(t, a, "recording stopped")
}

// A click selects an engine, a second one shows it.
func TestEnginesAreClickedOn(t *testing.T) {
	all := sessionsOf(viewtest.SeveralEngines())
	a := openFleet(&all, false, 120, 36)
	a.View()
	for _, want := range []viewID{viewEngines, viewOverview} {
		a.Update(tea.MouseClickMsg{X: 20, Y: a.engines.Body.Y + 3, Button: tea.MouseLeft})
		if a.engines.Selected != 3 || a.view != want {
			t.Errorf("a click selects engine %d and shows view %d", a.engines.Selected, a.view)
		}
	}
	if a.session.Name != all[3].Name {
		t.Errorf("%q is shown", a.session.Name)
	}
}

// The list shows the capabilities of an engine.
func TestEnginesShowTheirCapabilities(t *testing.T) {
	a := open(viewtest.Dense().Snapshot(), theme.TrueColour, false, 120, 36)
	a.press("7")
	for _, words := range []string{"✓ stages", "✓ tokens", "✗ picks", "✗ device", "✗ cancel ", "✓ accepts prompts"} {
		holds(t, a, words)
	}
}
