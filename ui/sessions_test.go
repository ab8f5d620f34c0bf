package ui

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/profiler/trace"
	"github.com/llmtop/llmtop/theme"
)

// remote is the live session as one of an engine elsewhere whose connection is as given.
func remote(r event.Remote) *store.Snapshot {
	s := *liveSnapshot()
	r.Since = s.Now - event.Time(75*time.Second)
	s.Engine.Remote = r
	s.Engine.Caps |= event.CapCancel
	return &s
}

// links are the states of a connection, and what is counted on it.
var links = []struct {
	name string
	event.Remote
}{
	{"connected", event.Remote{Address: "unix:/run/user/1000/llmtop/4242.sock", Link: event.LinkConnected}},
	{"stale", event.Remote{Address: "unix:/run/user/1000/llmtop/4242.sock", Link: event.LinkStale}},
	{"disconnected", event.Remote{
		Address: "tcp:127.0.0.1:9000", Link: event.LinkDisconnected, Why: "connect to 127.0.0.1:9000: connection refused", Missing: 7, Garbage: 3,
	}},
	{"restarted", event.Remote{Address: "tcp:127.0.0.1:9000", Link: event.LinkConnected, Restarts: 2, Missing: -4}},
	{"refused", event.Remote{Address: "tcp:127.0.0.1:9000", Link: event.LinkRefused, Why: "the engine speaks version 2 of the protocol, llmtop 1"}},
}

// severalEngines are sessions in every state of a connection, with names from outside.
func severalEngines() []Session {
	var out []Session
	for _, l := range links {
		s := remote(l.Remote)
		out = append(out, Session{Name: l.name + "@" + l.Address, Snapshots: func() *store.Snapshot { return s }})
	}
	quiet := *dense().drain()
	quiet.Engine.Remote = event.Remote{Address: "unix:quiet", Link: event.LinkConnected}
	quiet.Engine.Caps = event.CapTokens
	quiet.Throughput.Decode = event.Absent(event.NotReported)
	evil := hostile().drain()
	return append(out, Session{Name: "quiet", Snapshots: func() *store.Snapshot { return &quiet }},
		Session{Name: "\x1b[31mevil\r\n日本語", Snapshots: func() *store.Snapshot { return evil }})
}

// openFleet makes the model over several engines; the test may change which.
func openFleet(sessions *[]Session, ascii bool, w, h int) *app {
	profile := theme.TrueColour
	if ascii {
		profile = theme.NoColour
	}
	a := newApp(Config{Sessions: func() []Session { return *sessions }, Profile: profile, ASCII: ascii})
	a.save = kept
	a.Update(tea.WindowSizeMsg{Width: w, Height: h})
	return a
}

// withRecording is the live session while it is recorded.
func withRecording(s trace.RecordStatus, w, h int) *app {
	a := open(liveSnapshot(), theme.TrueColour, false, w, h)
	a.cfg.Recording = func() (trace.RecordStatus, bool) { return s, true }
	a.status()
	return a
}

// recordings are the ways that a recording goes.
var recordings = []struct {
	name string
	trace.RecordStatus
}{
	{"recording", trace.RecordStatus{Events: 40000, Bytes: 1_234_567}},
	{"recording_lossy", trace.RecordStatus{Bytes: 1_234_567, Lost: event.Lost{event.KindToken: 12}}},
	{"recording_failed", trace.RecordStatus{Bytes: 1_234_567, Err: errors.New("write run.llmtop: no space left on device\x1b[2J")}},
}

func TestEnginesAreChosenFromTheList(t *testing.T) {
	all := severalEngines()
	a := openFleet(&all, false, 120, 36)
	if a.view != viewEngines {
		t.Fatal("several engines do not begin with the list")
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
		t.Errorf("the engines do not come round: %q", a.session.Name)
	}
	a.press("l")
	if a.view != viewEngines || a.engines.selected != 6 {
		t.Error("l does not open the list at the engine that is shown")
	}
	a.press("l")
	if a.view != viewOverview {
		t.Error("l does not close the list")
	}
}

