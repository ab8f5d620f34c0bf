package sanitize

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"

	"github.com/llmtop/llmtop/profiler/clean"
)

func TestText(t *testing.T) {
	for _, c := range []struct{ name, in, want string }{
		{"plain", "In the beginning", "In the beginning"},
		{"newlines", "a\nb\r\nc\rd", "a\nb\nc\nd"},
		{"tab", "a\tb", "a    b"},
		{"colour", "a\x1b[31mred\x1b[0mb", "a\uFFFDred\uFFFDb"},
		{"title", "a\x1b]0;pwned\x07b", "a\uFFFDb"},
		{"title ended by ST", "a\x1b]0;pwned\x1b\\b", "a\uFFFDb"},
		{"device control", "\x1bPq#0\x1b\\b", "\uFFFDb"},
		{"8-bit CSI", "a\xc2\x9b2Jb", "a\uFFFDb"},
		{"bare 8-bit CSI", "a\x9b2Jb", "a\uFFFDb"},
		{"charset", "a\x1b(0b", "a\uFFFDb"},
		{"unfinished OSC keeps the rest", "\x1b]0;no end", "\uFFFD0;no end"},
		{"bell and delete", "a\x07b\x7fc", "a\uFFFDb\uFFFDc"},
		{"invalid UTF-8", "a\xffb\xe4\xb8", "a\uFFFDb\uFFFD\uFFFD"},
		{"bidi override", "a\u202eb\u2066c", "a\uFFFDb\uFFFDc"},
		{"zero width", "a\u200bb\ufeffc", "abc"},
		{"wide", "日本語", "日本語"},
		{"combining", "e\u0301le\u0300ve", "e\u0301le\u0300ve"},
		{"too many marks", "e\u0301\u0302\u0303\u0304x", "e\u0301\u0302x"},
		{"emoji with selector", "\u2764\ufe0f!", "\u2764!"},
		{"lone mark", "\u0301a", "\uFFFDa"},
	} {
		if got := Text(c.in); got != c.want {
			t.Errorf("%s: %q became %q, want %q", c.name, c.in, got, c.want)
		}
	}
	if got := Line("a\nb\tc\r\nd"); got != "a b c d" {
		t.Errorf("Line gave %q", got)
	}
}

func TestPartialDropsCutEnds(t *testing.T) {
	whole := "日本語"
	if got := Partial(whole[1:len(whole)-1], true); got != "本" {
		t.Errorf("got %q", got)
	}
	if got := Partial(whole, true); got != whole {
		t.Errorf("got %q", got)
	}
}

func TestPlainTextIsNotCopied(t *testing.T) {
	in := strings.Repeat("plain ", 50)
	if n := testing.AllocsPerRun(10, func() { Text(in) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// check checks that an output is valid UTF-8 without control codes, and has the same width by every measure.
func check(t *testing.T, in, out string) {
	t.Helper()
	if !utf8.ValidString(out) {
		t.Fatalf("%q became invalid UTF-8 %q", in, out)
	}
	for _, r := range out {
		if r != '\n' && !clean.Safe(r) {
			t.Fatalf("%q became %q with %U in it", in, out, r)
		}
	}
	for _, line := range strings.Split(out, "\n") {
		if w, a := StringWidth(line), ansi.StringWidthWc(line); w != a {
			t.Fatalf("%q: %q is %d or %d wide", in, line, w, a)
		}
	}
}

func FuzzText(f *testing.F) {
	for _, s := range []string{
		"plain", "\x1b[31m", "\x1b]8;;http://x\x07", "e\u0301", "日本", "\xc2\x9b", "\u202e", "👩\u200d👩", "🇬🇧", "\xf0\x9f", "a\r\n\tb", "ก็", "नमस्ते",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, in string) {
		whole := Text(in)
		check(t, in, whole)
		check(t, in, Line(in))
		check(t, in, Partial(in, true))
		if strings.Contains(Line(in), "\n") {
			t.Fatal("Line kept a newline")
		}
	})
}
