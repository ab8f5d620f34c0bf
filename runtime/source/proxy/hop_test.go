package proxy

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/textproto"
	"net/url"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/event/eventtest"
)

// TestInterimAnswers: 1xx answers are forwarded as they arrive.
func TestInterimAnswers(t *testing.T) {
	r := behind(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		for i := range 3 {
			w.Header().Set("Link", fmt.Sprintf("</%d>", i))
			w.WriteHeader(http.StatusEarlyHints)
		}
		w.Header().Del("Link")
		w.Header()["Content-Type"] = nil
		_, _ = io.WriteString(w, "<html>")
	}))
	var hints []string
	req, err := http.NewRequest(http.MethodGet, r.proxy.Address(), nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := r.client.Do(req.WithContext(httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{
		Got1xxResponse: func(code int, header textproto.MIMEHeader) error {
			hints = append(hints, fmt.Sprint(code, header.Get("Link")))
			return nil
		},
	})))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if want := []string{"103</0>", "103</1>", "103</2>"}; !reflect.DeepEqual(hints, want) {
		t.Errorf("hints %q, want %q", hints, want)
	}
	if kind, there := res.Header["Content-Type"]; there {
		t.Errorf("the proxy invented the type %q", kind)
	}
}

// TestExpectation: the server, not the proxy, decides whether the client sends its body.
func TestExpectation(t *testing.T) {
	r := behind(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == chat {
			_, _ = io.Copy(w, r.Body)
			return
		}
		w.WriteHeader(http.StatusRequestEntityTooLarge)
	}))
	for path, want := range map[string]string{chat: "HTTP/1.1 100 Continue", "/other": "HTTP/1.1 413 Request Entity Too Large"} {
		conn, err := net.Dial("tcp", r.proxy.listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n", path)
		in := bufio.NewReader(conn)
		if line, err := in.ReadString('\n'); err != nil || strings.TrimSpace(line) != want {
			t.Fatalf("%s: %q, %v; want %q", path, line, err, want)
		}
		if path != chat {
			continue
		}
		_, _ = in.ReadString('\n')
		_, _ = io.WriteString(conn, "{}")
		res, err := http.ReadResponse(in, nil)
		if err == nil && res.StatusCode == http.StatusContinue { // the server's own, if net/http already sent one before
			res, err = http.ReadResponse(in, nil)
		}
		if err != nil || res.StatusCode != 200 {
			t.Fatalf("%v, %v", res, err)
		}
	}
}

// TestEarlyAnswer: an answer is forwarded while the request is still being sent.
func TestEarlyAnswer(t *testing.T) {
	r := behind(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).EnableFullDuplex()
		in := bufio.NewReader(r.Body)
		for {
			line, err := in.ReadString('\n')
			if err != nil {
				return
			}
			if _, err := io.WriteString(w, strings.ToUpper(line)); err != nil {
				return
			}
			flush(w)
		}
	}))
	body, send := io.Pipe()
	req, err := http.NewRequest(http.MethodPost, r.proxy.Address()+"/echo", body)
	if err != nil {
		t.Fatal(err)
	}
	go func() { _, _ = io.WriteString(send, "a\n") }()
	res, err := r.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	in := bufio.NewReader(res.Body)
	for _, want := range []string{"A\n", "B\n"} {
		if line, err := in.ReadString('\n'); err != nil || line != want {
			t.Fatalf("%q, %v; want %q", line, err, want)
		}
		if want == "A\n" {
			_, _ = io.WriteString(send, "b\n")
		}
	}
	send.Close()
	if rest, err := io.ReadAll(in); len(rest) > 0 || err != nil {
		t.Errorf("%q, %v", rest, err)
	}
}

// TestUpgrade: after a protocol upgrade, bytes pass in both directions.
func TestUpgrade(t *testing.T) {
	r := behind(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Upgrade") != "websocket" {
			t.Errorf("header %v", r.Header)
		}
		conn, both, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		fmt.Fprint(both, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n\x00hello")
		both.Flush()
		_, _ = io.Copy(conn, both)
	}))
	conn, err := net.Dial("tcp", r.proxy.listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n", chat)
	in := bufio.NewReader(conn)
	res, err := http.ReadResponse(in, &http.Request{Method: http.MethodGet})
	if err != nil || res.StatusCode != http.StatusSwitchingProtocols {
		t.Fatalf("%+v, %v", res, err)
	}
	for _, want := range []string{"\x00hello", "\xff\xfeping"} {
		if want != "\x00hello" {
			_, _ = io.WriteString(conn, want)
		}
		got := make([]byte, len(want))
		if _, err := io.ReadFull(in, got); err != nil || string(got) != want {
			t.Fatalf("%q, %v; want %q", got, err, want)
		}
	}
	if n := r.proxy.last.Load(); n != 0 {
		t.Errorf("%d requests are measured", n)
	}
}

