package remote

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/llmtop/llmtop/profiler/clean"
	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/event/eventtest"
	"github.com/llmtop/llmtop/runtime/engine"
	"github.com/llmtop/llmtop/runtime/source/answers"
)

// pieces reads a text in pieces of n bytes, on a clock that counts the reads.
func pieces(api API, text string, n int) *answers.Reader {
	reads := event.Time(0)
	src := strings.NewReader(text)
	return answers.NewStream(api.dialect(), readerFunc(func(p []byte) (int, error) {
		reads++
		return src.Read(p[:min(n, len(p))])
	}), func() event.Time { return reads })
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// testdata has recorded answers of servers.
const testdata = "../../source/answers/testdata"

// recorded returns recorded answers of servers.
func recorded(t testing.TB) map[string]string {
	t.Helper()
	out := map[string]string{}
	entries, err := os.ReadDir(testdata)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.IsDir() {
			continue
		}
		text, err := os.ReadFile(filepath.Join(testdata, e.Name()))
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

// FuzzAnswer: no answer makes a request end twice, end without a reason, or have tokens that were neither reported nor
// seen.
func FuzzAnswer(f *testing.F) {
	for _, text := range recorded(f) {
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
		got := q.finish(q.read(pieces(c.server.api, text, 100)))
		seen := map[uint16]int{} // by choice
		for _, e := range sink.OfKind(event.KindToken) {
			if e.N < 1 || int(e.Index) != seen[e.Choice] {
				t.Fatalf("%d tokens from %d on, after %d", e.N, e.Index, seen[e.Choice])
			}
			seen[e.Choice] += int(e.N)
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
			q := newRequest(&Client{sink: event.Tee{}, server: server{api: OpenAI}}, 0, engine.Request{})
			in := answers.NewStream(OpenAI.dialect(), readerFunc(func(p []byte) (int, error) { return copy(p, text), nil }), func() event.Time { return 1 })
			in.Texts = true
			b.ReportAllocs()
			for b.Loop() {
				m, err := in.Next()
				if err != nil {
					b.Fatal(err)
				}
				q.answer.Add(m)
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
