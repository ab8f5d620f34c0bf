package grid

import (
	"unicode/utf8"

	"github.com/llmtop/llmtop/theme"
)

// Encode returns the frame as text: rows separated by newlines, each starting and ending without style.
func (g *Grid) Encode(skin *theme.Skin) string {
	g.out = g.out[:0]
	for y := range g.H {
		if y > 0 {
			g.out = append(g.out, '\n')
		}
		g.row(g.cells[y*g.W:(y+1)*g.W], skin)
	}
	return string(g.out)
}

// row writes one row.
func (g *Grid) row(cells []cell, skin *theme.Skin) {
	var p pen
	g.write(cells, skin, &p)
	g.lift(&p)
}

// pen is the style in which a terminal writes. The zero value has none.
type pen struct {
	style  Style
	set    bool // style was set
	styled bool // it needs a reset
}

// lift resets the style.
func (g *Grid) lift(p *pen) {
	if p.styled {
		g.out = append(g.out, "\x1b[m"...)
	}
}

// write writes cells, with a style sequence only where the style changes.
func (g *Grid) write(cells []cell, skin *theme.Skin, p *pen) {
	for i := range cells {
		c := &cells[i]
		if c.w == 0 {
			continue
		}
		if st := c.style; !p.set || st != p.style && !(c.r == ' ' && sameBlank(st, p.style)) {
			p.styled = g.sgr(p.style, st, !p.set, p.styled, skin)
			p.style, p.set = st, true
		}
		switch {
		case skin.Glyphs.ASCII && (c.r < 0 || c.r >= utf8.RuneSelf):
			for range c.w {
				g.out = append(g.out, ascii(c.r))
			}
		case c.r < 0:
			g.out = append(g.out, g.clusters[-c.r-1]...)
		default:
			g.out = utf8.AppendRune(g.out, c.r)
		}
	}
}

// ascii returns a replacement on terminals limited to ASCII: units and common punctuation stay readable.
func ascii(r rune) byte {
	switch r {
	case 'µ':
		return 'u'
	case '×':
		return 'x'
	case '°', '\u00a0':
		return ' '
	case '‘', '’':
		return '\''
	case '“', '”':
		return '"'
	case '–', '—', '─':
		return '-'
	case '·':
		return '.'
	case '✓':
		return 'y'
	case '✗':
		return 'x'
	case '→':
		return '>'
	case '²':
		return '2'
	case '│':
		return '|'
	case '…':
		return '~'
	}
	return '?'
}

// sameBlank reports whether a space looks the same in both styles: its foreground is invisible.
func sameBlank(a, b Style) bool {
	const shows = Underline | Reverse
	return a.BG == b.BG && a.Attr&shows == 0 && b.Attr&shows == 0
}

// sgr writes the difference between two styles and reports whether the row needs a reset at its end.
func (g *Grid) sgr(from, to Style, first, styled bool, skin *theme.Skin) bool {
	start := len(g.out)
	g.out = append(g.out, "\x1b["...)
	body := len(g.out)
	dropped := from.Attr&^to.Attr != 0
	if dropped && styled {
		g.out = append(g.out, '0')
		from = Style{}
	}
	add := to.Attr &^ from.Attr
	if first || dropped && styled {
		add = to.Attr
	}
	for bit, code := range [...]byte{'1', '2', '4', '7'} {
		if add&(1<<bit) != 0 {
			g.param(body, code)
		}
	}
	whole := first || dropped && styled
	if fg := skin.Foreground(to.FG); fg != "" && (whole || to.FG != from.FG) {
		g.params(body, fg)
	}
	if bg := skin.Background(to.BG); bg != "" && (whole || to.BG != from.BG) {
		g.params(body, bg)
	}
	if len(g.out) == body {
		g.out = g.out[:start]
		return styled
	}
	g.out = append(g.out, 'm')
	return to.Attr != 0 || skin.Colour()
}

func (g *Grid) param(body int, code byte) {
	if len(g.out) > body {
		g.out = append(g.out, ';')
	}
	g.out = append(g.out, code)
}

func (g *Grid) params(body int, codes string) {
	if len(g.out) > body {
		g.out = append(g.out, ';')
	}
	g.out = append(g.out, codes...)
}

// Plain returns the frame as text without styles.
func (g *Grid) Plain() string {
	out := make([]byte, 0, len(g.cells)+g.H)
	for y := range g.H {
		out = append(out, g.text(g.cells[y*g.W:(y+1)*g.W])...)
		out = append(out, '\n')
	}
	return string(out)
}