// TestHTTP2: requests are forwarded in the HTTP version of the client.
func TestHTTP2(t *testing.T) {
	two := new(http.Protocols)
	two.SetUnencryptedHTTP2(true)
	two.SetHTTP1(true)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", stream)
		w.Header().Set("Trailer", "Grpc-Status")
		fmt.Fprintf(w, "data: {\"model\":%q,\"choices\":[{\"delta\":{\"content\":\"a\"},\"finish_reason\":\"stop\"}]}\n\n", r.Proto)
		w.Header().Set("Grpc-Status", "0")
	}))
	server.Config.Protocols = two
	server.Start()
	defer server.Close()
	r := behind(t, http.NotFoundHandler(), func(o *Options) { o.To = server.URL })
	only := new(http.Protocols)
	only.SetUnencryptedHTTP2(true)
	transport := &http.Transport{Protocols: only}
	defer transport.CloseIdleConnections()
	for want, client := range map[string]*http.Client{"HTTP/1.1": r.client, "HTTP/2.0": {Transport: transport}} {
		res, err := client.Post(r.proxy.Address()+chat, "application/json", strings.NewReader(`{}`))
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(res.Body)
		res.Body.Close()
		if err != nil || res.Proto != want || !strings.Contains(string(text), want) || res.Trailer.Get("Grpc-Status") != "0" {
			t.Errorf("%s: %q, %v, trailer %v; want %s", res.Proto, text, err, res.Trailer, want)
		}
	}
	eventtest.Wait(t, "both end", func() bool { return len(r.requests()) == 2 })
	for _, logged := range r.requests() {
		if logged.ended.State != event.StateFinished || logged.generated() != 1 {
			t.Errorf("%v with %d tokens", logged.ended.State, logged.generated())
		}
	}
}

// TestPathOfTheServer: the path of the server's address is a prefix of the request's path.
func TestPathOfTheServer(t *testing.T) {
	var got string
	r := behind(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got = r.RequestURI }))
	u, err := url.Parse(r.server.URL)
	if err != nil {
		t.Fatal(err)
	}
	r.stop()
	r.front(t, u.String()+"/base%2Fpath/v1/")
	for path, want := range map[string]string{
		"/v1/models?x=%20": "/base%2Fpath/v1/models?x=%20", "/a%2Fb": "/base%2Fpath/a%2Fb", "": "/base%2Fpath/",
	} {
		res := ask(t, r.client, http.MethodGet, r.proxy.Address()+path, nil)
		if res.Status != "200 OK" || got != want {
			t.Errorf("%s arrives as %s, want %s (%s)", path, got, want, res.Status)
		}
	}
}

// TestDrain: after a stop, a running request may continue for Options.Drain.
func TestDrain(t *testing.T) {
	for name, drain := range map[string]time.Duration{"cut off": 0, "waited for": time.Minute} {
		t.Run(name, func(t *testing.T) {
			next := make(chan struct{})
			text := `data: {"choices":[{"delta":{"content":"a"}}]}` + "\n\n"
			r := behind(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", stream)
				_, _ = io.WriteString(w, text)
				flush(w)
				select {
				case <-next:
					_, _ = io.WriteString(w, "data: [DONE]\n\n")
				case <-r.Context().Done():
				}
			}), func(o *Options) { o.Drain = drain })
			res := r.post(t, chat, `{}`)
			defer res.Body.Close()
			if _, err := io.ReadFull(res.Body, make([]byte, len(text))); err != nil {
				t.Fatal(err)
			}
			ended := make(chan struct{})
			go func() { r.stop(); close(ended) }()
			if drain > 0 {
				eventtest.Wait(t, "no connection is taken", func() bool {
					conn, err := net.Dial("tcp", r.proxy.listener.Addr().String())
					if err == nil {
						conn.Close()
					}
					return err != nil
				})
				close(next)
			}
			rest, err := io.ReadAll(res.Body)
			<-ended
			logged := r.requests()[0]
			if whole := err == nil && string(rest) == "data: [DONE]\n\n"; whole != (drain > 0) || (logged.ended.State == event.StateFinished) != whole {
				t.Errorf("%q, %v, %v %q", rest, err, logged.ended.State, logged.outcome.Reason)
			}
			if last := r.All()[len(r.All())-1]; r.engine().State != event.EngineStopped || last.Kind != event.KindEngine {
				t.Errorf("the last event is %+v", last)
			}
		})
	}
}

// TestConnectionsOfTheirOwn: llama.cpp's server closes connections after its answers without announcing it, so
// generating requests to it must not reuse a connection. Connections to other servers are reused.
func TestConnectionsOfTheirOwn(t *testing.T) {
	const requests = 6
	for name, each := range map[string]bool{"llama.cpp": true, "uvicorn": false} {
		r := behind(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			w.Header().Set("Server", name)
			_, _ = io.WriteString(w, r.RemoteAddr+" "+r.Header.Get("Connection"))
		}))
		res := ask(t, r.client, http.MethodGet, r.proxy.Address()+"/v1/models", nil) // clients usually start with this
		if res.Status != "200 OK" {
			t.Fatal(res.Status)
		}
		from := map[string]bool{}
		for range requests {
			_, text, _ := r.one(t, chat, `{}`)
			from[text] = true
			if !strings.HasSuffix(text, " ") {
				t.Errorf("the server gets a Connection header: %q", text)
			}
		}
		if (len(from) == requests) != each {
			t.Errorf("%s: %d requests came from %v", name, requests, from)
		}
	}
}
