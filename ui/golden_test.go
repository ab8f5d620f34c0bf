package ui

import (
	"fmt"
	"strings"
	"testing"

	"github.com/llmtop/llmtop/profiler/recording"
	"github.com/llmtop/llmtop/theme"
	"github.com/llmtop/llmtop/ui/view/viewtest"
)

// sizes are the sizes of screens in tests.
var sizes = [][2]int{{80, 24}, {120, 36}, {160, 45}, {200, 60}}

// goldenText compares the whole screen as text with testdata/<state>_<size>.txt.
func goldenText(t *testing.T, state string, a *app) {
	t.Helper()
	viewtest.Golden(t, fmt.Sprintf("%s_%dx%d.txt", state, a.w, a.h), viewtest.StripStyles(a.View().Content))
}

// goldenColours compares the whole screen with testdata/<state>_<size>.ansi.
func goldenColours(t *testing.T, state string, a *app) {
	t.Helper()
	viewtest.Golden(t, fmt.Sprintf("%s_%dx%d.ansi", state, a.w, a.h), a.View().Content)
}

// overlay opens the live session in a view with little on it, to draw something over it: a change of a view should not
// change the goldens of what may cover it.
func overlay(w, h int, ascii bool) *app {
	profile := theme.TrueColour
	if ascii {
		profile = theme.NoColour
	}
	a := open(viewtest.LiveSnapshot(), profile, ascii, w, h)
	a.show(viewOps)
	return a
}

// The overview in every colour profile, which shows all roles of a theme; the profile without colours uses ASCII.
func TestGoldenProfiles(t *testing.T) {
	for p := theme.NoColour; p < theme.NumProfiles; p++ {
		t.Run(p.String(), func(t *testing.T) {
			goldenColours(t, "profile_"+p.String(), open(viewtest.LiveSnapshot(), p, p == theme.NoColour, 120, 36))
		})
	}
}

// The overview in every other theme.
func TestGoldenThemes(t *testing.T) {
	for i, p := range theme.Palettes()[1:] {
		a := open(viewtest.LiveSnapshot(), theme.TrueColour, false, 120, 36)
		a.theme = i + 1
		a.applyTheme()
		goldenColours(t, "theme_"+p.Name, a)
	}
}

// Help, the prompt editor, and a screen too small for a view.
func TestGoldenModes(t *testing.T) {
	for name, keys := range map[string][]string{"help": {"?"}, "help_end": {"?", "end"}} {
		a := open(viewtest.LiveSnapshot(), theme.TrueColour, false, 120, 36)
		a.press(keys...)
		goldenText(t, name, a)
	}
	for name, keys := range map[string][]string{"prompt_empty": {"p"}, "prompt_suggested": {"p", "tab"}} {
		a := overlay(120, 36, false)
		a.press(keys...)
		goldenText(t, name, a)
	}
	goldenText(t, "small", open(viewtest.LiveSnapshot(), theme.TrueColour, false, 40, 10))
}

// state is a named screen.
type state struct {
	name    string
	insight string // in the pane of insights at 160x45; "": none about this state
	open    func(w, h int) *app
}

// surroundings returns the states that show around a view: links, recordings, replays and several engines.
func surroundings() (out []state) {
	for i, l := range viewtest.Links {
		s := viewtest.Remote(l.Remote)
		insight := []string{
			"", "✗ no data from unix:/run/user/1000/llmtop/4242.sock since 09:00:17", "✗ not connected to tcp:127.0.0.1:9000: connect", "",
			"✗ refused by tcp:127.0.0.1:9000: the engine speaks version 2",
		}[i]
		out = append(out, state{"link " + l.Name, insight, func(w, h int) *app { return open(s, theme.TrueColour, false, w, h) }})
	}
	for i, r := range recordings {
		insight := []string{"", "", "✗ recording stopped: write run.llmtop: no space left on device"}[i]
		out = append(out, state{r.name, insight, func(w, h int) *app { return withRecording(r.RecordStatus, w, h) }})
	}
	for st := recording.Playing; st <= recording.Ended; st++ {
		insight := []string{"", "", "✗ the recording is damaged: unreadable frames: 2, unreadable lines: 5", ""}[st]
		out = append(out, state{"replay " + st.String(), insight, func(w, h int) *app {
			p := newPlayer()
			p.State, p.Speed = st, []float64{1, 0.1, 10, 1000}[st]
			switch st {
			case recording.Seeking:
				p.Damage, p.MissingSegments, p.Undecoded, p.TotalsSince = recording.Damage{Frames: 2, Bytes: 4096}, 1, 5, p.Now/2
			case recording.Ended:
				p.Now = p.End
			}
			return openReplay(p, w, h)
		}})
	}
	all, none := sessionsOf(viewtest.SeveralEngines()), []Session(nil)
	return append(
		out,
		state{"engines", "", func(w, h int) *app { return openFleet(&all, false, w, h) }},
		state{"one of several engines", "✗ not connected to tcp:127.0.0.1:9000: connect", func(w, h int) *app {
			a := openFleet(&all, false, w, h)
			a.press("enter", "]", "]")
			return a
		}},
		state{"engines in ASCII", "", func(w, h int) *app { return openFleet(&all, true, w, h) }},
		state{"paused", "", func(w, h int) *app {
			a := open(viewtest.LiveSnapshot(), theme.TrueColour, false, w, h)
			a.press("space")
			return a
		}},
		state{"no engines", "", func(w, h int) *app { return openFleet(&none, false, w, h) }},
	)
}

// The rows around the view, with colours: missing data is red. The insights show why.
func TestGoldenSurroundings(t *testing.T) {
	var out strings.Builder
	for _, st := range surroundings() {
		for _, size := range [][2]int{{80, 24}, {160, 45}} {
			a := st.open(size[0], size[1])
			rows := strings.Split(a.View().Content, "\n")
			fmt.Fprintf(&out, "%s, %dx%d\n%s\n", st.name, size[0], size[1], rows[0])
			if a.track.W > 0 {
				out.WriteString(rows[len(rows)-2] + "\n")
			}
			out.WriteString(rows[len(rows)-1] + "\n")
			if size[0] == 160 {
				holds(t, a, st.insight)
			}
		}
	}
	viewtest.Golden(t, "surroundings.ansi", strings.TrimSuffix(out.String(), "\n"))
}
