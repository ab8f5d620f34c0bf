package clean

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestText(t *testing.T) {
	for _, c := range []struct{ name, in, want string }{
		{"plain", "In the beginning", "In the beginning"},
		{"newlines", "a\nb\r\nc\rd", "a\nb\nc\nd"},
		{"tab", "a\tb", "a\tb"},
		{"colour", "a\x1b[31mred\x1b[0mb", "a\uFFFDred\uFFFDb"},
		{"title", "a\x1b]0;pwned\x07b", "a\uFFFDb"},
		{"title ended by ST", "a\x1b]0;pwned\x1b\\b", "a\uFFFDb"},
		{"clipboard", "a\x1b]52;c;UFdORUQ=\x07b", "a\uFFFDb"},
		{"clipboard by an 8-bit OSC", "a\u009d52;c;UFdORUQ=\u009cb", "a\uFFFDb"},
		{"device control", "\x1bPq#0\x1b\\b", "\uFFFDb"},
		{"8-bit CSI", "a\xc2\x9b2Jb", "a\uFFFDb"},
		{"bare 8-bit CSI", "a\x9b2Jb", "a\uFFFDb"},
		{"charset", "a\x1b(0b", "a\uFFFDb"},
		{"escape at the end", "a\x1b", "a\uFFFD"},
		{"unfinished OSC keeps the rest", "\x1b]0;no end", "\uFFFD0;no end"},
		{"bell, backspace and delete", "a\x07b\x08c\x7fd", "a\uFFFDb\uFFFDc\uFFFDd"},
		{"invalid UTF-8", "a\xffb\xe4\xb8", "a\uFFFDb\uFFFD\uFFFD"},
		{"surrogate", "a\xed\xa0\x80b", "a\uFFFD\uFFFD\uFFFDb"},
		{"bidi overrides", "a\u202ab\u202ec\u2066d\u2069e\u200ef\u200fg\u061ch", "a\uFFFDb\uFFFDc\uFFFDd\uFFFDe\uFFFDf\uFFFDg\uFFFDh"},
		{"separators", "a\u2028b\u2029c", "a\uFFFDb\uFFFDc"},
		{"hidden", "a\u200bb\ufeffc\u00add\u2060e\U000E0041f\u200dg\ufe0fh", "abcdefgh"},
		{"wide and combining", "日本語 e\u0301", "日本語 e\u0301"},
	} {
		if got := Text(c.in); got != c.want {
			t.Errorf("%s: %q became %q, want %q", c.name, c.in, got, c.want)
		}
	}
	if got := Line("a\nb\tc\r\nd\re"); got != "a b c d e" {
		t.Errorf("Line gave %q", got)
	}
}

