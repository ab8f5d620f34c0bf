package tap

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/event/eventtest"
	"github.com/llmtop/llmtop/runtime/engine"
	"github.com/llmtop/llmtop/runtime/source/proxy"
)

// served is an answer as a server sends it.
type served struct {
	path, request, kind, encoding string
	status                        int
	chunks                        []string
	breaks                        bool // the connection closes before the end
}

const ndjson = "application/x-ndjson"

// servings returns answers of all dialects.
func servings(t testing.TB) map[string]served {
	events := func(file string) []string { return strings.SplitAfter(sample(t, file), "\n\n") }
	zipped := func(chunks ...string) (out []string) {
		var b bytes.Buffer
		w := gzip.NewWriter(&b)
		for i, c := range chunks {
			_, _ = io.WriteString(w, c)
			if _ = w.Flush(); i == len(chunks)-1 {
				_ = w.Close()
			}
			out = append(out, b.String())
			b.Reset()
		}
		return out
	}
	reason := func(text string) string { return strings.Replace(word(text), `"content"`, `"reasoning_content"`, 1) }
	choice := func(n int) string {
		return strings.Replace(word("x"), `"index":0`, fmt.Sprintf(`"index":%d`, n), 1)
	}
	anthropic := func(kind, rest string) string {
		return "event: " + kind + "\ndata: {\"type\":\"" + kind + "\"" + rest + "}\n\n"
	}
	return map[string]served{
		"vLLM":                   {path: chat, request: `{"model":"m","max_tokens":5}`, kind: sse, chunks: events("vllm_stream_chat.sse")},
		"llama.cpp":              {path: chat, kind: sse, chunks: events("llamacpp_stream_chat_progress.sse")},
		"llama.cpp's own":        {path: "/completion", kind: sse, chunks: events("llamacpp_completion.sse")},
		"llama.cpp, one piece":   {path: "/completion", kind: "application/json", chunks: []string{sample(t, "llamacpp_completion_final.json")}},
		"LM Studio":              {path: "/api/v1/chat", kind: sse, chunks: events("lmstudio_v1_chat.sse")},
		"mlx-lm":                 {path: chat, kind: sse, chunks: events("mlx_lm_stream.sse")},
		"Ollama":                 {path: "/api/generate", request: `{"model":"q"}`, kind: ndjson, chunks: strings.SplitAfter(sample(t, "ollama_generate_stream.ndjson"), "\n")},
		"a document":             {path: chat, kind: "application/json", chunks: []string{full}},
		"reasoning":              {path: chat, kind: sse, chunks: []string{reason("a"), reason("b"), word("c"), word("d"), stops, usage(3, 4), done}},
		"two answers":            {path: chat, request: `{"n":2}`, kind: sse, chunks: []string{choice(0), choice(1), choice(1), choice(0), stops, usage(3, 5), done}},
		"bursts":                 {path: chat, kind: sse, chunks: []string{word("a") + word("b") + word("c"), word("d"), stops + usage(3, 4) + done}},
		"a tool call":            {path: chat, kind: sse, chunks: []string{`data: {"id":"1","choices":[{"delta":{"tool_calls":[{"function":{"name":"f","arguments":"{}"}}]}}]}` + "\n\n", strings.Replace(stops, "stop", "tool_calls", 1), done}},
		"Anthropic":              {path: "/v1/messages", kind: sse, chunks: []string{anthropic("message_start", `,"message":{"model":"k","usage":{"input_tokens":9,"output_tokens":1}}`), anthropic("content_block_delta", `,"delta":{"text":"a"}`), anthropic("content_block_delta", `,"delta":{"text":"b"}`), anthropic("message_delta", `,"delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":2}`), anthropic("message_stop", "")}},
		"responses":              {path: "/v1/responses", kind: sse, chunks: []string{`data: {"type":"response.output_text.delta","delta":"a"}` + "\n\n", `data: {"type":"response.completed","response":{"model":"g","status":"completed","usage":{"input_tokens":3,"output_tokens":1}}}` + "\n\n"}},
		"TGI":                    {path: "/generate_stream", kind: sse, chunks: []string{`data:{"index":1,"token":{"text":"a"}}` + "\n\n", `data:{"index":2,"token":{"text":"b"},"generated_text":"ab","details":{"finish_reason":"length","generated_tokens":2,"input_length":4}}` + "\n\n"}},
		"compressed":             {path: chat, kind: sse, encoding: "gzip", chunks: zipped(word("a"), word("b"), stops+usage(3, 2)+done)},
		"unknown compression":    {path: chat, kind: sse, encoding: "br", chunks: []string{"\x0b\x02", "\x80"}},
		"an error":               {path: chat, kind: "application/json", status: 503, chunks: []string{`{"error":{"message":"no","type":"overloaded"}}`}},
		"an error in the stream": {path: chat, kind: sse, chunks: []string{word("a"), `data: {"error":{"message":"no","type":"server_error"}}` + "\n\n"}},
		"no end":                 {path: chat, kind: sse, chunks: []string{word("a"), word("b")}},
		"no end of the body":     {path: chat, kind: sse, chunks: []string{word("a"), word("b")}, breaks: true},
		"no JSON":                {path: chat, kind: sse, chunks: []string{word("a"), "data: {\n\n", word("b"), stops, done}},
		"HTML":                   {path: chat, kind: "text/html", chunks: []string{"<p>"}},
		"of no interest":         {path: "/tokenize", kind: "application/json", chunks: []string{"{}"}},
	}
}

