package proxy

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime/source/streamed"
)

// observe feeds an answer to an observer in the given pieces, one per clock tick.
func observe(d *dialect, status int, header http.Header, pieces [][]byte) (*observer, []event.Event) {
	var log memory
	o := newObserver(d, log.Emit, func(string) {}, func(string) {})
	for i, p := range pieces {
		o.tap.put(p, event.Time(i+1))
	}
	o.tap.close()
	o.run(status, header)
	return o, log.All()
}

func typed(kind, encoding string) http.Header {
	h := http.Header{}
	if kind != "" {
		h.Set("Content-Type", kind)
	}
	if encoding != "" {
		h.Set("Content-Encoding", encoding)
	}
	return h
}

// FuzzObserver reads hostile answers. For all of them, tokens are counted once and in order, and events are consistent.
// The same bytes split differently give the same result.
func FuzzObserver(f *testing.F) {
	kinds := []string{stream, lined, "application/json", "", "text/html", "application/jsonl"}
	encodings := []string{"", "gzip", "deflate", "zstd", "br"}
	for _, s := range shapes {
		var body string
		if s.file != "" {
			body = sample(f, s.file)
		}
		body += strings.Join(s.chunks, "")
		d := slices.IndexFunc(dialects, func(d dialect) bool { return dialectOf(s.path).name == d.name })
		k := slices.Index(kinds, s.kind)
		f.Add([]byte(body), uint8(d), uint8(max(k, 0)), uint8(0), uint64(1))
		f.Add(zipped(f, body), uint8(d), uint8(max(k, 0)), uint8(1), uint64(2))
	}
	f.Add([]byte("data: {\"choices\":[{\"text\":[1],\"token_ids\":[[],{}]}],\"usage\":{\"completion_tokens\":1e99}}\n\n"), uint8(1), uint8(0), uint8(0), uint64(3))
	f.Fuzz(func(t *testing.T, body []byte, which, kind, encoding uint8, seed uint64) {
		d := &dialects[int(which)%len(dialects)]
		header := typed(kinds[int(kind)%len(kinds)], encodings[int(encoding)%len(encodings)])
		rng := rand.New(rand.NewPCG(seed, 1))
		var pieces [][]byte
		for rest := body; len(rest) > 0; {
			n := 1 + rng.IntN(min(len(rest), 64))
			pieces, rest = append(pieces, rest[:n]), rest[n:]
		}
		o, emitted := observe(d, http.StatusOK, header, pieces)
		check(t, o, emitted, len(pieces))
		whole, _ := observe(d, http.StatusOK, header, [][]byte{body})
		if !reflect.DeepEqual(whole.sum, o.sum) || whole.counter.Total() != o.counter.Total() || (whole.unread == "") != (o.unread == "") {
			t.Errorf("in pieces: %+v, %d tokens, %q; whole: %+v, %d, %q", o.sum, o.counter.Total(), o.unread, whole.sum, whole.counter.Total(), whole.unread)
		}
	})
}

// check looks for contradictions in the events of an observer.
func check(t *testing.T, o *observer, emitted []event.Event, pieces int) {
	t.Helper()
	n := 0
	var last [streamed.MaxChoices]struct {
		tokens int
		at     event.Time
	}
	for _, e := range emitted {
		one := &last[e.Choice]
		if e.Kind != event.KindToken || e.N <= 0 || int(e.Index) != one.tokens || e.At < one.at || int(e.At) > pieces {
			t.Errorf("after %+v: %+v", *one, e)
		}
		n += int(e.N)
		one.tokens, one.at = one.tokens+int(e.N), e.At
	}
	if n != o.counter.Total() || !o.streams && n > 0 {
		t.Errorf("%d tokens in events, %d counted, streams: %v", n, o.counter.Total(), o.streams)
	}
	s := &o.sum
	if s.prompt < 0 || s.cached < 0 || s.generated < 0 || s.load < 0 || s.queue < 0 || s.prefill < 0 {
		t.Errorf("sum %+v", s)
	}
	if out := o.outcome(); out.Cached > out.Prompt {
		t.Errorf("%+v", out)
	}
}

