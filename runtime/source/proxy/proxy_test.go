package proxy

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/event/eventtest"
	"github.com/llmtop/llmtop/runtime/engine"
)

const chat = "/v1/chat/completions"

// answering is a server that gives the same answer to every request.
func answering(status int, kind, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", kind)
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

// TestWholeAnswers: answers that are not streamed have counts and an end, but no token events, since token times are
// unknown.
func TestWholeAnswers(t *testing.T) {
	for _, c := range []struct {
		path, body string
		outcome    event.Outcome
	}{
		{
			chat, `{"model":"m","choices":[{"message":{"content":"yes"},"finish_reason":"stop"}],"usage":{"prompt_tokens":9,"completion_tokens":4,"prompt_tokens_details":{"cached_tokens":3}}}`,
			event.Outcome{Reason: "stop", Prompt: 9, Cached: 3, Generated: 4},
		},
		{"/v1/completions", `{"model":"m","choices":[{"text":"yes","finish_reason":"length"}]}`, event.Outcome{Reason: "length"}},
		{"/completion", sample(t, "llamacpp_completion_final.json"), event.Outcome{Reason: "length", Prompt: 41, Cached: 31, Generated: 64, Drafted: 90, Accepted: 61}},
		{
			"/v1/responses", `{"object":"response","model":"m","status":"completed","output":[],"usage":{"input_tokens":8,"output_tokens":2}}`,
			event.Outcome{Reason: "stop", Prompt: 8, AnyCached: true, Generated: 2},
		},
		{
			"/v1/messages", `{"type":"message","model":"m","content":[{"type":"text","text":"yes"}],"stop_reason":"end_turn","usage":{"input_tokens":8,"output_tokens":2}}`,
			event.Outcome{Reason: "stop", Prompt: 8, AnyCached: true, Generated: 2},
		},
		{"/api/chat", `{"model":"m","message":{"content":"yes"},"done":true,"prompt_eval_count":5,"eval_count":7}`, event.Outcome{Reason: "stop", Prompt: 5, AnyCached: true, Generated: 7}},
		{"/api/generate", `{"model":"m","response":"yes","done":true,"done_reason":"length","eval_count":7}`, event.Outcome{Reason: "length", Generated: 7}},
	} {
		r := behind(t, answering(200, "application/json", c.body))
		_, text, logged := r.one(t, c.path, `{"stream":false}`)
		if text != c.body {
			t.Errorf("%s: got %q", c.path, text)
		}
		if logged.ended.State != event.StateFinished || logged.outcome != c.outcome || len(logged.tokens) > 0 || len(logged.stages) > 0 {
			t.Errorf("%s: %v, %+v with %d tokens; want %+v without", c.path, logged.ended.State, logged.outcome, len(logged.tokens), c.outcome)
		}
		if logged.ended.At <= logged.queued.At {
			t.Errorf("%s: ended at %d, having begun at %d", c.path, logged.ended.At, logged.queued.At)
		}
	}
}

// TestStagesThatServersReport: stages follow each other until the first token and are never longer than TTFT.
func TestStagesThatServersReport(t *testing.T) {
	for _, c := range []struct {
		path, kind, body string
		stages           string
	}{
		{"/api/generate", lined, `{"response":"a"}` + "\n" + `{"done":true,"eval_count":1,"load_duration":1000,"prompt_eval_count":4,"prompt_eval_duration":2000}`, "[prompt 2000]"},
		{chat, stream, `data: {"choices":[{"delta":{"content":"a"},"finish_reason":"stop"}],"metrics":{"queue_time_ms":0.001,"time_to_first_token_ms":0.002}}` + "\n\n", "[queue 1000 prompt 2000]"},
		{chat, stream, `data: {"choices":[{"delta":{"content":"a"},"finish_reason":"stop"}],"timings":{"prompt_ms":86400000}}` + "\n\n", "TTFT"},
		{chat, stream, `data: {"choices":[{"delta":{"content":"a"},"finish_reason":"stop"}],"timings":{"prompt_ms":-1}}` + "\n\n", "[]"},
	} {
		r := behind(t, answering(200, c.kind, c.body))
		_, _, logged := r.one(t, c.path, `{}`)
		var got []any
		for i, e := range logged.stages {
			got = append(got, e.Stage, e.Dur)
			end := logged.tokens[0].At
			for _, next := range logged.stages[i+1:] {
				end -= event.Time(next.Dur)
			}
			if e.At != end || e.Dur > int64(e.At-logged.queued.At) {
				t.Errorf("%s: stage %+v of a request enqueued at %d with its first token at %d", c.body, e, logged.queued.At, logged.tokens[0].At)
			}
		}
		if c.stages == "TTFT" {
			c.stages = fmt.Sprint([]any{event.StagePrompt, int64(logged.tokens[0].At - logged.queued.At)})
		}
		if fmt.Sprint(got) != c.stages {
			t.Errorf("%s: stages %v, want %s", c.body, got, c.stages)
		}
		if r.engine().Caps.Has(event.CapStages) != (len(got) > 0) {
			t.Errorf("%s: capabilities %b", c.body, r.engine().Caps)
		}
	}
}

// TestRequestsThatFail: each failure is reported by its type, and no text from the server gets into events.
func TestRequestsThatFail(t *testing.T) {
	const secret = "sk-Secret-0815"
	text := `data: {"choices":[{"delta":{"content":"a"}}]}` + "\n\n"
	for _, c := range []struct {
		name, path   string
		h            http.HandlerFunc
		state        event.State
		reason       string
		cut, counted bool // cut: the client sees an error too; counted: a token arrived
	}{
		{
			"unauthorised", chat, answering(401, "application/json", `{"error":{"message":"Incorrect API key: `+secret+`","type":"invalid_request_error","code":"invalid_api_key"}}`),
			event.StateFailed, "HTTP 401 Unauthorized (invalid_request_error)", false, false,
		},
		{"HTML", chat, answering(500, "text/html", "<html>"+secret+"</html>"), event.StateFailed, "HTTP 500 Internal Server Error", false, false},
		{"overloaded", "/v1/messages", answering(529, "application/json", `{"type":"error","error":{"type":"overloaded_error"}}`), event.StateFailed, "HTTP 529 (overloaded_error)", false, false},
		{"a strange kind", chat, answering(429, "application/json", `{"error":{"type":"`+secret+`"}}`), event.StateFailed, "HTTP 429 Too Many Requests (other)", false, false},
		{"redirected", chat, func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
		}, event.StateFailed, "HTTP 307 Temporary Redirect", false, false},
		{"error in the stream", chat, answering(200, stream, text+`data: {"error":{"message":"`+secret+`","type":"server_error"}}`+"\n\n"), event.StateFailed, "the server reported an error (server_error)", false, true},
		{"error of llama.cpp", chat, answering(200, stream, text+`error: `+secret+"\n\n"), event.StateFailed, "the server reported an error", false, true},
		{"error of Ollama", "/api/chat", answering(200, lined, `{"error":"`+secret+`"}`+"\n"), event.StateFailed, "the server reported an error", false, false},
		{"error of Anthropic", "/v1/messages", answering(200, stream, "event: error\n"+`data: {"type":"error","error":{"type":"overloaded_error"}}`+"\n\n"), event.StateFailed, "the server reported an error (overloaded_error)", false, false},
		{"failed response", "/v1/responses", answering(200, stream, `data: {"type":"response.failed","response":{"status":"failed","error":{"code":"server_error","message":"`+secret+`"}}}`+"\n\n"), event.StateFailed, "the server reported an error (server_error)", false, false},
		{"a message that is an error", chat, answering(200, stream, text+`data: {"object":"error","message":"`+secret+`","type":"server_error"}`+"\n\ndata: [DONE]\n\n"), event.StateFailed, "the server reported an error (server_error)", false, true},
		{"an end by an error", chat, answering(200, stream, text+`data: {"choices":[{"delta":{"content":""},"finish_reason":"error"}]}`+"\n\ndata: [DONE]\n\n"), event.StateFailed, "the server reported an error", false, true},
		{"an error in a choice", chat, answering(200, stream, text+`data: {"choices":[{"delta":{},"finish_reason":null,"error":{"code":"server_error","message":"`+secret+`"}}]}`+"\n\ndata: [DONE]\n\n"), event.StateFailed, "the server reported an error (server_error)", false, true},
		{"an error of Groq", chat, answering(200, stream, text+`data: {"choices":[],"x_groq":{"error":"`+secret+`"}}`+"\n\ndata: [DONE]\n\n"), event.StateFailed, "the server reported an error", false, true},
		{"an abort of SGLang", "/generate", answering(200, stream, `data: {"text":"a","meta_info":{"completion_tokens":1,"finish_reason":{"type":"abort","message":"`+secret+`"}}}`+"\n\ndata: [DONE]\n\n"), event.StateFailed, "the server reported an error (abort)", false, true},
		{"cancelled at the server", chat, answering(200, stream, text+`data: {"choices":[{"delta":{},"finish_reason":"cancelled"}]}`+"\n\ndata: [DONE]\n\n"), event.StateCancelled, "cancelled", false, true},
		{"cancelled, spelled otherwise", chat, answering(200, stream, text+`data: {"choices":[{"delta":{},"finish_reason":"canceled"}]}`+"\n\ndata: [DONE]\n\n"), event.StateCancelled, "cancelled", false, true},
		{"cancelled response", "/v1/responses", answering(200, stream, `data: {"type":"response.done","response":{"status":"cancelled"}}`+"\n\n"), event.StateCancelled, "cancelled", false, false},
		{"an empty error", chat, answering(200, stream, text+`data: {"choices":[{"delta":{},"finish_reason":"stop","error":null}],"error":""}`+"\n\ndata: [DONE]\n\n"), event.StateFinished, "stop", false, true},
		{"stopped without an end", chat, answering(200, stream, text), event.StateFailed, "the stream stopped before its final message", false, true},
		{"died in the middle", chat, dying(stream, text+`data: {"choices":[{"del`), event.StateFailed, "the server closed the connection before the end of its answer", true, true},
		{"died before", chat, dying("", ""), event.StateFailed, "the server closed the connection before the end of its answer", false, false},
		{"died behind the end", chat, dying(stream, text+"data: [DONE]\n\n"), event.StateFinished, "", true, true},
		{"promised more", chat, half, event.StateFailed, "the server closed the connection before the end of its answer", true, false},
		{"HTML for an answer", chat, answering(200, "text/html", "<html>"+secret+"</html>"), event.StateFinished, "not read: neither JSON nor a stream of events", false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := behind(t, c.h)
			res := r.post(t, c.path, `{"prompt":"`+secret+`"}`)
			_, err := io.ReadAll(res.Body)
			res.Body.Close()
			if (err != nil) != c.cut {
				t.Errorf("the client sees %v", err)
			}
			eventtest.Wait(t, "the request ends", func() bool { return len(r.requests()) == 1 })
			logged := r.requests()[0]
			if logged.ended.State != c.state || logged.outcome.Reason != c.reason || (logged.generated() > 0) != c.counted {
				t.Errorf("%v: %q with %d tokens, want %v: %q", logged.ended.State, logged.outcome.Reason, logged.generated(), c.state, c.reason)
			}
			for _, e := range r.All() {
				if strings.Contains(fmt.Sprintf("%+v %+v", e, e.Data), secret) {
					t.Errorf("%+v holds what is secret", e)
				}
			}
		})
	}
}

