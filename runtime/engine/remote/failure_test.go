package remote

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime/engine"
)

const piece = `{"choices":[{"text":"a"}]}`

// raw answers over the plain connection and closes it.
func raw(answer string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		c, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			panic(err)
		}
		_, _ = io.WriteString(c, answer)
		_ = c.Close()
	}
}

func status(code int, kind, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", kind)
		w.WriteHeader(code)
		_, _ = io.WriteString(w, body)
	}
}

const chunked = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"

// framed returns a text as one chunk of a chunked body.
func framed(text string) string { return fmt.Sprintf("%x\r\n%s\r\n", len(text), text) }

// TestFailures: each kind of broken answer fails the request once, with a message of its own, and keeps the tokens so
// far.
func TestFailures(t *testing.T) {
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		want   string
		tokens int
	}{
		"JSON error":          {status(429, "application/json", `{"error":{"message":"slow down","type":"x"}}`), "the server answered 429 (Too Many Requests): slow down", 0},
		"bare error":          {status(500, "application/json", `{"error":"out of\nmemory"}`), "the server answered 500 (Internal Server Error): out of memory", 0},
		"list of details":     {status(422, "application/json", `{"detail":[{"loc":["body"],"msg":"field required"}]}`), "the server answered 422 (Unprocessable Entity): field required", 0},
		"page":                {status(502, "text/html", "<html><head><title>Bad\n Gateway</title></head></html>"), "the server answered 502 (Bad Gateway): an HTML page with the title Bad Gateway", 0},
		"untitled page":       {status(502, "text/html", "<html>"), "the server answered 502 (Bad Gateway): an HTML page", 0},
		"empty":               {status(503, "text/plain", ""), "the server answered 503 (Service Unavailable)", 0},
		"long":                {status(400, "text/plain", strings.Repeat("x", 1000)), "the server answered 400 (Bad Request): " + strings.Repeat("x", 300) + "…", 0},
		"not streamed":        {status(200, "application/json", `{"choices":[{"text":"all"}]}`), "the server does not stream: it answered with one JSON document", 0},
		"page instead":        {status(200, "text/html", "<html>\nhello"), "the answer stopped without a finish reason", 0},
		"error in the stream": {status(200, "text/event-stream", data(piece)+data(`{"error":{"message":"worker died"}}`)), "the server failed: worker died", 1},
		"error event":         {status(200, "text/event-stream", data(piece)+"event: error\n"+data("no memory")), "the server failed: no memory", 1},
		"error field":         {status(200, "text/event-stream", data(piece)+"error: {\"code\":500,\"message\":\"context shift\"}\n\n"), "the server failed: context shift", 1},
		"no end":              {status(200, "text/event-stream", data(piece)), "the answer stopped without a finish reason", 1},
		"no JSON":             {status(200, "text/event-stream", data(piece)+data("{")), "read answer: unexpected end of JSON input", 1},
		"another type":        {status(200, "text/event-stream", data(piece)+data(`{"choices":[{"text":7}]}`)), `read answer: field "choices.text" holds a number`, 1},
		"half a chunk":        {raw(chunked + framed(data(piece)) + "40\r\ndata: {\"cho"), "the server closed the connection in the middle of its answer", 1},
		"closed at once":      {raw(""), "the server closed the connection in the middle of its answer", 0},
		"half a header":       {raw("HTTP/1.1 200 OK\r\nContent-"), "the server does not answer in HTTP: malformed MIME header", 0},
		"no HTTP":             {raw("SSH-2.0-OpenSSH_9.6\r\n"), `the server does not answer in HTTP: malformed HTTP`, 0},
		"long line":           {raw(chunked + framed(data(piece)) + framed("data: "+strings.Repeat("x", 10<<20))), "the server sent a line of more than 8 MiB", 1},
		"long header":         {raw("HTTP/1.1 200 OK\r\nX-Y: " + strings.Repeat("x", maxHeader) + "\r\n\r\n"), "response header too large", 0},
		"redirect elsewhere": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://evil/v1", http.StatusTemporaryRedirect)
		}, "the server redirects to http://evil: use that address instead", 0},
		"redirect to a page": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/login?next=secret", http.StatusFound)
		}, "the server answered 302 (Found): it redirects to /login", 0},
		"redirect in circles": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, r.URL.Path, http.StatusTemporaryRedirect)
		}, "the server redirects too often", 0},
		"redirect to nowhere": {status(307, "text/plain", ""), "the server answered 307 (Temporary Redirect): it redirects to nowhere", 0},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				asked := 0
				s := begin(t, llama, Options{}, map[string]http.HandlerFunc{
					"POST /v1/completions": func(w http.ResponseWriter, r *http.Request) {
						asked++
						_, _ = io.Copy(io.Discard, r.Body)
						c.answer(w, r)
					},
				})
				got := s.do(t, engine.Request{Text: "x"})
				if got.State != event.StateFailed || got.Err == nil || !strings.Contains(got.Err.Error(), c.want) || got.Generated != c.tokens {
					t.Errorf("%v with %d tokens: %v; want %s with %d", got.State, got.Generated, got.Err, c.want, c.tokens)
				}
				if asked != 1 && name != "redirect in circles" {
					t.Errorf("the server got %d requests", asked)
				}
				requests := s.sink.OfKind(event.KindRequest)
				if len(requests) != 2 || !requests[1].State.Final() || requests[1].Data.(*event.Outcome).Reason != brief(got.Err.Error()) {
					t.Errorf("events of the request: %+v", requests)
				}
				s.closed()
			})
		})
	}
}