// TestCompressedStreams: streams with a supported compression that flush each message are observed message by message;
// others count as unread.
func TestCompressedStreams(t *testing.T) {
	type flusher interface {
		io.Writer
		Flush() error
		Close() error
	}
	message := `data: {"choices":[{"delta":{"content":"a"}}]}` + "\n\n"
	for name, with := range map[string]func(io.Writer) (flusher, error){
		"gzip":    func(w io.Writer) (flusher, error) { return gzip.NewWriter(w), nil },
		"deflate": func(w io.Writer) (flusher, error) { return zlib.NewWriter(w), nil },
		"zstd":    func(w io.Writer) (flusher, error) { return zstd.NewWriter(w, zstd.WithEncoderConcurrency(1)) },
	} {
		var out bytes.Buffer
		w, err := with(&out)
		if err != nil {
			t.Fatal(err)
		}
		var pieces [][]byte
		cut := func() {
			pieces = append(pieces, slices.Clone(out.Bytes()))
			out.Reset()
		}
		for range 5 {
			if _, err := io.WriteString(w, message); err != nil {
				t.Fatal(err)
			}
			if err := w.Flush(); err != nil {
				t.Fatal(err)
			}
			cut()
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		cut()
		_, emitted := observe(&dialects[0], http.StatusOK, typed(stream, name), pieces)
		if len(emitted) != 5 {
			t.Fatalf("%s: %d events of 5", name, len(emitted))
		}
		for i, e := range emitted {
			if int(e.At) != i+1 || e.N != 1 {
				t.Errorf("%s: token %d came at %d", name, i, e.At)
			}
		}
	}
	r := behind(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", stream)
		w.Header().Set("Content-Encoding", "br")
		_, _ = io.WriteString(w, "\x0b\x02\x80 what brotli makes of it \x03")
	}))
	res, text, logged := r.one(t, chat, `{}`)
	if text != "\x0b\x02\x80 what brotli makes of it \x03" || res.Header.Get("Content-Encoding") != "br" {
		t.Errorf("%q", text)
	}
	if n := r.proxy.Warnings()[string(unread(errEncoding.Error()))]; n != 1 || logged.ended.State != event.StateFinished {
		t.Errorf("%d unread, %v %q", n, logged.ended.State, logged.outcome.Reason)
	}
}

// TestBounds: data over the limits is forwarded and counted, and the rest is still observed.
func TestBounds(t *testing.T) {
	message := `data: {"choices":[{"delta":{"content":"a"}}]}` + "\n\n"
	long := `data: {"x":"` + strings.Repeat("y", 10<<20) + `"}` + "\n\n"
	big := strings.Repeat("0123456789abcdef", maxMessage/16)
	for _, c := range []struct {
		name, kind string
		pieces     []string
		tokens     int
		unread     string
	}{
		{"a line of 10 MB", stream, []string{message, long, message}, 2, errLong.Error()},
		{"a message of many lines", stream, []string{message, "data: " + big[:maxMessage/2] + "\ndata: " + big[:maxMessage/2] + "\ndata: x\n\n", message}, 2, errLong.Error()},
		{"a document of 5 MB", "application/json", []string{`{"x":"`, big, big[:1<<20], `"}`}, 0, errLong.Error()},
		{"a line of 10 MB without an end", stream, []string{message, long[:len(long)-2]}, 1, errLong.Error()},
		{"no JSON", stream, []string{message, "data: {\"\n\n", message}, 2, errJSON.Error()},
	} {
		t.Run(c.name, func(t *testing.T) {
			sent := strings.Join(c.pieces, "")
			r := behind(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", c.kind)
				for _, p := range c.pieces {
					_, _ = io.WriteString(w, p)
					flush(w)
				}
			}))
			_, text, logged := r.one(t, chat, `{}`)
			if text != sent {
				t.Errorf("%d bytes arrived, %d were sent, or they differ", len(text), len(sent))
			}
			warnings := r.proxy.Warnings()
			if behind := warnings[string(unread(errBehind.Error()))]; behind > 0 { // a slow machine may give up earlier
				t.Logf("%d bytes came faster than they could be read", len(sent))
				return
			}
			if logged.generated() != c.tokens || warnings[string(unread(c.unread))] != 1 {
				t.Errorf("%d tokens, %v; want %d and %q", logged.generated(), warnings, c.tokens, c.unread)
			}
		})
	}
}

