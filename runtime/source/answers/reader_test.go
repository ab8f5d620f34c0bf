package answers

import (
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/llmtop/llmtop/profiler/event"
)

// inPieces reads a text in pieces of n bytes as a stream of a dialect, on a clock that counts the reads.
func inPieces(path, text string, n int) *Reader {
	reads := event.Time(0)
	src := strings.NewReader(text)
	return NewStream(Of(path), readerFunc(func(p []byte) (int, error) {
		got, err := src.Read(p[:min(n, len(p))])
		if got > 0 {
			reads++
		}
		return got, err
	}), func() event.Time { return reads })
}

// Paths of streams of events, and of lines.
const chat, generate = "/v1/chat/completions", "/api/generate"

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// all returns everything that a reader yields, and the final error.
func all(in *Reader) (out []string, err error) {
	for {
		v, err := in.next()
		if err != nil {
			return out, err
		}
		text := string(v.bytes)
		if v.failed {
			text = "!" + text
		}
		out = append(out, text)
	}
}

func TestEvents(t *testing.T) {
	for text, want := range map[string][]string{
		"":                                 nil,
		"data: a\n\n":                      {"a"},
		"data:a\r\n\r\ndata: b\r\n\r\n":    {"a", "b"},
		"data: a\ndata: b\n\n":             {"a\nb"},
		"data\n\n":                         {""},
		": ping\n\n:\n\ndata: a\n\n":       {"a"},
		"id: 7\nretry: 3\ndata: a\n\n":     {"a"},
		"event: message\ndata: a\n\n":      {"a"},
		"event: error\ndata: a\n\ndata: b": {"!a", "b"},
		"event: error\n\ndata: a\n\n":      {"a"},
		"error: {}\n\n":                    {"!{}"},
		"\xef\xbb\xbfdata: a\n\n":          {"a"},
		"data: a: b\n\n":                   {"a: b"},
		"data:  a \n\n":                    {" a "},
		"\n\n\ndata: a":                    {"a"},
		"nonsense\n\ndata: a\n\n":          {"a"},
	} {
		for _, n := range []int{1, 3, 1 << 20} {
			got, err := all(inPieces(chat, text, n))
			if !slices.Equal(got, want) || err != io.EOF {
				t.Errorf("%q in pieces of %d: %q, %v; want %q", text, n, got, err, want)
			}
		}
	}
}

func TestObjects(t *testing.T) {
	got, err := all(inPieces(generate, "{}\n\n \r\n[1]\r\n{\"a\":2}", 2))
	if want := []string{"{}", "[1]", `{"a":2}`}; !slices.Equal(got, want) || err != io.EOF {
		t.Errorf("%q, %v; want %q", got, err, want)
	}
}

// TestStampIsThatOfTheLastByte: a line is stamped with the read of its end, and lines of one read share a stamp.
func TestStampIsThatOfTheLastByte(t *testing.T) {
	r := inPieces(generate, "abcdefghi\nj\nk\nl", 4)
	for _, want := range []struct {
		line string
		at   event.Time
	}{{"abcdefghi", 3}, {"j", 3}, {"k", 4}, {"l", 4}} {
		v, err := r.next()
		if string(v.bytes) != want.line || v.at != want.at || err != nil {
			t.Errorf("%q at %d, %v; want %q at %d", v.bytes, v.at, err, want.line, want.at)
		}
	}
}

func TestErrorsOfReadingComeThrough(t *testing.T) {
	l := lines{from: io.MultiReader(strings.NewReader("a\nb"), iotest.ErrReader(io.ErrUnexpectedEOF))}
	if line, err := l.next(); string(line) != "a" || err != nil {
		t.Errorf("%q, %v", line, err)
	}
	if line, err := l.next(); line != nil || !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("%q, %v", line, err)
	}
}

// TestLongMessagesAreBounded checks that a message that is too long is skipped, in one line or in many, and that little
// memory is taken for it.
func TestLongMessagesAreBounded(t *testing.T) {
	fits := "data: " + strings.Repeat("x", MaxMessage-100) + "\n\n"
	for name, c := range map[string]struct {
		text string
		over bool
	}{
		"a line":     {"data: " + strings.Repeat("x", 5*MaxMessage) + "\n\n", true},
		"many lines": {strings.Repeat("data: "+strings.Repeat("x", 1000)+"\n", MaxMessage/1000+1) + "\n", true},
		"nearly":     {fits, false},
	} {
		r := inPieces(chat, c.text+"data: a\n\n", 1<<20)
		if c.over {
			if _, err := r.next(); !errors.Is(err, ErrLong) {
				t.Errorf("%s: %v", name, err)
			}
		}
		got, err := all(r)
		if want := 2; err != io.EOF || c.over && len(got) != 1 || !c.over && len(got) != want {
			t.Errorf("%s: %d messages follow, %v", name, len(got), err)
		}
		if size := cap(r.lines.buf); size > 3*MaxMessage {
			t.Errorf("%s took %d bytes", name, size)
		}
	}
}

// recorded returns recorded answers of servers.
func recorded(t testing.TB) map[string]string {
	t.Helper()
	out := map[string]string{}
	entries, err := os.ReadDir("testdata")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.IsDir() {
			continue
		}
		text, err := os.ReadFile("testdata/" + e.Name())
		if err != nil {
			t.Fatal(err)
		}
		out[e.Name()] = string(text)
	}
	if len(out) == 0 {
		t.Fatal("there are no recorded answers")
	}
	return out
}

// FuzzEvents: the events do not depend on how the bytes are split into reads.
func FuzzEvents(f *testing.F) {
	for _, text := range recorded(f) {
		f.Add(text, 7)
	}
	f.Add("data: a\r\n\r\nevent: error\ndata\n\n: x\n\ndata: [DONE]", 1)
	f.Fuzz(func(t *testing.T, text string, n int) {
		n = max(n, 1)
		whole, err := all(inPieces(chat, text, 1<<20))
		if err != io.EOF {
			t.Fatal(err)
		}
		cut, err := all(inPieces(chat, text, n))
		if !slices.Equal(whole, cut) || err != io.EOF {
			t.Errorf("in pieces of %d: %q, %v; whole: %q", n, cut, err, whole)
		}
		if size := len(strings.Join(whole, "")); size > len(text)+len(whole) {
			t.Errorf("%d bytes became %d", len(text), size)
		}
	})
}

// FuzzObjects does the same for NDJSON.
func FuzzObjects(f *testing.F) {
	for _, text := range recorded(f) {
		f.Add(text, 3)
	}
	f.Fuzz(func(t *testing.T, text string, n int) {
		whole, _ := all(inPieces(generate, text, 1<<20))
		cut, err := all(inPieces(generate, text, max(n, 1)))
		if !slices.Equal(whole, cut) || err != io.EOF {
			t.Errorf("in pieces of %d: %q, %v; whole: %q", n, cut, err, whole)
		}
	})
}
