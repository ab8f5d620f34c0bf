package proxy

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"io"
	"math/rand/v2"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime/source/answers"
)

// observe feeds an answer to an observer in the given pieces, one per clock tick.
func observe(d *answers.Dialect, status int, header http.Header, pieces [][]byte) (*answers.Observer, []event.Event) {
	var log memory
	server := answers.NewServer(func() event.Time { return 0 }, 0)
	server.Start(event.SinkFunc(func(event.Event) {}), event.EngineInfo{})
	o := server.Observe(d, log.Emit)
	feed := answers.NewFeed(o.Flush)
	for i, p := range pieces {
		feed.Put(p, event.Time(i+1))
	}
	feed.Close()
	o.Read(status, header, feed, feed.At)
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
		d := slices.IndexFunc(answers.Dialects, func(d answers.Dialect) bool { return answers.Of(s.path).Name == d.Name })
		k := slices.Index(kinds, s.kind)
		f.Add([]byte(body), uint8(d), uint8(max(k, 0)), uint8(0), uint64(1))
		f.Add(zipped(f, body), uint8(d), uint8(max(k, 0)), uint8(1), uint64(2))
	}
	f.Add([]byte("data: {\"choices\":[{\"text\":[1],\"token_ids\":[[],{}]}],\"usage\":{\"completion_tokens\":1e99}}\n\n"), uint8(1), uint8(0), uint8(0), uint64(3))
	f.Fuzz(func(t *testing.T, body []byte, which, kind, encoding uint8, seed uint64) {
		d := &answers.Dialects[int(which)%len(answers.Dialects)]
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
		end := answers.End{At: event.Time(len(pieces)), Complete: true}
		state, outcome := o.Finish(end)
		wholeState, wholeOutcome := whole.Finish(end)
		if !reflect.DeepEqual(whole.Sum, o.Sum) || whole.Counter.Total() != o.Counter.Total() || state != wholeState || outcome.Reason != wholeOutcome.Reason {
			t.Errorf("in pieces: %+v, %d tokens, %v %q; whole: %+v, %d, %v %q",
				o.Sum, o.Counter.Total(), state, outcome.Reason, whole.Sum, whole.Counter.Total(), wholeState, wholeOutcome.Reason)
		}
	})
}

// check looks for contradictions in the events of an observer.
func check(t *testing.T, o *answers.Observer, emitted []event.Event, pieces int) {
	t.Helper()
	n := 0
	var last [answers.MaxChoices]struct {
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
	if n != o.Counter.Total() {
		t.Errorf("%d tokens in events, %d counted", n, o.Counter.Total())
	}
	s := &o.Sum
	if s.Prompt < 0 || s.Cached < 0 || s.Generated < 0 || s.Load < 0 || s.Queue < 0 || s.Prefill < 0 {
		t.Errorf("sum %+v", s)
	}
	if out := o.Outcome(); out.Cached > out.Prompt {
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
		_, emitted := observe(&answers.Dialects[0], http.StatusOK, typed(stream, name), pieces)
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
	if got := r.proxy.Warnings(); !slices.Contains(got, answers.Unread("unsupported compression")+" (requests: 1)") || logged.ended.State != event.StateFinished {
		t.Errorf("%v, %v %q", got, logged.ended.State, logged.outcome.Reason)
	}
}

// TestBounds: data over the limits is forwarded and counted, and the rest is still observed.
func TestBounds(t *testing.T) {
	message := `data: {"choices":[{"delta":{"content":"a"}}]}` + "\n\n"
	long := `data: {"x":"` + strings.Repeat("y", 10<<20) + `"}` + "\n\n"
	big := strings.Repeat("0123456789abcdef", answers.MaxMessage/16)
	for _, c := range []struct {
		name, kind string
		pieces     []string
		tokens     int
		unread     string
	}{
		{"a line of 10 MB", stream, []string{message, long, message}, 2, answers.ErrLong.Error()},
		{"a message of many lines", stream, []string{message, "data: " + big[:answers.MaxMessage/2] + "\ndata: " + big[:answers.MaxMessage/2] + "\ndata: x\n\n", message}, 2, answers.ErrLong.Error()},
		{"a document of 9 MB", "application/json", []string{`{"x":"`, big, big[:1<<20], `"}`}, 0, answers.ErrLong.Error()},
		{"a line of 10 MB without an end", stream, []string{message, long[:len(long)-2]}, 1, answers.ErrLong.Error()},
		{"no JSON", stream, []string{message, "data: {\"\n\n", message}, 2, answers.ErrJSON.Error()},
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
			if slices.ContainsFunc(warnings, func(w string) bool { return strings.HasPrefix(w, answers.Unread(answers.ErrBehind.Error())) }) { // a slow machine may give up earlier
				t.Logf("%d bytes came faster than they could be read", len(sent))
				return
			}
			if logged.generated() != c.tokens || !slices.Contains(warnings, answers.Unread(c.unread)+" (requests: 1)") {
				t.Errorf("%d tokens, %v; want %d and %q", logged.generated(), warnings, c.tokens, c.unread)
			}
		})
	}
}
