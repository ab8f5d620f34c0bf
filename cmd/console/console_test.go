package console

import (
	"bytes"
	"errors"
	"strings"
	"testing"
)

func TestOverwriteCleans(t *testing.T) {
	var out bytes.Buffer
	New(&out, true).Overwrite("%s", "a\x1b[2J\nb\u009b")
	if want := "\r\x1b[Ka\uFFFD b\uFFFD"; out.String() != want {
		t.Errorf("%q, want %q", out.String(), want)
	}
}

func TestLongErrorsAreCut(t *testing.T) {
	var out bytes.Buffer
	was := Err
	Err = New(&out, false)
	defer func() { Err = was }()
	PrintError(errors.New("read model: " + strings.Repeat("é", 3<<20)))
	if n := len([]rune(out.String())); n != len("llmtop: ")+maxError+len("…\n")-2 || !strings.HasSuffix(out.String(), "é…\n") {
		t.Errorf("%d characters: %.100q", n, out.String())
	}
}
