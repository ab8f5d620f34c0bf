package remote

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf8"

	"github.com/llmtop/llmtop/profiler/clean"
	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/event/eventtest"
	"github.com/llmtop/llmtop/runtime/engine"
)

// pieces reads a text in pieces of n bytes, on a clock that counts the reads.
func pieces(text string, n int) *lines {
	reads := event.Time(0)
	src := strings.NewReader(text)
	return newLines(readerFunc(func(p []byte) (int, error) {
		reads++
		return src.Read(p[:min(n, len(p))])
	}), func() event.Time { return reads })
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// all returns everything that a reader yields, and the final error.
func all(in messages) (out []string, err error) {
	for {
		value, failed, _, err := in.next()
		if err != nil {
			return out, err
		}
		text := string(value)
		if failed {
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
			got, err := all(newEvents(pieces(text, n)))
			if !slices.Equal(got, want) || err != io.EOF {
				t.Errorf("%q in pieces of %d: %q, %v; want %q", text, n, got, err, want)
			}
		}
	}
}

func TestObjects(t *testing.T) {
	got, err := all(objects{pieces("{}\n\n \r\n[1]\r\n{\"a\":2}", 2)})
	if want := []string{"{}", "[1]", `{"a":2}`}; !slices.Equal(got, want) || err != io.EOF {
		t.Errorf("%q, %v; want %q", got, err, want)
	}
}

// TestStampIsThatOfTheLastByte: a line is stamped with the read of its end, and lines of one read share a stamp.
func TestStampIsThatOfTheLastByte(t *testing.T) {
	l := pieces("abcdefghi\nj\nk\nl", 4)
	for _, want := range []struct {
		line string
		at   event.Time
	}{{"abcdefghi", 3}, {"j", 3}, {"k", 4}, {"l", 4}} {
		line, at, err := l.next()
		if string(line) != want.line || at != want.at || err != nil {
			t.Errorf("%q at %d, %v; want %q at %d", line, at, err, want.line, want.at)
		}
	}
}

// endless is a line without an end.
type endless struct{ read int }

func (e *endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	e.read += len(p)
	return len(p), nil
}

func TestLongLinesAreBounded(t *testing.T) {
	src := &endless{}
	if _, _, err := newLines(src, func() event.Time { return 0 }).next(); !errors.Is(err, errLongLine) {
		t.Errorf("%v", err)
	}
	if src.read > 2*maxLine {
		t.Errorf("%d bytes were taken of a line", src.read)
	}
	many := newEvents(newLines(io.MultiReader(slices.Repeat([]io.Reader{
		readerFunc(func(p []byte) (int, error) { return copy(p, "data: "+strings.Repeat("x", 1000)+"\n"), nil }),
	}, 2)...), func() event.Time { return 0 }))
	if _, _, _, err := many.next(); !errors.Is(err, errLongLine) {
		t.Errorf("an event of endless lines: %v", err)
	}
	fits := "data: " + strings.Repeat("x", maxLine-100) + "\n\n"
	if got, err := all(newEvents(pieces(fits, 1<<20))); len(got) != 1 || err != io.EOF {
		t.Errorf("a line of nearly the bound: %d events, %v", len(got), err)
	}
}

func TestErrorsOfReadingComeThrough(t *testing.T) {
	l := newLines(io.MultiReader(strings.NewReader("a\nb"), iotest.ErrReader(io.ErrUnexpectedEOF)), func() event.Time { return 0 })
	if line, _, err := l.next(); string(line) != "a" || err != nil {
		t.Errorf("%q, %v", line, err)
	}
	if line, _, err := l.next(); line != nil || !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("%q, %v", line, err)
	}
}