func TestSafeTextIsNotCopied(t *testing.T) {
	in := strings.Repeat("plain 日本語 ", 50)
	if n := testing.AllocsPerRun(10, func() { Text(in); Line(in) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestNamesAreCut(t *testing.T) {
	long, most := strings.Repeat("é", MaxName+1), strings.Repeat("é", MaxName)
	for _, c := range []struct{ got, want string }{
		{Name(most), most},
		{Name(long), most + "…"},
		{Name("a\n\x1b[2Jb"), "a \uFFFDb"},
		{Quote(most), `"` + most + `"`},
		{Quote(long), `"` + most + `"…`},
		{Quote("a\n\x1b[2J\u202e\xff\""), `"a\n\x1b[2J\u202e\xff\""`},
		{Cut("abc", 2), "ab…"},
		{Cut("", 2), ""},
	} {
		if c.got != c.want {
			t.Errorf("%q, want %q", c.got, c.want)
		}
	}
	if got := Name(strings.Repeat("\x00", 3<<20)); utf8.RuneCountInString(got) != MaxName+1 {
		t.Errorf("3 MiB became %d bytes", len(got))
	}
}

func TestMarkdown(t *testing.T) {
	for in, want := range map[string]string{
		"plain 1.5 ms":            "plain 1.5 ms",
		"a|b\nc":                  "a\\|b c",
		"<img src=x>":             "&lt;img src=x&gt;",
		"@everyone":               "&#64;everyone",
		"[x](y) `z` *w*":          "\\[x\\](y) \\`z\\` \\*w\\*",
		"\x1b[31mred\u009bm":      "\uFFFDred\uFFFD",
		"\u202egnp.exe\u200b end": "\uFFFDgnp.exe end",
	} {
		if got := Markdown(in); got != want {
			t.Errorf("%q became %q, want %q", in, got, want)
		}
	}
	if got := Code("a`b\nc\x07"); got != "a'b c\uFFFD" {
		t.Errorf("code: %q", got)
	}
}

// TestWriter splits the input at any byte, also within characters, as buffers do.
func TestWriter(t *testing.T) {
	in := "日本\r\n\x1b[31mred\u009b2J\u202e\ttab\rlone\n"
	for size := 1; size <= len(in); size++ {
		var out bytes.Buffer
		w := NewWriter(&out)
		for rest := in; rest != ""; rest = rest[min(size, len(rest)):] {
			if n, err := w.Write([]byte(rest[:min(size, len(rest))])); err != nil || n != min(size, len(rest)) {
				t.Fatalf("wrote %d, %v", n, err)
			}
		}
		got := out.String()
		if !strings.HasPrefix(got, "日本\r\n\uFFFD") || !strings.HasSuffix(got, "\uFFFD\ttab\nlone\n") {
			t.Errorf("in pieces of %d bytes: %q", size, got)
		}
		safe(t, in, got)
	}
	if _, err := NewWriter(broken{}).Write([]byte("x")); err == nil {
		t.Error("an error of the output was swallowed")
	}
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errors.New("broken") }

func TestJSON(t *testing.T) {
	in := map[string]string{"a\u009b": "b\u202e\u200b\x7f\x1b\xff<\u2028\U000E0041日"}
	var out bytes.Buffer
	if err := NewEncoder(&out).Encode(in); err != nil {
		t.Fatal(err)
	}
	const want = `{"a\u009b":"b\u202e\u200b\u007f\u001b` + `\ufffd<\u2028\udb40\udc41日"}` + "\n"
	if out.String() != want {
		t.Errorf("%q, want %q", out.String(), want)
	}
	var back map[string]string
	if err := json.Unmarshal(out.Bytes(), &back); err != nil || back["a\u009b"] != strings.ToValidUTF8(in["a\u009b"], "\uFFFD") {
		t.Errorf("%q, %v", back, err)
	}
}

// safe fails the test if out is not what every output must be.
func safe(t *testing.T, in, out string) {
	t.Helper()
	if !utf8.ValidString(out) {
		t.Fatalf("%q became invalid UTF-8 %q", in, out)
	}
	for _, r := range strings.ReplaceAll(out, "\r\n", "\n") {
		if r != '\n' && r != '\t' && !Safe(r) {
			t.Fatalf("%q became %q with %U in it", in, out, r)
		}
	}
}

// hostile are the characters that a terminal obeys or that readers cannot see, by their Unicode ranges and independent
// of the code under test.
const hostile = "\x00\x01\x07\x08\x0b\x1b\x7f\u0080\u0084\u0085\u008e\u0090\u0098\u009b\u009c\u009d\u009f\u00ad\u061c\u200b\u200c\u200d\u200e\u200f" +
	"\u2028\u2029\u202a\u202b\u202c\u202d\u202e\u2060\u2061\u2064\u2066\u2067\u2068\u2069\u206a\u206f\ufe0f\ufeff\ufff9\ufffb\U000E0001\U000E007F"

func FuzzClean(f *testing.F) {
	for _, s := range []string{
		"plain", "a|b\n<c>", "\x1b[31m", "\x1b]8;;http://x\x07", "\x1b]52;c;eA==\x1b\\", "e\u0301", "日本", "\xc2\x9b", "\x9d", hostile, "👩\u200d👩", "\xf0\x9f", "a\r\n\tb\r",
	} {
		f.Add(s, uint8(3))
	}
	f.Fuzz(func(t *testing.T, in string, at uint8) {
		for _, out := range []string{Text(in), Line(in), Name(in), Quote(in), Markdown(in), Code(in)} {
			safe(t, in, out)
			if strings.ContainsAny(out, hostile) {
				t.Fatalf("%q became %q", in, out)
			}
		}
		for _, out := range []string{Line(in), Name(in), Quote(in), Markdown(in), Code(in)} {
			if strings.ContainsAny(out, "\n\t\r") {
				t.Fatalf("%q became %q, more than one line", in, out)
			}
		}
		if out := Text(in); Text(out) != out {
			t.Fatalf("%q became %q, then %q", in, out, Text(out))
		}
		if out := Markdown(in); strings.ContainsAny(out, "<>") || strings.Count(out, "|") != strings.Count(out, "\\|") {
			t.Errorf("%q became %q", in, out)
		}
		var out bytes.Buffer
		w, cut := NewWriter(&out), min(int(at), len(in))
		_, _ = w.Write([]byte(in[:cut])) // a Buffer takes everything
		_, _ = w.Write([]byte(in[cut:]))
		safe(t, in, out.String())
		checkJSON(t, in)
	})
}

// checkJSON checks that a string survives a round trip through JSON, and that the terminal's Writer changes nothing in
// it.
func checkJSON(t *testing.T, in string) {
	t.Helper()
	var doc, shown bytes.Buffer
	if err := NewEncoder(&doc).Encode(in); err != nil {
		t.Fatal(err)
	}
	safe(t, in, doc.String())
	var back string
	if err := json.Unmarshal(doc.Bytes(), &back); err != nil || back != string([]rune(in)) {
		t.Fatalf("%q became %s, then %q, %v", in, doc.Bytes(), back, err)
	}
	if _, err := NewWriter(&shown).Write(doc.Bytes()); err != nil || shown.String() != doc.String() {
		t.Fatalf("%s was shown as %q, %v", doc.Bytes(), shown.Bytes(), err)
	}
}