func TestRedirectOnTheHostIsFollowed(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := begin(t, llama, Options{}, map[string]http.HandlerFunc{
			"POST /v1/completions": func(w http.ResponseWriter, r *http.Request) {
				http.Redirect(w, r, "/other", http.StatusPermanentRedirect)
			},
			"POST /other": func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				if !strings.Contains(string(body), `"prompt":"x"`) {
					t.Errorf("got %s", body)
				}
				play(w, step{ms100, data(`{"choices":[{"text":"a","finish_reason":"stop"}]}`)})
			},
		})
		if got := s.do(t, engine.Request{Text: "x"}); got.State != event.StateFinished || s.tokens() != "100:1" {
			t.Errorf("%+v, tokens at %s", got, s.tokens())
		}
		s.closed()
	})
}

// TestCancelledAtServer: an answer that another request has cancelled is not finished.
func TestCancelledAtServer(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := begin(t, llama, Options{}, map[string]http.HandlerFunc{
			"POST /v1/completions": func(w http.ResponseWriter, _ *http.Request) {
				play(w, step{ms100, data(piece) + data(`{"choices":[{"text":"","finish_reason":"cancelled"}]}`) + data("[DONE]")})
			},
		})
		if got := s.do(t, engine.Request{Text: "x"}); got.State != event.StateCancelled || got.Reason != "cancelled" || got.Generated != 1 {
			t.Errorf("%+v", got)
		}
		s.closed()
	})
}

// TestSilence: a server that stops sending, or never ends its headers, fails the request.
func TestSilence(t *testing.T) {
	for name, answer := range map[string]http.HandlerFunc{
		"quiet stream": func(w http.ResponseWriter, r *http.Request) {
			play(w, step{ms100, data(piece)})
			<-r.Context().Done()
		},
		"endless headers": func(w http.ResponseWriter, r *http.Request) {
			c, _, err := w.(http.Hijacker).Hijack()
			if err != nil {
				t.Error(err)
			}
			defer c.Close()
			for line := "HTTP/1.1 200 OK\r\n"; err == nil; line = "X-Y: z\r\n" {
				_, err = io.WriteString(c, line)
				time.Sleep(time.Second)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				s := begin(t, llama, Options{Silence: time.Minute}, map[string]http.HandlerFunc{"POST /v1/completions": answer})
				began := time.Now()
				got := s.do(t, engine.Request{Text: "x"})
				if !errors.Is(got.Err, errSilent) {
					t.Errorf("%+v", got)
				}
				if took := time.Since(began); took > time.Minute+time.Second {
					t.Errorf("it took %v", took)
				}
				s.closed()
				time.Sleep(time.Minute) // until the server notices
			})
		})
	}
}

// TestCommentsAreNoSilence: a server that sends comments until the first token, as during a long prompt, is not silent.
func TestCommentsAreNoSilence(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := begin(t, llama, Options{Silence: time.Minute}, map[string]http.HandlerFunc{
			"POST /v1/completions": func(w http.ResponseWriter, r *http.Request) {
				for range 4 {
					play(w, step{40 * time.Second, ": keep-alive\n\n"})
				}
				play(w, step{40 * time.Second, data(piece) + data(`{"choices":[{"text":"","finish_reason":"stop"}]}`) + data("[DONE]")})
			},
		})
		if got := s.do(t, engine.Request{Text: "x"}); got.Err != nil || s.tokens() != "200000:1" {
			t.Errorf("%+v, tokens at %s", got, s.tokens())
		}
		s.closed()
	})
}

// TestServerThatGoesOnAfterTheEnd: a complete answer stays complete.
func TestServerThatGoesOnAfterTheEnd(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := begin(t, llama, Options{}, map[string]http.HandlerFunc{
			"POST /v1/completions": func(w http.ResponseWriter, r *http.Request) {
				play(w, step{ms100, data(piece) + data("[DONE]")})
				<-r.Context().Done()
			},
		})
		if got := s.do(t, engine.Request{Text: "x"}); got.State != event.StateFinished || got.Reason != reasonDone {
			t.Errorf("%+v", got)
		}
		s.closed()
	})
}