// ServeHTTP implements http.Handler.
func (s served) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", s.kind)
	if s.encoding != "" {
		w.Header().Set("Content-Encoding", s.encoding)
	}
	w.WriteHeader(max(s.status, 200))
	for _, c := range s.chunks {
		_, _ = io.WriteString(w, c)
		_ = http.NewResponseController(w).Flush()
	}
	if s.breaks {
		panic(http.ErrAbortHandler)
	}
}

// steps returns the same on the wire.
func (s served) steps() []step {
	head := strings.Replace(chunkedHead(s.kind), "200 OK", fmt.Sprint(max(s.status, 200), " X"), 1)
	if s.encoding != "" {
		head = strings.Replace(head, "\r\n\r\n", "\r\nContent-Encoding: "+s.encoding+"\r\n\r\n", 1)
	}
	out := []step{client(1, post(s.path, s.request)), server(2, head)}
	for i, c := range s.chunks {
		if c != "" {
			out = append(out, server(3+i, chunk(c)))
		}
	}
	if s.breaks {
		return append(out, step{at: 99, from: 1, does: "close"})
	}
	return append(out, server(99, last), step{at: 100, does: "closed"})
}

// summary describes the requests in events, without times and what depends on which bytes come together.
func summary(events []event.Event) string {
	var b strings.Builder
	tokens := map[uint16]int{}
	for _, e := range events {
		switch p := e.Data.(type) {
		case *event.Request:
			info := *p
			info.Group, info.RTT = "", 0
			fmt.Fprintf(&b, "%v %+v\n", e.State, info)
		case *event.Outcome:
			o := *p
			o.Later = 0 // as much as came after the first read
			fmt.Fprintf(&b, "%v %+v, tokens %v\n", e.State, o, tokens)
		case *event.Model:
			fmt.Fprintf(&b, "model %s\n", p.Name)
		case nil:
			if e.Kind == event.KindToken {
				tokens[e.Choice] += int(e.N)
			}
		}
	}
	return b.String()
}

// TestSameAsProxy checks that the same dialogues give the same requests through the proxy and from packets that are cut
// at random.
func TestSameAsProxy(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for name, s := range servings(t) {
		t.Run(name, func(t *testing.T) {
			want, warned := throughProxy(t, s)
			for range 20 {
				tap, log := newTap(t, Options{Port: 8000})
				play(tap.open(flow()), s.steps(), func(int) int { return rng.IntN(200) })
				if got := summary(log.All()); got != want {
					t.Fatalf("from packets\n%sthrough the proxy\n%s", got, want)
				}
				if got := fmt.Sprint(tap.Warnings()); got != warned {
					t.Errorf("warnings %s, of the proxy %s", got, warned)
				}
			}
		})
	}
}

// throughProxy returns the summary of a request through the proxy, and its warnings.
func throughProxy(t *testing.T, s served) (events, warnings string) {
	t.Helper()
	backend := httptest.NewServer(s)
	defer backend.Close()
	p, err := proxy.New(proxy.Options{To: backend.URL, Listen: "127.0.0.1:0", Clock: engine.NewClock()})
	if err != nil {
		t.Fatal(err)
	}
	var log eventtest.Log
	ctx, cancel := context.WithCancel(t.Context())
	ran := make(chan error, 1)
	go func() { ran <- p.Run(ctx, &log) }()
	transport := &http.Transport{DisableCompression: true}
	res, err := (&http.Client{Transport: transport}).Post(p.Address()+s.path, "application/json", strings.NewReader(s.request))
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, res.Body)
	_ = res.Body.Close()
	transport.CloseIdleConnections()
	cancel()
	if err := <-ran; err != nil {
		t.Fatal(err)
	}
	return summary(log.All()), fmt.Sprint(p.Warnings())
}