// dying is a server whose connection breaks after it sent text. It sends no answer if kind is "".
func dying(kind, text string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		if kind != "" {
			w.Header().Set("Content-Type", kind)
			_, _ = io.WriteString(w, text)
			flush(w)
		}
		panic(http.ErrAbortHandler)
	}
}

// half is a server that sends fewer bytes than its Content-Length.
func half(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", "1000")
	_, _ = io.WriteString(w, `{"choices":[]`)
}

// TestCancel: if the client disconnects, the server sees it, and the tokens so far are counted.
func TestCancel(t *testing.T) {
	for name, first := range map[string]string{"before a token": "", "after a token": `data: {"choices":[{"delta":{"content":"a"}}]}` + "\n\n"} {
		t.Run(name, func(t *testing.T) {
			closed := make(chan struct{})
			r := behind(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				if first != "" {
					w.Header().Set("Content-Type", stream)
					_, _ = io.WriteString(w, first)
					flush(w)
				}
				<-r.Context().Done()
				close(closed)
			}))
			ctx, leave := context.WithCancel(t.Context())
			defer leave()
			req, err := http.NewRequestWithContext(ctx, http.MethodPost, r.proxy.Address()+chat, strings.NewReader(`{}`))
			if err != nil {
				t.Fatal(err)
			}
			if first == "" {
				go func() {
					for r.proxy.Live() == 0 {
						time.Sleep(time.Millisecond)
					}
					leave()
				}()
				_, err = r.client.Do(req)
				if err == nil {
					t.Fatal("there was an answer")
				}
			} else {
				res, err := r.client.Do(req)
				if err != nil {
					t.Fatal(err)
				}
				defer res.Body.Close()
				if _, err := io.ReadFull(res.Body, make([]byte, len(first))); err != nil {
					t.Fatal(err)
				}
				leave()
			}
			<-closed
			eventtest.Wait(t, "the request ends", func() bool { return len(r.requests()) == 1 })
			logged := r.requests()[0]
			if want := strings.Count(first, "content"); logged.ended.State != event.StateCancelled || logged.outcome.Reason != "cancelled" || logged.outcome.Generated != want {
				t.Errorf("%v %+v, want cancelled after %d tokens", logged.ended.State, logged.outcome, want)
			}
		})
	}
}

