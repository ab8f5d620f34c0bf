package cast

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/llmtop/llmtop/theme"
	"github.com/llmtop/llmtop/ui/grid"
)

// shown is the animation and visibility of a text's group.
type shown struct {
	animation, visibility string
}

// filmOf parses a film. It fails if the film is not well-formed or has scripts or references.
func filmOf(t *testing.T, svg []byte) (texts map[string]shown, style string) {
	t.Helper()
	texts = map[string]shown{}
	var in []string
	var group shown
	for d := xml.NewDecoder(bytes.NewReader(svg)); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return texts, style
		}
		if err != nil {
			t.Fatal(err)
		}
		switch x := token.(type) {
		case xml.StartElement:
			in = append(in, x.Name.Local)
			if !strings.Contains(" svg style g rect text ", " "+x.Name.Local+" ") {
				t.Fatalf("there is a %s", x.Name.Local)
			}
			for _, a := range x.Attr {
				switch {
				case strings.Contains(a.Value, "url(") || a.Name.Local == "href" || strings.HasPrefix(a.Name.Local, "on"):
					t.Fatalf("there is %s=%q", a.Name.Local, a.Value)
				case x.Name.Local == "g" && a.Name.Local == "class":
					group = shown{animation: a.Value}
				case x.Name.Local == "g" && a.Name.Local == "visibility":
					group.visibility = a.Value
				}
			}
		case xml.EndElement:
			in = in[:len(in)-1]
		case xml.CharData:
			switch in := append([]string{""}, in...); in[len(in)-1] {
			case "style":
				style += string(x)
			case "text":
				texts[string(x)] = group
			}
		}
	}
}

// seen returns the times in ms at which an animation shows or hides its group; nil if it is always visible.
func seen(t *testing.T, style, animation string, lasts float64) (times []int) {
	t.Helper()
	rule := regexp.MustCompile(`@keyframes ` + animation + ` \{(.*)\}\n`).FindStringSubmatch(style)
	if rule == nil {
		return nil
	}
	for _, m := range regexp.MustCompile(`([\d.]+)%\{visibility:(\w+)\}`).FindAllStringSubmatch(rule[1], -1) {
		at, err := strconv.ParseFloat(m[1], 64)
		if err != nil {
			t.Fatal(err)
		}
		if ms := int(at*lasts*10 + 0.5); ms > 0 || m[2] == "visible" {
			times = append(times, ms)
		}
	}
	return times
}

// TestFilm checks that each piece is stored once with all its times, and that the last frame is the still image.
func TestFilm(t *testing.T) {
	var out bytes.Buffer
	film := NewFilm(&out)
	skin := theme.NewSkin(theme.Palettes()[0], theme.TrueColour, theme.Unicode)
	for i := range 40 { // a tenth of a second each
		var g grid.Grid
		g.Reset(30, 3)
		g.All().Text(0, 0, grid.Fg(theme.Text), "always")
		if i/10%2 == 1 {
			g.All().Text(2, 1, grid.Fg(theme.Good), "odd <second>")
		}
		g.All().Text(1, 2, grid.Fg(theme.Dim), fmt.Sprint("at ", i/10))
		g.All().Text(20, 2, grid.Fg(theme.Dim), fmt.Sprint("frame ", i))
		if err := film.Frame(time.Duration(i)*100*time.Millisecond, &g, skin); err != nil {
			t.Fatal(err)
		}
	}
	if err := film.Close(4 * time.Second); err != nil {
		t.Fatal(err)
	}
	texts, style := filmOf(t, out.Bytes())
	for _, c := range []struct {
		text, visibility string
		times            []int
	}{
		{"always", "", nil},
		{"odd <second>", "", []int{1000, 2000, 3000}},
		{"at 0", "hidden", []int{0, 1000}},
		{"at 1", "hidden", []int{1000, 2000}},
		{"at 3", "", []int{3000}},
		{"frame 20", "hidden", []int{2000, 2500}},
		{"frame 39", "", []int{3900}},
	} {
		got, ok := texts[c.text]
		if !ok || strings.Count(out.String(), strings.ReplaceAll(strings.ReplaceAll(c.text, "<", "&lt;"), ">", "&gt;")) != 1 {
			t.Errorf("%q is not in the film once:\n%s", c.text, out.String())
		}
		if times := seen(t, style, got.animation, 4.4); fmt.Sprint(times) != fmt.Sprint(c.times) || got.visibility != c.visibility {
			t.Errorf("%q is visible at %v and %q without animation, want %v and %q", c.text, times, got.visibility, c.times, c.visibility)
		}
	}
	if _, ok := texts["frame 21"]; ok {
		t.Error("there is more than one frame per half second")
	}
	if !strings.Contains(style, "animation: 4.40s step-end infinite") || !strings.Contains(style, "prefers-reduced-motion") {
		t.Errorf("the style is %s", style)
	}
}
