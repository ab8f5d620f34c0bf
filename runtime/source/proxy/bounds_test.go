package proxy

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/event/eventtest"
)

// raw opens a plain TCP connection to an address.
func raw(t *testing.T, at string) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", at)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
	return conn
}

// sendRaw sends bytes to the proxy and returns its answer, with the body.
func (r *rig) sendRaw(t *testing.T, bytes string) (*http.Response, string) {
	t.Helper()
	conn := raw(t, r.proxy.listener.Addr().String())
	go func() { _, _ = io.WriteString(conn, bytes) }() // the proxy may answer before it has read everything
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatalf("%.80q: %v", bytes, err)
	}
	defer res.Body.Close()
	body, _ := io.ReadAll(res.Body) // the proxy may have closed the connection already
	return res, string(body)
}

// counting is a server that counts its requests.
func counting(reached *atomic.Int64) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		reached.Add(1)
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = io.WriteString(w, "{}")
	})
}

// TestRequestsThatAreNotPassed: the proxy answers these itself; they never reach the server.
func TestRequestsThatAreNotPassed(t *testing.T) {
	var reached atomic.Int64
	r := behind(t, counting(&reached))
	const local, post = "Host: localhost\r\n", "POST " + chat + " HTTP/1.1\r\nHost: localhost\r\n"
	for raw, want := range map[string]int{
		"OPTIONS * HTTP/1.1\r\n" + local + "\r\n":                                                      204,
		"GET * HTTP/1.1\r\n" + local + "\r\n":                                                          400,
		"CONNECT localhost:443 HTTP/1.1\r\nHost: localhost:443\r\n\r\n":                                405,
		"GET foo HTTP/1.1\r\n" + local + "\r\n":                                                        400,
		"GET / HTTP/1.1\r\n\r\n":                                                                       400, // no Host
		"GET / HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n":                              400,
		"GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n":                                                 403,
		"GET http://evil.example/ HTTP/1.1\r\nHost: localhost\r\n\r\n":                                 403,
		"OPTIONS * HTTP/1.1\r\nHost: evil.example\r\n\r\n":                                             403,
		"CONNECT evil.example:443 HTTP/1.1\r\nHost: evil.example:443\r\n\r\n":                          403,
		post + "Content-Length: abc\r\n\r\n":                                                           400,
		post + "Content-Length: -1\r\n\r\n":                                                            400,
		post + "Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}":                                      400,
		post + "Transfer-Encoding : chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n":                               400,
		post + "Transfer-Encoding: xchunked\r\n\r\n{}":                                                 501,
		post + "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n2\r\n{}\r\n0\r\n\r\n": 501,
		post + "Expect: something\r\nContent-Length: 2\r\n\r\n{}":                                      417,
		"GET / HTTP/1.1\r\n" + local + "X: " + strings.Repeat("x", 2*maxHeader) + "\r\n\r\n":           431,
		"GET / HTTP/1.1\r\n" + local + strings.Repeat("X: y\r\n", maxHeader/3) + "\r\n":                431,
		"GET / HTTP/1.1\r\n" + local + strings.Repeat("X: y\r\n", maxHeaders+1) + "\r\n":               431,
		"GET / HTTP/1.1\r\n" + local + "bad header\r\n\r\n":                                            400,
		"GET /" + strings.Repeat("x", 2*maxHeader) + " HTTP/1.1\r\n" + local + "\r\n":                  431,
	} {
		if res, body := r.sendRaw(t, raw); res.StatusCode != want {
			t.Errorf("%.100q is answered with %s %q, want %d", raw, res.Status, body, want)
		}
	}
	if n := reached.Load(); n != 0 {
		t.Errorf("%d requests reached the server", n)
	}
}

