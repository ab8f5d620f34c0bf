package grid

import (
	"encoding/xml"
	"errors"
	"io"
	"strconv"
	"strings"
	"testing"

	"github.com/llmtop/llmtop/theme"
)

// element is one element of an SVG with its text.
type element struct {
	name  string
	attrs map[string]string
	words string
}

// elements parses a whole document and fails if it is not well-formed, runs scripts or fetches anything.
func elements(t *testing.T, svg []byte) (out []element) {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(string(svg)))
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatalf("%v in\n%s", err, svg)
		}
		switch x := token.(type) {
		case xml.StartElement:
			e := element{name: x.Name.Local, attrs: map[string]string{}}
			if e.name != "svg" && e.name != "rect" && e.name != "text" {
				t.Fatalf("the picture has an element %q", e.name)
			}
			for _, a := range x.Attr {
				if strings.Contains(a.Value, "url(") || a.Name.Local == "href" || strings.HasPrefix(a.Name.Local, "on") {
					t.Fatalf("the picture has %s=%q", a.Name.Local, a.Value)
				}
				e.attrs[a.Name.Local] = a.Value
			}
			out = append(out, e)
		case xml.CharData:
			if len(out) > 0 && out[len(out)-1].name == "text" {
				out[len(out)-1].words += strings.TrimSuffix(string(x), "\n")
			}
		}
	}
}

func TestSVG(t *testing.T) {
	dark := theme.Palettes()[0]
	var g Grid
	g.Reset(20, 3)
	a := g.All()
	a.Text(1, 0, Fg(theme.Bad).With(Bold), `<b> & "q" ]]>`)
	a.Text(0, 1, Fg(theme.Good).On(theme.Select), "日本e\u0301\x1b")
	a.Fill(2, 2, 3, Style{FG: theme.Heat0 + 3, BG: theme.Heat0 + 9}, '▀')
	a.Cell(6, 2, Fg(theme.Data), '▂')
	a.Text(9, 2, Fg(theme.Text).With(Reverse|Underline), " x")
	all := elements(t, g.SVG(dark))
	find := func(want element) {
		t.Helper()
		for _, e := range all {
			same := e.name == want.name && e.words == want.words
			for k, v := range want.attrs {
				same = same && e.attrs[k] == v
			}
			if same {
				return
			}
		}
		t.Errorf("there is no %+v in %+v", want, all)
	}
	colour := func(r theme.Role) string { return hexColour(dark.RGB(r)) }
	find(element{name: "svg", attrs: map[string]string{"width": "180", "height": "54"}})
	find(element{"text", map[string]string{"x": "9", "y": "14", "textLength": strconv.Itoa(13 * 9), "font-weight": "bold", "fill": colour(theme.Bad)}, `<b> & "q" ]]>`})
	find(element{"rect", map[string]string{"x": "0", "y": "18", "width": "54", "height": "18", "fill": colour(theme.Select)}, ""})
	find(element{"text", map[string]string{"textLength": "54", "fill": colour(theme.Good)}, "日本e\u0301�"})
	find(element{"rect", map[string]string{"x": "18", "y": "36", "width": "27", "height": "18", "fill": colour(theme.Heat0 + 9)}, ""})
	find(element{"rect", map[string]string{"x": "18", "y": "36", "width": "27", "height": "9", "fill": colour(theme.Heat0 + 3)}, ""})
	find(element{"rect", map[string]string{"x": "54", "y": "49.5", "height": "4.5", "fill": colour(theme.Data)}, ""})
	find(element{"text", map[string]string{"x": "81", "fill": colour(theme.Background), "text-decoration": "underline"}, " x"})
	find(element{"rect", map[string]string{"x": "81", "width": "18", "fill": colour(theme.Text)}, ""})
}

// For any text, the picture is well-formed and has the text of the frame.
func FuzzSVG(f *testing.F) {
	for _, s := range []string{"", "plain", "</text><script>alert(1)</script>", "\x00\x1b[31m\ufffe\U0010ffff\xff", "日本\u0301\u0302", "]]> &amp; ▀█▁"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		var g Grid
		g.Reset(30, 2)
		g.All().Text(0, 0, Fg(theme.Text), s)
		g.All().Text(0, 1, Fg(theme.Dim).With(Bold), "second row")
		for _, p := range theme.Palettes() {
			all := elements(t, g.SVG(p))
			if last := all[len(all)-1]; !strings.HasPrefix(last.words, "second row") {
				t.Fatalf("the last row says %q", last.words)
			}
		}
	})
}