func TestCancel(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		gone := make(chan struct{})
		s := begin(t, llama, Options{}, map[string]http.HandlerFunc{
			"POST /v1/completions": func(w http.ResponseWriter, r *http.Request) {
				play(w, step{ms100, data(piece)})
				<-r.Context().Done()
				gone <- struct{}{}
			},
		})
		h, err := s.Submit(engine.Request{Text: "x"})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		s.Cancel(h.ID)
		s.Cancel(99)
		<-gone
		if got := h.Result(); got.State != event.StateCancelled || got.Reason != "cancelled" || got.Err != nil || got.Generated != 1 {
			t.Errorf("%+v", got)
		}
		if h, err = s.Submit(engine.Request{Text: "y"}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		go func() { <-gone }()
		s.closed() // ends running requests
		if got := h.Result(); got.State != event.StateCancelled {
			t.Errorf("%+v", got)
		}
		if _, err := s.Submit(engine.Request{Text: "z"}); !errors.Is(err, engine.ErrStopped) {
			t.Errorf("submitted to a client that has stopped: %v", err)
		}
	})
}

func TestSubmitRefuses(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := begin(t, llama, Options{API: OpenAIChat}, nil)
		if _, err := s.Submit(engine.Request{}); !errors.Is(err, engine.ErrEmptyPrompt) {
			t.Errorf("empty: %v", err)
		}
		if _, err := s.Submit(engine.Request{IDs: []int32{1}}); err == nil {
			t.Error("a chat took token ids")
		}
		s.closed()
	})
}

// TestNothingIsSentTwice: a request whose connection closes without an answer fails and is not sent again.
func TestNothingIsSentTwice(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := begin(t, llama, Options{}, nil)
		asked := 0
		s.transport = newTransport(s.opt.Clock, func(context.Context, string, string) (net.Conn, error) {
			here, there := net.Pipe()
			go func() {
				r := bufio.NewReader(there)
				for {
					q, err := http.ReadRequest(r)
					if err != nil {
						return
					}
					asked++
					_, _ = io.Copy(io.Discard, q.Body)
					if asked == 2 {
						_ = there.Close()
						return
					}
					answer := data(`{"choices":[{"text":"a","finish_reason":"stop"}]}`) + data("[DONE]")
					_, _ = io.WriteString(there, chunked+framed(answer)+"0\r\n\r\n")
				}
			}()
			return here, nil
		})
		if got := s.do(t, engine.Request{Text: "x"}); got.State != event.StateFinished {
			t.Errorf("%+v", got)
		}
		if got := s.do(t, engine.Request{Text: "x"}); got.State != event.StateFailed || asked != 2 {
			t.Errorf("%+v after %d requests", got, asked)
		}
		s.closed()
	})
}

// TestMessagesThatQuoteThePrompt checks that the reason of a failed request has no piece of its prompt, unless texts are kept.
func TestMessagesThatQuoteThePrompt(t *testing.T) {
	const prompt = "Dear Dr. Meyer, the test\nof Ms. Novak was positive."
	for name, c := range map[string]struct {
		body, prompt string
		keep, quoted bool
	}{
		"an echo":               {"cannot process: Dear Dr. Meyer, the test of Ms. Novak was positive.", prompt, false, false},
		"a piece":               {`{"error":{"message":"bad input 'test of Ms. Novak was p...'"}}`, prompt, false, false},
		"a short prompt":        {"no answer to Who is it?", "Who is it?", false, false},
		"another value":         {`{"input":"Dear Dr. Meyer, the test"}`, prompt, false, false},
		"texts are kept":        {"cannot process: Who is it?", "Who is it?", true, true},
		"a message of its own":  {`{"error":"the test of the model's limit failed"}`, prompt, false, true},
		"plain text of its own": {"upstream connect error", prompt, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				s := begin(t, llama, Options{}, map[string]http.HandlerFunc{
					"POST /v1/completions": func(w http.ResponseWriter, _ *http.Request) {
						w.WriteHeader(http.StatusBadRequest)
						_, _ = io.WriteString(w, c.body)
					},
				})
				got := s.do(t, engine.Request{Text: c.prompt, SendText: c.keep})
				if quoted := strings.Contains(got.Reason, "limit") || strings.Contains(got.Reason, "upstream") || strings.Contains(got.Reason, "Who"); quoted != c.quoted ||
					!c.keep && quotes(got.Reason, c.prompt) || !strings.Contains(got.Reason, "400 (Bad Request)") {
					t.Errorf("failed: %s", got.Reason)
				}
				s.closed()
			})
		})
	}
}
