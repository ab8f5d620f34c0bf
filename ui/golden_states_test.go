package ui

import (
	"fmt"
	"strings"
	"testing"

	"github.com/llmtop/llmtop/profiler/recording"
	"github.com/llmtop/llmtop/theme"
	"github.com/llmtop/llmtop/ui/view/viewtest"
)

// surroundings returns the states of headers, progress lines and the list of engines.
func surroundings() (out []state) {
	for _, l := range viewtest.Links {
		s := viewtest.Remote(l.Remote)
		out = append(out, state{"link_" + l.Name, func(w, h int) *app { return open(s, theme.TrueColour, false, w, h) }})
	}
	for _, r := range recordings {
		out = append(out, state{r.name, func(w, h int) *app { return withRecording(r.RecordStatus, w, h) }})
	}
	for st := recording.Playing; st <= recording.Ended; st++ {
		out = append(out, state{"replay_" + st.String(), func(w, h int) *app {
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
	all := sessionsOf(viewtest.SeveralEngines())
	out = append(out, state{"engines", func(w, h int) *app {
		a := openFleet(&all, false, w, h)
		a.press("down", "down")
		return a
	}}, state{"engines_one", func(w, h int) *app {
		a := openFleet(&all, false, w, h)
		a.press("enter", "]", "]")
		return a
	}}, state{"engines_ascii", func(w, h int) *app { return openFleet(&all, true, w, h) }})
	return append(out, state{"engines_none", func(w, h int) *app {
		var none []Session
		return openFleet(&none, false, w, h)
	}})
}

// state is a named screen.
type state struct {
	name string
	open func(w, h int) *app
}

func TestGoldenSurroundings(t *testing.T) {
	var tops strings.Builder
	for _, st := range surroundings() {
		for _, size := range [][2]int{{80, 24}, {160, 45}} {
			a := st.open(size[0], size[1])
			viewtest.Golden(t, fmt.Sprintf("%s_%dx%d.txt", st.name, size[0], size[1]), strings.TrimSuffix(a.screen(), "\n"))
			top, _, _ := strings.Cut(a.View().Content, "\n")
			tops.WriteString(top + "\n")
		}
	}
	viewtest.Golden(t, "headers.ansi", strings.TrimSuffix(tops.String(), "\n")) // with colours: missing data is red
}