// TestHosts: the proxy accepts loopback names and the allowed names as Host, in any version of HTTP.
func TestHosts(t *testing.T) {
	var reached atomic.Int64
	server := httptest.NewUnstartedServer(counting(&reached))
	server.Config.Protocols = new(http.Protocols)
	server.Config.Protocols.SetHTTP1(true)
	server.Config.Protocols.SetUnencryptedHTTP2(true)
	server.Start()
	defer server.Close()
	r := behind(t, http.NotFoundHandler(), func(o *Options) { o.To, o.Allow = server.URL, []string{"box.example"} })
	for host, want := range map[string]int{
		"localhost": 200, "127.0.0.1:7080": 200, "127.5.5.5": 200, "[::1]:1": 200, "BOX.example:80": 200,
		"evil.example": 403, "localhost.evil.example:80": 403, "192.168.1.1": 403,
	} {
		before := reached.Load()
		res, body := r.sendRaw(t, "GET /v1/models HTTP/1.1\r\nHost: "+host+"\r\n\r\n")
		if res.StatusCode != want || (reached.Load() > before) != (want == 200) {
			t.Errorf("%s: %s %q", host, res.Status, body)
		}
		if want == 403 && (strings.Count(body, "\n") != 1 || !strings.Contains(body, "--allow-host")) {
			t.Errorf("%s: the refusal is %q", host, body)
		}
	}
	only := new(http.Protocols)
	only.SetUnencryptedHTTP2(true)
	transport := &http.Transport{Protocols: only}
	defer transport.CloseIdleConnections()
	for host, want := range map[string]int{"localhost": 200, "evil.example": 403} {
		req, err := http.NewRequest(http.MethodGet, r.proxy.Address(), nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Host = host
		res, err := transport.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		if res.StatusCode != want || res.ProtoMajor != 2 {
			t.Errorf("%s over %s: %s", host, res.Proto, res.Status)
		}
	}
	before := reached.Load()
	star, err := transport.RoundTrip(&http.Request{
		Method: http.MethodOptions, Host: "localhost", URL: &url.URL{Scheme: "http", Host: r.proxy.listener.Addr().String(), Path: "*"}, Header: http.Header{},
	})
	if err != nil {
		t.Fatal(err)
	}
	_ = star.Body.Close()
	if star.StatusCode != http.StatusNoContent || reached.Load() != before {
		t.Errorf("OPTIONS * over HTTP/2 is answered %s, %d reached the server", star.Status, reached.Load()-before)
	}
}

// TestBrokenBodies: a malformed body is the client's fault. The server stays marked as reachable.
func TestBrokenBodies(t *testing.T) {
	r := behind(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.Copy(io.Discard, r.Body); err == nil {
			t.Error("the server gets a whole body")
		}
	}))
	for _, path := range []string{chat, "/files"} {
		for _, body := range []string{"ZZ\r\nx", "5\r\nhello\r\nZZ\r\n", "5\r\nhelloworld\r\n0\r\n\r\n", "fffffffffffffffff\r\n"} {
			res, text := r.sendRaw(t, "POST "+path+" HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"+body)
			if res.StatusCode != http.StatusBadRequest || !strings.Contains(text, "the client sent a malformed body") || !res.Close {
				t.Errorf("%s %q is answered %s, closing %v: %s", path, body, res.Status, res.Close, text)
			}
		}
	}
	eventtest.Wait(t, "4 requests end", func() bool { return len(r.requests()) == 4 })
	for _, q := range r.requests() {
		if q.ended.State != event.StateFailed || !strings.HasPrefix(q.outcome.Reason, "the client sent a malformed body") {
			t.Errorf("the request is %v: %s", q.ended.State, q.outcome.Reason)
		}
	}
	if !r.proxy.link.reachable.Load() {
		t.Error("the server is marked as unreachable")
	}
}

// TestClientThatLeavesWhileItSends: the request counts as cancelled.
func TestClientThatLeavesWhileItSends(t *testing.T) {
	started, ended := make(chan struct{}), make(chan error)
	r := behind(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		started <- struct{}{}
		_, err := io.Copy(io.Discard, r.Body)
		ended <- err
	}))
	for i, head := range []string{"Content-Length: 100\r\n\r\n{", "Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n"} {
		conn := raw(t, r.proxy.listener.Addr().String())
		_, _ = io.WriteString(conn, "POST "+chat+" HTTP/1.1\r\nHost: localhost\r\n"+head)
		<-started
		_ = conn.Close()
		if err := <-ended; err == nil {
			t.Errorf("%q: the server gets a whole body", head)
		}
		eventtest.Wait(t, "the request ends", func() bool { return len(r.requests()) == i+1 })
		if q := r.requests()[i]; q.ended.State != event.StateCancelled {
			t.Errorf("%q: the request is %v: %s", head, q.ended.State, q.outcome.Reason)
		}
	}
	if !r.proxy.link.reachable.Load() {
		t.Error("the server is marked as unreachable")
	}
}