// Of engines that are not connected the sums take nothing but what they have lost; percentiles have no sum.
func TestSumsOfEngines(t *testing.T) {
	all := severalEngines()
	a := openFleet(&all, false, 160, 45)
	sums := ""
	for _, line := range strings.Split(a.screen(), "\n") {
		if strings.Contains(line, "sum of") {
			sums = line
		}
	}
	fields := slices.DeleteFunc(strings.Split(strings.Trim(sums, "│ "), "  "), func(f string) bool { return strings.TrimSpace(f) == "" })
	// Connected are two live engines, the quiet one, which does not tell of its decoding, and the hostile one.
	decode := 2*liveSnapshot().Throughput.Decode.V + all[6].Snapshots().Throughput.Decode.V
	for i, want := range []string{"sum of 4 connected", metric.Rate(decode), "", "4", "1", metric.Count(1234)} {
		if i >= len(fields) || want != "" && strings.TrimSpace(fields[i]) != want {
			t.Fatalf("sums are %q, want %q at %d", fields, want, i)
		}
	}
	if len(fields) != 6 {
		t.Errorf("%q: there is a sum of percentiles", fields)
	}
}

// Engines may come and go; the one on show stays.
func TestEnginesComeAndGo(t *testing.T) {
	var now []Session
	a := openFleet(&now, false, 100, 30)
	holds(t, a, "no engine yet")
	all := severalEngines()
	now = all[:1]
	a.Update(tickMsg{})
	holds(t, a, "1 engine ")
	a.press("enter")
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

// An engine in another process is asked only for what it offers.
func TestRemoteEnginesOfferTheirActions(t *testing.T) {
	s := remote(links[0].Remote)
	s.Engine.Caps = event.CapTokens
	k := &asked{}
	a := open(s, theme.TrueColour, false, 120, 36)
	a.session.Actions = k.actions()
	a.press("p", "c")
	if a.editor.open || len(k.cancels) != 0 {
		t.Error("an engine was asked for what it does not offer")
	}
	s.Engine.Caps |= event.CapPrompt | event.CapCancel
	a.press("c", "p")
	if !a.editor.open || len(k.cancels) != 1 {
		t.Error("an engine was not asked for what it offers")
	}
}

func TestRecordingIsTold(t *testing.T) {
	for i, words := range []string{"REC 1.2", "lost 12", "REC failed: write run.llmtop: no space left on device"} {
		a := withRecording(recordings[i].RecordStatus, 200, 45)
		holds(t, a, words)
	}
	a := withRecording(recordings[2].RecordStatus, 80, 24)
	holds(t, a, "REC failed")
	holds(t, a, "the recording has ended")
}

// A click chooses an engine, a second one shows it.
func TestEnginesAreClickedOn(t *testing.T) {
	all := severalEngines()
	a := openFleet(&all, false, 120, 36)
	a.View()
	for _, want := range []view{viewEngines, viewOverview} {
		a.Update(tea.MouseClickMsg{X: 20, Y: a.engines.at.At.Y + 3, Button: tea.MouseLeft})
		if a.engines.selected != 3 || a.view != want {
			t.Errorf("a click selects engine %d and shows view %d", a.engines.selected, a.view)
		}
	}
	if a.session.Name != all[3].Name {
		t.Errorf("%q is shown", a.session.Name)
	}
}

// The list tells what an engine can tell and do.
func TestEnginesTellTheirCapabilities(t *testing.T) {
	a := open(dense().drain(), theme.TrueColour, false, 120, 36)
	a.press("7")
	for _, words := range []string{"✓ stages", "✓ tokens", "✗ picks", "✗ device", "✗ cancels", "✓ takes prompts"} {
		holds(t, a, words)
	}
}