// answers are recorded answers of servers.
func answers(t testing.TB) map[string]string {
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
	for _, text := range answers(f) {
		f.Add(text, 7)
	}
	f.Add("data: a\r\n\r\nevent: error\ndata\n\n: x\n\ndata: [DONE]", 1)
	f.Fuzz(func(t *testing.T, text string, n int) {
		n = max(n, 1)
		whole, err := all(newEvents(pieces(text, 1<<20)))
		if err != io.EOF {
			t.Fatal(err)
		}
		cut, err := all(newEvents(pieces(text, n)))
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
	for _, text := range answers(f) {
		f.Add(text, 3)
	}
	f.Fuzz(func(t *testing.T, text string, n int) {
		whole, _ := all(objects{pieces(text, 1<<20)})
		cut, err := all(objects{pieces(text, max(n, 1))})
		if !slices.Equal(whole, cut) || err != io.EOF {
			t.Errorf("in pieces of %d: %q, %v; whole: %q", n, cut, err, whole)
		}
	})
}

// FuzzAnswer: no answer makes a request end twice, end without a reason, or have tokens that were neither reported nor
// seen.
func FuzzAnswer(f *testing.F) {
	for _, text := range answers(f) {
		for i := range APIs() {
			f.Add(text, i)
		}
	}
	f.Add(data(`{"choices":[{"text":"a"}],"usage":{"prompt_tokens":-1,"completion_tokens":9999999999999}}`)+data(`{"choices":[{"text":"b"}],"usage":{"completion_tokens":7}}`), 1)
	f.Fuzz(func(t *testing.T, text string, api int) {
		sink := &eventtest.Log{}
		c := &Client{opt: Options{Key: "key!"}, sink: sink, server: server{api: APIs()[uint(api)%uint(len(APIs()))]}}
		q := newRequest(c, 1, engine.Request{})
		q.x.Response = answer("")
		var in messages = newEvents(pieces(text, 100))
		if c.server.api.lines() {
			in = objects{pieces(text, 100)}
		}
		got := q.finish(q.read(in))
		seen := 0
		for _, e := range sink.OfKind(event.KindToken) {
			if e.N < 1 || int(e.Index) != seen {
				t.Fatalf("%d tokens from %d on, after %d", e.N, e.Index, seen)
			}
			seen += int(e.N)
		}
		if got.Reason == "" || utf8.RuneCountInString(got.Reason) > clean.MaxMessage+1 || len(sink.OfKind(event.KindRequest)) != 2 || (got.Err != nil) != (got.State == event.StateFailed) {
			t.Errorf("%+v", got)
		}
		if got.Generated < 0 || got.Prompt < 0 || got.Cached < 0 || got.Cached > got.Prompt {
			t.Errorf("%+v", got.Outcome)
		}
	})
}

// FuzzRefusal: the message of a refusal is one line.
func FuzzRefusal(f *testing.F) {
	f.Add([]byte(`{"error":{"message":"no"}}`))
	f.Add([]byte(`{"detail":[{"msg":"a\u0000b"}]}`))
	f.Add([]byte("<html><title>\n502</title>"))
	f.Add([]byte("plain\r\ntext \xff"))
	f.Fuzz(func(t *testing.T, body []byte) {
		text := words(body)
		if strings.ContainsAny(text, "\n\r\t\x00\x1b") || utf8.RuneCountInString(text) > clean.MaxMessage+len("an HTML page with the title ")+1 {
			t.Errorf("%q", text)
		}
	})
}

// BenchmarkRead measures the cost of one message, up to its event.
func BenchmarkRead(b *testing.B) {
	for name, line := range map[string]string{
		"short":     `{"choices":[{"index":0,"text":" word","finish_reason":null}],"object":"text_completion"}`,
		"vLLM":      `{"id":"chatcmpl-9f1c","object":"chat.completion.chunk","created":1787400000,"model":"Qwen/Qwen3-30B-A3B","choices":[{"index":0,"text":" word","logprobs":null,"finish_reason":null,"token_ids":[32313]}],"usage":{"prompt_tokens":2560,"total_tokens":2567,"completion_tokens":7}}`,
		"llama.cpp": `{"choices":[{"text":" word","index":0,"logprobs":null,"finish_reason":null}],"created":1787400000,"id":"chatcmpl-Qx1","model":"tiny","system_fingerprint":"b10582-e85caa81e","object":"text_completion","timings":{"cache_n":0,"prompt_n":512,"prompt_ms":801.4,"prompt_per_token_ms":0.7826171875,"prompt_per_second":1277.763913151984,"predicted_n":17,"predicted_ms":12.5,"predicted_per_token_ms":0.8,"predicted_per_second":1300.2}}`,
	} {
		b.Run(name, func(b *testing.B) {
			text := []byte(data("%s", line))
			q := newRequest(&Client{sink: event.Discard{}, server: server{api: OpenAI}}, 0, engine.Request{})
			in := newEvents(newLines(readerFunc(func(p []byte) (int, error) { return copy(p, text), nil }), func() event.Time { return 1 }))
			b.ReportAllocs()
			var c chunk
			for b.Loop() {
				value, _, at, err := in.next()
				if err != nil {
					b.Fatal(err)
				}
				if err := c.read(value); err != nil {
					b.Fatal(err)
				}
				q.take(&c, at)
			}
		})
	}
}

// answer returns a response with a body.
func answer(text string) *http.Response {
	return &http.Response{Body: io.NopCloser(bytes.NewReader([]byte(text)))}
}

func ExampleStatus() {
	fmt.Println(&Status{Code: 404, Why: "model not found"})
	// Output: the server answered 404 (Not Found): model not found
}