// TestHalfSentRequests: the proxy closes connections whose request headers do not end, first request or later, and no
// others.
func TestHalfSentRequests(t *testing.T) {
	var reached atomic.Int64
	r := behind(t, counting(&reached), func(o *Options) { o.headers = 50 * time.Millisecond })
	for range 50 {
		conn := raw(t, r.proxy.listener.Addr().String())
		_, _ = io.WriteString(conn, "GET / HTTP/1.1\r\nHost: localhost\r\nX: ")
		if rest, err := io.ReadAll(conn); err != nil || len(rest) > 0 {
			t.Fatalf("the answer is %q, %v", rest, err)
		}
	}
	conn := raw(t, r.proxy.listener.Addr().String())
	in := bufio.NewReader(conn)
	_, _ = io.WriteString(conn, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
	res, err := http.ReadResponse(in, nil)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, res.Body)
	_, _ = io.WriteString(conn, "GET / HTTP/1.1\r\nHost: ")
	if rest, err := io.ReadAll(in); err != nil || len(rest) > 0 {
		t.Errorf("after a whole request the answer is %q, %v", rest, err)
	}
	if n := reached.Load(); n != 1 {
		t.Errorf("%d requests have reached the server", n)
	}
}

// TestSlowHeadersOfTheServer: only the time from the first header byte to the last is limited. Before that, and after
// interim answers, the server may take any time.
func TestSlowHeadersOfTheServer(t *testing.T) {
	const bound = 100 * time.Millisecond
	done := make(chan struct{})
	r := behind(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		switch r.URL.Path {
		case "/interim":
			w.WriteHeader(http.StatusEarlyHints)
			fallthrough
		case chat: // prefill
			time.Sleep(4 * bound)
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, "{")
			flush(w)
			time.Sleep(4 * bound) // decode
			_, _ = io.WriteString(w, "}")
		default:
			conn, _, err := http.NewResponseController(w).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			defer conn.Close()
			_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Le")
			<-done
		}
	}), func(o *Options) { o.headers = bound })
	defer close(done)
	for path, want := range map[string]int{chat: 200, "/interim": 200, "/stalls": 502} {
		res := r.post(t, path, "{}")
		body, err := io.ReadAll(res.Body)
		_ = res.Body.Close()
		if err != nil || res.StatusCode != want {
			t.Errorf("%s is answered with %s %q, %v", path, res.Status, body, err)
		}
		if want == 502 && !strings.Contains(string(body), "did not finish its headers within") {
			t.Errorf("%s: %s", path, body)
		}
		if want == 200 && string(body) != "{}" {
			t.Errorf("%s: the body is %q", path, body)
		}
	}
}

// TestLargeHeadersOfTheServer: the size of the server's headers is limited like that of clients' headers.
func TestLargeHeadersOfTheServer(t *testing.T) {
	r := behind(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		size := maxHeader / 2
		if r.URL.Path == "/large" {
			size = 2 * maxHeader
		}
		w.Header().Set("X-Large", strings.Repeat("x", size))
	}))
	for path, want := range map[string]int{"/half": 200, "/large": 502} {
		conn := raw(t, r.proxy.listener.Addr().String())
		fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: localhost\r\nX-Large: %s\r\n\r\n", path, strings.Repeat("x", maxHeader/2))
		res, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil || res.StatusCode != want {
			t.Errorf("%s: %v, %v", path, res, err)
		}
	}
}

// TestOfferOfHTTP2: the proxy removes an upgrade offer to HTTP/2, as Java clients send it, and measures the request as
// usual.
func TestOfferOfHTTP2(t *testing.T) {
	r := behind(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for _, name := range []string{"Upgrade", "HTTP2-Settings", "Connection"} {
			if v := r.Header.Values(name); len(v) > 0 {
				t.Errorf("the server gets %s: %q", name, v)
			}
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"choices":[{"message":{"content":"x"}}],"usage":{"prompt_tokens":1,"completion_tokens":1}}`)
	}))
	res, _ := r.sendRaw(t, "POST "+chat+" HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade, HTTP2-Settings, close\r\nUpgrade: h2c\r\n"+
		"HTTP2-Settings: AAMAAABkAAQAAP__\r\nContent-Length: 2\r\n\r\n{}")
	if res.StatusCode != http.StatusOK {
		t.Errorf("the answer is %s", res.Status)
	}
	eventtest.Wait(t, "the request is reported", func() bool { return len(r.requests()) == 1 })
	if q := r.requests()[0]; q.ended.State != event.StateFinished || q.outcome.Generated != 1 {
		t.Errorf("the request is %v: %+v", q.ended.State, q.outcome)
	}
}
