package grid

import (
	"image/color"
	"strings"

	uv "github.com/charmbracelet/ultraviolet"
	"github.com/charmbracelet/x/ansi"

	"github.com/llmtop/llmtop/theme"
	"github.com/llmtop/llmtop/ui/sanitize"
)

// Styled parses text of Lip Gloss with styles of theme.Role.Style into lines for Area.Lines. It is slow: keep the lines.
func Styled(s string) (lines [][]Piece) {
	p := ansi.NewParser()
	var pen uv.Style
	for text := range strings.SplitSeq(s, "\n") {
		var line []Piece
		for len(text) > 0 {
			if words, _, _ := strings.Cut(text, "\x1b"); words != "" {
				line = append(line, Piece{styleOf(&pen), sanitize.Line(words)})
				text = text[len(words):]
				continue
			}
			sequence, _, n, _ := ansi.DecodeSequence(text, ansi.NormalState, p)
			if ansi.HasCsiPrefix(sequence) && p.Command() == 'm' {
				uv.ReadStyle(p.Params(), &pen)
			}
			text = text[n:]
		}
		lines = append(lines, line)
	}
	return lines
}

// attrs are the attributes of cells by those of parsed text.
var attrs = map[uint8]Attr{uv.AttrBold: Bold, uv.AttrFaint: Faint, uv.AttrReverse: Reverse}

func styleOf(pen *uv.Style) Style {
	st := Style{FG: roleOf(pen.Fg, theme.Text), BG: roleOf(pen.Bg, theme.Background)}
	for from, to := range attrs {
		if pen.Attrs&from != 0 {
			st.Attr |= to
		}
	}
	if pen.Underline != uv.UnderlineNone {
		st.Attr |= Underline
	}
	return st
}

// roleOf returns the role that a colour stands for; other colours do not belong to a theme.
func roleOf(c color.Color, otherwise theme.Role) theme.Role {
	if i, ok := c.(ansi.IndexedColor); ok && int(i) < int(theme.NumRoles) {
		return theme.Role(i)
	}
	return otherwise
}

// Lines draws styled lines from the top of the area.
func (a Area) Lines(lines [][]Piece) {
	for y, pieces := range lines[:min(len(lines), a.H)] {
		l := a.Line(0, y)
		for _, p := range pieces {
			l.Put(p.Style, p.Words)
		}
	}
}
