package overview

import (
	"fmt"
	"strings"
	"testing"

	"github.com/llmtop/llmtop/ui/grid"
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
		for _, p := range l.arrange(grid.Rect{Y: 1, W: c.w, H: c.h - 2}) {
			got = append(got, fmt.Sprintf("%s %dx%d+%d+%d", p.ID, p.At.W, p.At.H, p.At.X, p.At.Y))
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