// TestServerThatCannotBeReached: the client gets an error, the link event says so, and the proxy notices when the
// server is back.
func TestServerThatCannotBeReached(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	at := l.Addr().String()
	l.Close()
	r := &rig{memory: new(memory), clock: engine.NewClock()}
	r.front(t, "http://"+at+"/v1/")
	res, text, logged := r.one(t, chat, `{}`)
	if res.StatusCode != http.StatusBadGateway || !strings.Contains(text, `"message":"llmtop proxy: http://`+at+`: the server cannot be reached: connect`) {
		t.Errorf("%d %s", res.StatusCode, text)
	}
	if !strings.HasPrefix(logged.outcome.Reason, "the server cannot be reached: connect") || logged.ended.State != event.StateFailed {
		t.Errorf("%v %q", logged.ended.State, logged.outcome.Reason)
	}
	if e := r.engine(); e.Remote.Link != event.LinkDisconnected || e.Remote.Address != "http://"+at || e.State != event.EngineStarting {
		t.Errorf("%v, link %v to %s: %s", e.State, e.Remote.Link, e.Remote.Address, e.Remote.Reason)
	}
	l, err = net.Listen("tcp", at)
	if err != nil {
		t.Skipf("another process took the port of this test: %v", err)
	}
	server := &httptest.Server{Listener: l, Config: &http.Server{Handler: answering(200, "application/json", `{}`)}}
	server.Start()
	defer server.Close()
	eventtest.Wait(t, "the server is noticed", func() bool {
		e := r.engine()
		return e.Remote.Link == event.LinkConnected && e.State == event.EngineReady
	})
	if res, _, logged := r.one(t, chat, `{}`); res.StatusCode != 200 || logged.ended.State != event.StateFinished {
		t.Errorf("%d, %v", res.StatusCode, logged.ended.State)
	}
}

