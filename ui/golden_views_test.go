package ui

import (
	"fmt"
	"strings"
	"testing"

	"github.com/llmtop/llmtop/theme"
)

// Each view with a crowd of requests, in every size; the poorest profile is ASCII.
func TestGoldenViews(t *testing.T) {
	s := crowdSnapshots(5000)
	for v := viewRequests; v < numTabs; v++ {
		for _, size := range sizes {
			a := open(s, theme.TrueColour, false, size[0], size[1])
			a.show(v)
			golden(t, fmt.Sprintf("view_%s_%dx%d.ansi", strings.ToLower(tabNames[v]), size[0], size[1]), a.View().Content)
		}
		for p := theme.NoColour; p < theme.TrueColour; p++ {
			a := open(s, p, p == theme.NoColour, 120, 36)
			a.show(v)
			golden(t, fmt.Sprintf("view_%s_120x36_%s.ansi", strings.ToLower(tabNames[v]), p), a.View().Content)
		}
	}
}

// What the table of requests looks like as it is used.
func TestGoldenTable(t *testing.T) {
	for _, c := range []struct {
		name string
		n    int
		keys string
	}{
		{"one", 1, ""},
		{"twenty", 20, "2jj"},
		{"sorted", 5000, ">>>>>>>"},
		{"filtered", 5000, "/stalled group=adapter-a"},
		{"filter_wrong", 5000, "/ttft>5"},
		{"filter_empty", 5000, "/gen>1M"},
		{"pinned", 5000, "jjjjG"},
	} {
		a := open(crowdSnapshots(c.n), theme.TrueColour, false, 120, 36)
		a.press("2")
		a.View()
		for _, key := range strings.Split(c.keys, "") {
			a.press(key)
			a.View()
		}
		golden(t, "requests_"+c.name+".txt", strings.TrimSuffix(a.screen(), "\n"))
	}
}
