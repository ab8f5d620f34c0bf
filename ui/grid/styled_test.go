package grid

import (
	"slices"
	"strings"
	"testing"

	"github.com/llmtop/llmtop/theme"
)

func TestStyledReadsRolesAndAttributes(t *testing.T) {
	text := theme.Bad.Style().Bold(true).Render("bad") + theme.Bad.Style().Underline(true).Render("_") + " plain " + theme.NumRoles.Style().Faint(true).Reverse(true).Render("other") +
		"\n" + (theme.NumRoles - 1).Style().Render("hot")
	want := [][]Piece{
		{
			{Fg(theme.Bad).With(Bold), "bad"},
			{Fg(theme.Bad).With(Underline), "_"},
			{Fg(theme.Text), " plain "},
			{Fg(theme.Text).With(Faint | Reverse), "other"}, // not a role
		},
		{{Fg(theme.NumRoles - 1), "hot"}},
	}
	if got := Styled(text); !slices.EqualFunc(got, want, slices.Equal) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
	if got := Styled("\n"); len(got) != 2 {
		t.Errorf("%d lines, want 2", len(got))
	}
}

// Sequences other than styles, also unfinished ones, leave nothing on the screen.
func TestStyledDropsOtherSequences(t *testing.T) {
	for _, s := range []string{"a\x1b[2Jb", "a\x1b]8;;http://x\x07b", "a\x1b]0;title\x1b\\b", "ab\x1b[", "ab\x1b", "ab\x1b[31"} {
		var g Grid
		g.Reset(8, 1)
		g.All().Lines(Styled(s))
		if got := strings.TrimSpace(g.Plain()); got != "ab" {
			t.Errorf("%q draws %q", s, got)
		}
	}
}

func TestLinesAreClipped(t *testing.T) {
	var g Grid
	g.Reset(6, 4)
	g.Area(Rect{1, 1, 3, 2}).Lines(Styled("a日本\nb\nc"))
	if got, want := g.Plain(), "      \n a…   \n b    \n      \n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
