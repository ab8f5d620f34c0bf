package grid

import (
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/llmtop/llmtop/theme"
	"github.com/llmtop/llmtop/ui/sanitize"
)

// emulator is a terminal that handles cursor moves and character widths and ignores styles.
type emulator struct {
	cells [][]string // "": the right half of a wide character
	x, y  int
}

func (p *emulator) write(text string) {
	for len(text) > 0 {
		if rest, ok := strings.CutPrefix(text, "\x1b["); ok {
			end := strings.IndexAny(rest, "Hm")
			if rest[end] == 'H' {
				row, col, _ := strings.Cut(rest[:end], ";")
				p.y, _ = strconv.Atoi(row)
				p.x, _ = strconv.Atoi(col)
				p.x, p.y = p.x-1, p.y-1
			}
			text = rest[end+1:]
			continue
		}
		r, n := utf8.DecodeRuneInString(text)
		text = text[n:]
		if w := sanitize.Width(r); w == 0 {
			at := p.x - 1
			for p.cells[p.y][at] == "" {
				at--
			}
			p.cells[p.y][at] += string(r)
		} else {
			p.put(string(r), w)
		}
	}
}

// put writes a character and blanks the other half of a wide one that it covers in part.
func (p *emulator) put(c string, w int) {
	row := p.cells[p.y]
	if row[p.x] == "" {
		row[p.x-1] = " "
	}
	if end := p.x + w; end < len(row) && row[end] == "" {
		row[end] = " "
	}
	row[p.x] = c
	if w == 2 {
		row[p.x+1] = ""
	}
	p.x += w
}

func (p *emulator) text() (out string) {
	for _, row := range p.cells {
		out += strings.Join(row, "") + "\n"
	}
	return out
}

// Writing only the changes reproduces every frame, with wide and combined characters too.
func TestChangesMakeTheFrame(t *testing.T) {
	const w, h = 40, 4
	rng := rand.New(rand.NewPCG(3, 5))
	skin := theme.NewSkin(theme.Palettes()[0], theme.TrueColour, theme.Unicode)
	words := []string{"x", "日本語", "e\u0301", "a long run of words", " ", "ö日", "  9.5 ms"}
	p := &emulator{cells: make([][]string, h)}
	for y := range p.cells {
		p.cells[y] = strings.Split(strings.Repeat(" ", w), "")
	}
	var g, before Grid
	g.Reset(w, h)
	p.write(string(g.Changes(nil, skin)))
	for range 2000 {
		before.Copy(&g)
		for range rng.IntN(4) {
			g.All().Text(rng.IntN(w), rng.IntN(h), Fg(theme.Role(rng.IntN(4))), words[rng.IntN(len(words))])
		}
		p.write(string(g.Changes(&before, skin)))
		if got, want := p.text(), g.Plain(); got != want {
			t.Fatalf("the terminal shows\n%s\nand the frame is\n%s", got, want)
		}
	}
	before.Copy(&g)
	if same := g.Changes(&before, skin); len(same) != 0 {
		t.Errorf("the same frame again is %q", same)
	}
	g.All().Cell(w-1, h-1, Fg(theme.Bad), 'z')
	if one := g.Changes(&before, skin); len(one) > 60 {
		t.Errorf("one cell takes %d bytes: %q", len(one), one)
	}
}
