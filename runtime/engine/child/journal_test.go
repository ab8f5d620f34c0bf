package child

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/llmtop/llmtop/profiler/event"
)

// read returns a journal of the given outputs.
func read(sink event.Sink, outputs ...string) *journal {
	j := &journal{now: func() event.Time { return 1 }}
	j.setSink(sink)
	for _, o := range outputs {
		s := j.stream(nil)
		for _, piece := range []string{o[:len(o)/2], o[len(o)/2:]} {
			_, _ = s.Write([]byte(piece))
		}
	}
	j.end()
	return j
}

func TestJournal(t *testing.T) {
	var l log
	j := read(&l, "one\r\n\n\x1b[1;31mtwo\x1b[0m\tand a half\nthree without an end", "out\n")
	_, crash, lines := j.summary()
	if got := strings.Join(lines, "|"); crash != "" || got != "one|two and a half|three without an end|out" && got != "one|two and a half|out|three without an end" {
		t.Errorf("%q, %q", crash, got)
	}
	if got := l.OfKind(event.KindLog); len(got) != 4 {
		t.Errorf("%d events", len(got))
	}
	var long strings.Builder
	for i := range 100 {
		fmt.Fprintln(&long, "line", i)
	}
	long.WriteString("SIGSEGV: segmentation violation\nPC=0x1 m=0 sigcode=1\n\ngoroutine 1 [running]:\n")
	_, crash, lines = read(&l, long.String()).summary()
	if len(lines) != maxLines || lines[maxLines-1] != "line 99" || crash != "SIGSEGV: segmentation violation" {
		t.Errorf("%q after %q", crash, lines)
	}
}

// FuzzJournal reads arbitrary output of a process.
func FuzzJournal(f *testing.F) {
	for _, seed := range []string{
		"", "a\nb", lastWordsPrefix + "x\n", "\x1b[31mred\x1b[0m\n", "\xff\xfe\n", strings.Repeat("x", 3*maxLine) + "\n", "fatal error: out of memory\ngoroutine 1", "\u202ea\u2028b\n",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		_, _, lines := read(event.Tee{}, text).summary()
		if len(lines) > maxLines {
			t.Fatalf("%d lines are kept", len(lines))
		}
		for _, line := range lines {
			if line == "" || !utf8.ValidString(line) || len(line) > 3*maxLine || strings.ContainsAny(line, "\x1b\n\r\x00\u202e") {
				t.Fatalf("%q is kept", line)
			}
		}
	})
}
