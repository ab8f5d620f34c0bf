package answers

import (
	"reflect"
	"strings"
	"testing"
)

// readEvents returns the events of a text in short form.
func readEvents(text string, limit int) (out []string) {
	e := Event{Max: limit}
	e.Begin()
	for line := range strings.SplitSeq(text, "\n") {
		if !e.Line([]byte(line)) {
			continue
		}
		word := string(e.Data)
		if e.Failed {
			word += " failed"
		}
		if e.Over {
			word = "over"
		}
		out = append(out, word)
		e.Begin()
	}
	return out
}

func TestSentEvents(t *testing.T) {
	for text, want := range map[string][]string{
		"data: a\ndata:b\n\n: comment\n\nid: 1\n\ndata: c\n\n": {"a\nb", "c"},
		"\xef\xbb\xbfdata: a\n\n\xef\xbb\xbfdata: b\n\n":       {"a"}, // only a byte order mark at the very start is skipped
		"event: error\ndata: x\n\ndata: y\n\n":                 {"x failed", "y"},
		"event: error\n\ndata: y\n\n":                          {"y"}, // an event without data is ignored
		"error: z\n\n":                                         {"z failed"},
		"data: 123456789\n\ndata: 12345678\n\n":                {"over", "12345678"},
		"data: 1234\ndata: 5678\ndata\n\ndata\n\n":             {"over", ""},
		"data: not ended":                                      nil,
	} {
		if got := readEvents(text, 8); !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func FuzzSentEvents(f *testing.F) {
	f.Add("data: a\n\nevent: error\ndata: b\n\n")
	f.Add("\xef\xbb\xbferror: {}\n\n:\n\n")
	f.Fuzz(func(t *testing.T, text string) {
		for _, e := range readEvents(text, 64) {
			if len(e) > 64+len(" failed")+1 { // the line feed before data beyond the limit is kept
				t.Fatalf("%d bytes", len(e))
			}
		}
	})
}
