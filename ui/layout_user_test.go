package ui

import (
	"fmt"
	"strings"
	"testing"

	"github.com/llmtop/llmtop/theme"
)

func TestLayoutsOfTheUser(t *testing.T) {
	for _, c := range []struct {
		text string
		w, h int
		want string // pane WxH+X+Y
	}{
		{"ttft", 120, 36, "TTFT 120x34+0+1"},
		{"ttft:3 itl | insights", 120, 36, "TTFT 90x17+0+1, ITL 30x17+90+1, Insights 120x17+0+18"},
		{"ttft:3 TPOT | know", 120, 36, "TTFT 90x17+0+1, ITL 30x17+90+1, Insights 120x17+0+18"},
		{"Text @3|experts machine", 100, 42, "Text 100x30+0+1, Experts 50x10+0+31, Machine 50x10+50+31"},
		{"ttft itl experts throughput", 80, 24, "TTFT 26x22+0+1, ITL 27x22+26+1, Experts 27x22+53+1"},
		{"ttft | itl | insights | text | machine", 80, 20, "TTFT 80x6+0+1, ITL 80x6+0+7, Insights 80x6+0+13"},
	} {
		l, err := ParseLayout(c.text)
		if err != nil {
			t.Fatalf("%q: %v", c.text, err)
		}
		var got []string
		for _, p := range l.arrange(c.w, c.h) {
			got = append(got, fmt.Sprintf("%s %dx%d+%d+%d", p.id, p.at.W, p.at.H, p.at.X, p.at.Y))
		}
		if s := strings.Join(got, ", "); s != c.want {
			t.Errorf("%q at %dx%d: %s, want %s", c.text, c.w, c.h, s, c.want)
		}
	}
}

func TestInvalidLayouts(t *testing.T) {
	for text, want := range map[string]string{
		"ttft | gpu": `row 2: unknown pane "gpu"`,
		"ttft ttft":  `row 1: pane "ttft" appears twice`,
		"ttft | ":    "row 2: no pane",
		"ttft:0":     `row 1: "ttft:0": a share must be a whole number from 1 to 100`,
		"ttft @x":    `row 1: "@x": a share`,
		"@2 ttft":    `row 1: "@2": put the share of the height last`,
		"":           "row 1: no pane",
		"itl:1e9 | ": `row 1: "itl:1e9": a share`,
		"itl tpot":   `row 1: pane "tpot" appears twice`,
	} {
		if _, err := ParseLayout(text); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

// The built-in layouts in every size.
func TestGoldenLayouts(t *testing.T) {
	s := liveSnapshot()
	for _, name := range Layouts() {
		if name == LayoutDefault {
			continue
		}
		for _, size := range sizes {
			a := open(s, theme.TrueColour, false, size[0], size[1])
			var err error
			if a.cfg.Layout, err = ParseLayout(name); err != nil {
				t.Fatal(err)
			}
			a.dirty = true
			golden(t, fmt.Sprintf("layout_%s_%dx%d.txt", name, size[0], size[1]), strings.TrimSuffix(a.screen(), "\n"))
		}
	}
}

func FuzzLayout(f *testing.F) {
	f.Add("ttft:2 itl | experts @3 | text insights", 120, 36)
	f.Add("router", 60, 18)
	f.Add("ttft:100 itl:1 | @ | :", 1, 1)
	s := liveSnapshot()
	f.Fuzz(func(t *testing.T, text string, w, h int) {
		w, h = max(w, -w, 1)%300, max(h, -h, 1)%100
		l, err := ParseLayout(text)
		if err != nil || w < 1 || h < 1 {
			return
		}
		a := open(s, theme.Colours16, false, w, h)
		a.cfg.Layout, a.dirty = l, true
		checkFrame(t, a.View().Content, w, h)
	})
}
