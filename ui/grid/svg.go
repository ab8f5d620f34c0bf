package grid

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"unicode/utf8"

	"github.com/llmtop/llmtop/theme"
)

// The size of a cell in an SVG in user units, the font size, and the distance of the baseline from the upper edge.
const (
	cellWidth  = 9
	cellHeight = 18
	fontSize   = 15
	baseline   = 14
)

// SVG returns the frame as a picture in the colours of the theme, whatever the terminal supports. It has no external
// references: letters use the viewer's monospaced font, stretched to the width of their cells, and block elements are
// drawn as rectangles, so that no font leaves gaps between them.
func (g *Grid) SVG(p *theme.Palette) []byte {
	var out bytes.Buffer
	out.WriteString(SVGHead(g.W, g.H, p))
	for _, piece := range g.Pieces(p) {
		out.WriteString(piece)
	}
	out.WriteString("</svg>\n")
	return out.Bytes()
}

// SVGHead returns the start of a picture of w by h cells: the opening tag, not closed, and the background.
func SVGHead(w, h int, p *theme.Palette) string {
	w, h = w*cellWidth, h*cellHeight
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" font-family="monospace" font-size="%d">`+"\n",
		w, h, w, h, fontSize) + fmt.Sprintf(`<rect width="%d" height="%d" fill="%s"/>`+"\n", w, h, hexColour(p.RGB(theme.Background)))
}

// Pieces returns the parts of a picture: runs of cells with the same style and their places. They do not overlap, so
// their order does not matter, and equal parts of two frames have equal pieces.
func (g *Grid) Pieces(p *theme.Palette) (pieces []string) {
	var out bytes.Buffer
	for y := range g.H {
		row := g.cells[y*g.W : (y+1)*g.W]
		for from := 0; from < g.W; {
			to := run(row, from)
			out.Reset()
			g.draw(&out, row[from:to], from, y, p)
			if out.Len() > 0 {
				pieces = append(pieces, out.String())
			}
			from = to
		}
	}
	return pieces
}

// run returns the end of the run of cells that are drawn as one: of one style, and of one character if it is a block
// element.
func run(row []cell, from int) int {
	first := &row[from]
	_, _, solid := block(first.r)
	to := from + 1
	for ; to < len(row); to++ {
		c := &row[to]
		_, _, also := block(c.r)
		if c.style != first.style || solid != also || solid && c.r != first.r {
			break
		}
	}
	return to
}

// block returns the filled part of a block element, from its upper edge, in eighths of a cell; false for other
// characters.
func block(r rune) (top, height int, ok bool) {
	switch {
	case r == '▀':
		return 0, 4, true
	case r >= '▁' && r <= '█':
		n := int(r-'▁') + 1
		return 8 - n, n, true
	}
	return 0, 0, false
}

// draw writes one run of cells: background and content.
func (g *Grid) draw(out *bytes.Buffer, cells []cell, x, y int, p *theme.Palette) {
	st := cells[0].style
	fg, bg := p.RGB(st.FG), p.RGB(st.BG)
	if st.Attr&Reverse != 0 {
		fg, bg = bg, fg
	}
	left, up, w := x*cellWidth, y*cellHeight, len(cells)*cellWidth
	if bg != p.RGB(theme.Background) {
		rect(out, left, float64(up), w, cellHeight, bg)
	}
	if top, height, ok := block(cells[0].r); ok {
		rect(out, left, float64(up)+float64(top)*cellHeight/8, w, float64(height)*cellHeight/8, fg)
		return
	}
	if st.Attr&Underline == 0 { // leading and trailing spaces are invisible
		blanks := 0
		cells, blanks = trim(cells)
		left, w = left+blanks*cellWidth, len(cells)*cellWidth
	}
	if len(cells) == 0 {
		return
	}
	text, spaces := g.text(cells), ""
	if bytes.HasPrefix(text, []byte(" ")) || bytes.HasSuffix(text, []byte(" ")) || bytes.Contains(text, []byte("  ")) {
		spaces = ` xml:space="preserve"` // browsers apply it only on the text element itself
	}
	fmt.Fprintf(out, `<text x="%d" y="%d" textLength="%d" lengthAdjust="spacingAndGlyphs"%s fill="%s"%s>`,
		left, up+baseline, w, spaces, hexColour(fg), textAttributes(st.Attr))
	_ = xml.EscapeText(out, text) // a write to a buffer cannot fail
	out.WriteString("</text>\n")
}

// trim removes the spaces at both ends and returns the number at the left.
func trim(cells []cell) (words []cell, blanks int) {
	blank := func(c *cell) bool { return c.r == ' ' && c.w == 1 }
	for blanks < len(cells) && blank(&cells[blanks]) {
		blanks++
	}
	words = cells[blanks:]
	for len(words) > 0 && blank(&words[len(words)-1]) {
		words = words[:len(words)-1]
	}
	return words, blanks
}

// text returns the characters of cells.
func (g *Grid) text(cells []cell) (out []byte) {
	for i := range cells {
		switch c := &cells[i]; {
		case c.w == 0:
		case c.r < 0:
			out = append(out, g.clusters[-c.r-1]...)
		default:
			out = utf8.AppendRune(out, c.r)
		}
	}
	return out
}

func rect(out *bytes.Buffer, x int, y float64, w int, h float64, fill theme.RGB) {
	fmt.Fprintf(out, `<rect x="%d" y="%g" width="%d" height="%g" fill="%s"/>`+"\n", x, y, w, h, hexColour(fill))
}

// textAttributes returns the attributes of a cell for an SVG text element.
func textAttributes(a Attr) (out string) {
	if a&Bold != 0 {
		out += ` font-weight="bold"`
	}
	if a&Faint != 0 {
		out += ` opacity="0.6"`
	}
	if a&Underline != 0 {
		out += ` text-decoration="underline"`
	}
	return out
}

func hexColour(c theme.RGB) string { return fmt.Sprintf("#%02x%02x%02x", c.R, c.G, c.B) }
