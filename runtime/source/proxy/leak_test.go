package proxy

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/event/eventtest"
	"github.com/llmtop/llmtop/runtime/engine"
)

// answeringRaw returns the address of a server that reads the header of each request and answers with bytes that need not be HTTP.
func answeringRaw(t *testing.T, answer string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				if req, err := http.ReadRequest(bufio.NewReader(c)); err == nil {
					_, _ = io.Copy(io.Discard, req.Body)
					_, _ = io.WriteString(c, answer)
				}
			}()
		}
	}()
	return "http://" + l.Addr().String()
}

// emitted returns all texts of the events.
func (l *memory) emitted() string {
	var out strings.Builder
	for _, e := range l.All() {
		fmt.Fprintf(&out, "%s %+v\n", e.Text, e.Data)
	}
	return out.String()
}

// TestFailuresQuoteNothing: no event has a piece of a request or of an answer that breaks the rules of HTTP.
func TestFailuresQuoteNothing(t *testing.T) {
	const post = "POST " + chat + " HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n"
	const whole = post + "Content-Length: 2\r\n\r\n{}"
	const ok = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
	for name, c := range map[string]struct{ request, answer string }{
		"a body behind its last chunk":  {post + "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n{\"messages\":\"my SECRET text\"}\r\n\r\n", ""},
		"a body instead of a chunk":     {post + "Transfer-Encoding: chunked\r\n\r\nSECRET\r\n\r\n", ""},
		"a trailer that is a prompt":    {post + "Transfer-Encoding: chunked\r\nTrailer: X\r\n\r\n2\r\n{}\r\n0\r\nmy SECRET text\r\n\r\n", ""},
		"an answer without HTTP":        {whole, "The SECRET is\r\n\r\n"},
		"a strange status":              {whole, "HTTP/1.1 SECRET x\r\n\r\n"},
		"a strange header":              {whole, "HTTP/1.1 200 OK\r\nSet-Cookie : SECRET\r\n\r\n"},
		"a header without a colon":      {whole, "HTTP/1.1 200 OK\r\nmy SECRET text\r\n\r\n"},
		"a strange encoding":            {whole, "HTTP/1.1 200 OK\r\nTransfer-Encoding: SECRET\r\n\r\n"},
		"a strange length":              {whole, "HTTP/1.1 200 OK\r\nContent-Length: SECRET\r\n\r\n"},
		"a reason phrase":               {whole, "HTTP/1.1 401 SECRET\r\nContent-Length: 0\r\n\r\n"},
		"text instead of a chunk":       {whole, ok + "Transfer-Encoding: chunked\r\n\r\nSECRET\r\n"},
		"text behind a chunk":           {whole, ok + "Transfer-Encoding: chunked\r\n\r\n5\r\nhelloSECRET\r\n0\r\n\r\n"},
		"a trailer of the answer":       {whole, ok + "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nSECRET\r\n\r\n"},
		"text instead of events":        {whole, ok + "\r\ndata: SECRET\n\n"},
		"text instead of a zipped text": {whole, ok + "Content-Encoding: gzip\r\n\r\nSECRET"},
		"an error that names a word":    {whole, "HTTP/1.1 500 x\r\nContent-Type: application/json\r\n\r\n" + `{"error":{"type":"my_hidden_word","code":"hidden"}}`},
		"a reason that is a word":       {whole, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n" + `{"choices":[{"finish_reason":"hidden","message":{"content":"x"}}]}`},
		"an error with a message":       {whole, "HTTP/1.1 500 x\r\nContent-Type: application/json\r\n\r\n" + `{"error":{"type":"SECRET","message":"SECRET"}}`},
	} {
		t.Run(name, func(t *testing.T) {
			r := &rig{memory: new(memory), clock: engine.NewClock()}
			r.front(t, answeringRaw(t, c.answer))
			conn := raw(t, r.proxy.listener.Addr().String())
			_, _ = io.WriteString(conn, c.request)
			go func() { _, _ = io.Copy(io.Discard, conn) }()
			eventtest.Wait(t, "the request ends", func() bool { return len(r.requests()) == 1 })
			if text := r.emitted(); strings.Contains(text, "SECRET") || strings.Contains(text, "hidden") {
				t.Errorf("events have %q", text)
			}
			if got := r.requests()[0]; got.ended.State == event.StateFailed && got.outcome.Reason == "" {
				t.Error("failed without a reason")
			}
		})
	}
}
