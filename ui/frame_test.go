package ui

import (
	"os"
	"testing"

	tea "charm.land/bubbletea/v2"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/theme"
)

// open makes the model over one snapshot of a scene, w by h cells.
func open(s *store.Snapshot, profile theme.Profile, ascii bool, w, h int) *app {
	a := newApp(Config{
		Snapshots: func() *store.Snapshot { return s }, Profile: profile, ASCII: ascii,
		Actions: Actions{
			Prompt: func(string, string) error { return nil }, Cancel: func(event.RequestID) error { return nil },
			SetPace: func(float64) error { return nil },
		},
		Prompts: []SuggestedPrompt{{"scripture", promptText}, {"code", "func main() {"}},
	})
	a.Update(tea.WindowSizeMsg{Width: w, Height: h})
	return a
}

func TestShow(t *testing.T) {
	var w, h, th, prof, ascii int
	scene, keys := "live", ""
	w, h, prof = 160, 45, 3
	for _, p := range []struct {
		n string
		v *int
	}{{"W", &w}, {"H", &h}, {"TH", &th}, {"PROF", &prof}, {"ASCII", &ascii}} {
		if e := os.Getenv("SHOW_" + p.n); e != "" {
			n := 0
			for _, c := range e {
				n = n*10 + int(c-'0')
			}
			*p.v = n
		}
	}
	if e := os.Getenv("SHOW_SCENE"); e != "" {
		scene = e
	}
	keys = os.Getenv("SHOW_KEYS")
	s := map[string]func() *scene_{"live": live, "loading": loading, "ready": ready, "failed": failed, "dense": dense, "huge": huge}[scene]()
	a := open(s.drain(), theme.Profile(prof), ascii > 0, w, h)
	a.theme = th
	a.dress()
	for _, k := range keys {
		code := k
		text := string(k)
		switch k {
		case 'E':
			code, text = tea.KeyEnter, ""
		case 'T':
			code, text = tea.KeyTab, ""
		case 'W':
			a.onWheel(tea.MouseWheelDown)
			continue
		}
		a.Update(tea.KeyPressMsg{Code: code, Text: text})
	}
	a.toast = ""
	os.WriteFile(os.Getenv("SHOW_OUT"), []byte(a.View().Content+"\n"), 0o644)
}

type scene_ = scene
