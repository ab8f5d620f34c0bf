package clean

import (
	"strings"
	"testing"
)

func TestMarkdown(t *testing.T) {
	for in, want := range map[string]string{
		"plain 1.5 ms":      "plain 1.5 ms",
		"a|b\nc":            "a\\|b c",
		"<img src=x>":       "&lt;img src=x&gt;",
		"@everyone":         "&#64;everyone",
		"[x](y) `z` *w*":    "\\[x\\](y) \\`z\\` \\*w\\*",
		"\x1b[31mred\u009b": "\\[31mred",
	} {
		if got := Markdown(in); got != want {
			t.Errorf("%q became %q, want %q", in, got, want)
		}
	}
	if got := Code("a`b\nc\x07"); got != "a'b c" {
		t.Errorf("code: %q", got)
	}
}

func FuzzMarkdown(f *testing.F) {
	f.Add("a|b\n<c>")
	f.Fuzz(func(t *testing.T, s string) {
		out := Markdown(s)
		if strings.ContainsAny(out, "\n\r<>\x1b") || strings.Count(out, "|") != strings.Count(out, "\\|") {
			t.Errorf("%q became %q", s, out)
		}
	})
}