// TestTap: a tap keeps timestamps with their bytes, never blocks the writer, and reports what it dropped.
func TestTap(t *testing.T) {
	waiting, written := make(chan struct{}), make(chan struct{})
	waits := 0
	tap := newTap(func() {
		if waits++; waits == 1 {
			close(waiting)
		}
	})
	tap.put([]byte("ab"), 1)
	tap.put([]byte("c"), 2)
	p := make([]byte, 1)
	for i, want := range []event.Time{1, 1, 2} {
		if n, err := tap.Read(p); n != 1 || err != nil || p[0] != "abc"[i] || tap.at != want {
			t.Fatalf("byte %d: %q, %v at %d, want at %d", i, p, err, tap.at, want)
		}
	}
	go func() {
		defer close(written)
		<-waiting
		tap.put([]byte("d"), 3)
		tap.wake()
	}()
	if n, err := tap.Read(p); n != 1 || err != nil || tap.at != 3 {
		t.Errorf("%d, %v at %d", n, err, tap.at)
	}
	<-written
	tap.put(make([]byte, maxWaiting), 4)
	tap.put([]byte("e"), 5)
	tap.close()
	if n, err := tap.Read(p); n != 0 || err != errBehind {
		t.Errorf("%d, %v; want errBehind", n, err)
	}
	tap = newTap(func() {})
	tap.leave()
	tap.put([]byte("x"), 1)
	tap.close()
	if len(tap.waiting.bytes) > 0 {
		t.Error("a tap without a reader holds data")
	}
}

// FuzzPicker compares what a picker extracts from JSON with encoding/json.
func FuzzPicker(f *testing.F) {
	for _, s := range []string{
		`{"model":"m","messages":[{"model":"no","content":"\"model\":\"no\""}],"max_tokens":5,"options":{"num_predict":7,"x":{"num_predict":1}}}`,
		` { "options" : { "num_predict" : 12 } , "model" : "a\u0062\\" , "max_tokens" : null }`,
		`{"model":{"model":"no"},"max_tokens":[5],"options":[{"num_predict":3}],"stop":["}","]"]}`,
		`{"model":"m","max_tokens":5,"options":{"num_predict":7}}`, `{"max_tokens":5.5e3,"stop":[{}],"model":true}`,
		`{"options":{"a":[1,{"b":2}],"num_predict":"x"} ,"model":null}`, `[{"model":"no"}]`, `{"model":"m`, `}}}{"model":1}`, `{"":"","model":"` + strings.Repeat("x", 300) + `"}`,
	} {
		f.Add([]byte(s), uint8(3))
	}
	f.Fuzz(func(t *testing.T, raw []byte, piece uint8) {
		p := newPicker("model", "max_tokens", "options.num_predict")
		for rest := raw; len(rest) > 0; {
			n := min(len(rest), 1+int(piece))
			p.feed(rest[:n])
			rest = rest[n:]
		}
		for name, value := range p.got {
			if len(value) > maxPicked {
				t.Errorf("%s has %d bytes", name, len(value))
			}
		}
		compare(t, p, raw)
	})
}

// compare checks a picker against encoding/json if that reads raw as an object whose names are unique and unescaped.
func compare(t *testing.T, p *picker, raw []byte) {
	t.Helper()
	var members map[string]json.RawMessage
	if json.Unmarshal(raw, &members) != nil {
		return
	}
	for _, name := range []string{"model", "max_tokens", "num_predict", "options", "."} {
		if strings.Count(string(raw), name) > 1 {
			return
		}
	}
	if strings.Contains(string(raw), `\`) {
		return
	}
	var inner map[string]json.RawMessage
	_ = json.Unmarshal(members["options"], &inner) // may be something else
	want := map[string]string{}
	for name, value := range map[string]json.RawMessage{
		"model": members["model"], "max_tokens": members["max_tokens"], "options.num_predict": inner["num_predict"],
	} {
		if len(value) > 0 && len(value) <= maxPicked && value[0] != '{' && value[0] != '[' {
			want[name] = string(value)
		}
	}
	if fmt.Sprint(want) != fmt.Sprint(p.got) {
		t.Errorf("%s: %v, want %v", raw, p.got, want)
	}
}