// TestWhatCannotBeUsed: invalid addresses are refused with a reason.
func TestWhatCannotBeUsed(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	for _, c := range []struct{ to, listen, want string }{
		{"localhost:8080", "127.0.0.1:0", "write http://HOST:PORT or https://HOST"},
		{"http://:8080", "127.0.0.1:0", "write http://HOST"},
		{"http://secret@host", "127.0.0.1:0", "remove the user and password"},
		{"http://host/?key=secret", "127.0.0.1:0", "remove the query"},
		{"http://u:secret@host/%zz", "127.0.0.1:0", "not a URL"},
		{"u:secret@host", "127.0.0.1:0", "write http://HOST"},
		{"http://host", "0.0.0.0:0", "other machines could reach the server"},
		{"http://host", ":0", "other machines could reach the server"},
		{"http://host", "example.org:80", "other machines could reach the server"},
		{"http://host", taken.Addr().String(), "listen at " + taken.Addr().String() + ": bind: "},
		{"http://host", "nonsense", "missing port"},
	} {
		p, err := New(Options{To: c.to, Listen: c.listen})
		if err == nil {
			p.Close()
			t.Errorf("%s behind %s was taken", c.to, c.listen)
		} else if !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s behind %s: %v, want %q", c.to, c.listen, err, c.want)
		}
	}
	for _, listen := range []string{"127.0.0.1:0", "localhost:0"} {
		p, err := New(Options{To: "http://host", Listen: listen})
		if err != nil {
			t.Errorf("%s: %v", listen, err)
			continue
		}
		p.Close()
	}
	p, err := New(Options{To: "https://host/openai/v1", Listen: "0.0.0.0:0", AllowRemote: true})
	if err != nil {
		t.Fatal(err)
	}
	p.Close()
	if p.Target() != "https://host/openai" || p.Local() {
		t.Errorf("target %s, local %v", p.Target(), p.Local())
	}
}
