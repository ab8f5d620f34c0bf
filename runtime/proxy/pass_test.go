package proxy

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/textproto"
	"net/url"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
)

// exchangeRaw sends bytes to an address and returns what a server behind it has seen: request line, header, body and trailer.
func exchangeRaw(t *testing.T, seen <-chan *http.Request, at, raw string) *http.Request {
	t.Helper()
	conn, err := net.Dial("tcp", at)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, raw); err != nil {
		t.Fatal(err)
	}
	if _, err := http.ReadResponse(bufio.NewReader(conn), nil); err != nil {
		t.Fatal(err)
	}
	return <-seen
}

// TestRequestsArriveAsTheyWereSent compares what a server gets directly with what it gets through the proxy.
func TestRequestsArriveAsTheyWereSent(t *testing.T) {
	seen := make(chan *http.Request, 1)
	r := behind(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		seen <- &http.Request{
			Method: r.Method, RequestURI: r.RequestURI, Header: r.Header, Body: io.NopCloser(bytes.NewReader(body)),
			ContentLength: r.ContentLength, TransferEncoding: r.TransferEncoding, Trailer: r.Trailer,
		}
	}))
	for _, raw := range []string{
		"GET / HTTP/1.1\r\n\r\n",
		"GET //a/../b//c HTTP/1.1\r\n\r\n",
		"GET /a%2fb/%7Euser/a|b?x=1;y=2&%zz&&q=%20+ HTTP/1.1\r\n\r\n",
		"GET /? HTTP/1.1\r\nUser-Agent: x\r\n\r\n",
		"DELETE /v1/files/%00 HTTP/1.1\r\nX-Forwarded-For: 1.2.3.4\r\nForwarded: for=1\r\nX-Forwarded-Host: a\r\nX-Forwarded-Proto: b\r\n\r\n",
		"GET /x HTTP/1.1\r\nAccept-Encoding: br\r\nCookie: a=b; c=d\r\nX-Many: 1\r\nX-Many: 2\r\nAuthorization: Bearer k\r\n\r\n",
		"POST /v1/chat/completions HTTP/1.1\r\nContent-Length: 17\r\nContent-Type: application/json\r\n\r\n{\"messages\":[ ]}\n",
		"POST /v1/chat/completions HTTP/1.1\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n3\r\n{\"m\r\n2;ext=1\r\n\":\r\n0\r\nX-Sum: 42\r\n\r\n",
		"POST /api/chat HTTP/1.1\r\nContent-Length: 0\r\n\r\n",
		"PUT /blob HTTP/1.1\r\nContent-Length: 4\r\nContent-Encoding: gzip\r\nTE: trailers\r\n\r\n\x1f\x8b\x00\xff",
		"OPTIONS /v1/models HTTP/1.1\r\nOrigin: http://x\r\nAccess-Control-Request-Method: POST\r\n\r\n",
		"BREW /pot HTTP/1.1\r\n\r\n",
		"POST /v1/messages HTTP/1.0\r\nContent-Length: 2\r\n\r\n{}",
	} {
		raw = strings.Replace(raw, "\r\n", "\r\nHost: example\r\n", 1)
		direct := exchangeRaw(t, seen, r.server.Listener.Addr().String(), raw)
		through := exchangeRaw(t, seen, r.proxy.listener.Addr().String(), raw)
		if !reflect.DeepEqual(direct, through) {
			t.Errorf("%q arrives as\n%+v, directly as\n%+v", raw, through, direct)
		}
	}
}

// reply is what a client sees of an answer.
type reply struct {
	Status  string
	Length  int64
	Coding  []string
	Header  http.Header
	Body    []byte
	Err     bool
	Trailer http.Header
}

func ask(t *testing.T, c *http.Client, method, at string, body []byte) reply {
	t.Helper()
	req, err := http.NewRequest(method, at, io.MultiReader(bytes.NewReader(body))) // of unknown length
	if err != nil {
		t.Fatal(err)
	}
	res, err := c.Do(req)
	if err != nil {
		return reply{Err: true}
	}
	defer res.Body.Close()
	got, err := io.ReadAll(res.Body)
	return reply{res.Status, res.ContentLength, res.TransferEncoding, res.Header, got, err != nil, res.Trailer}
}

// whim is a server whose answers are random, but the same for the same seed.
func whim(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	seed, err := strconv.ParseUint(r.URL.Query().Get("seed"), 10, 64)
	if err != nil {
		return
	}
	rng := rand.New(rand.NewPCG(seed, 0))
	h := w.Header()
	kinds := []string{"application/json", stream, lined, "text/html", "application/octet-stream", ""}
	h.Set("Content-Type", kinds[rng.IntN(len(kinds))])
	if h.Get("Content-Type") == "" {
		h["Content-Type"] = nil
	}
	h["Date"] = nil
	encodings := []string{"", "", "", "gzip", "br", "deflate", "zstd", "gzip, gzip"}
	if e := encodings[rng.IntN(len(encodings))]; e != "" {
		h.Set("Content-Encoding", e)
	}
	h.Add("X-Many", "1")
	h.Add("X-Many", fmt.Sprint(len(body)))
	announced, surprise := rng.IntN(4) == 0, rng.IntN(4) == 0
	if announced {
		h.Set("Trailer", "X-Sum")
	}
	known := rng.IntN(3) == 0 && !announced && !surprise
	if known {
		h.Set("Content-Length", fmt.Sprint(len(body)))
	}
	w.WriteHeader([]int{200, 200, 200, 201, 400, 404, 500, 599}[rng.IntN(8)])
	dies := rng.IntN(8) == 0
	for len(body) > 0 {
		n := 1 + rng.IntN(min(len(body), 1+rng.IntN(5000)))
		_, _ = w.Write(body[:n])
		if !known || rng.IntN(2) == 0 {
			flush(w)
		}
		if body = body[n:]; dies && len(body) > 0 && rng.IntN(3) == 0 {
			panic(http.ErrAbortHandler)
		}
	}
	if announced {
		h.Set("X-Sum", "42")
	}
	if surprise {
		h.Set(http.TrailerPrefix+"X-Late", "43")
	}
}

// FuzzPass has random answers come directly and through the proxy, and compares.
func FuzzPass(f *testing.F) {
	for seed := range uint64(40) {
		f.Add(seed, []byte(shapes[seed%uint64(len(shapes))].request))
		var body []byte
		for _, c := range shapes[seed%uint64(len(shapes))].chunks {
			body = append(body, c...)
		}
		f.Add(seed, body)
		f.Add(seed+1000, zipped(f, string(body)))
	}
	f.Add(uint64(7), bytes.Repeat([]byte("0123456789abcdef"), 20000))
	r := behind(f, http.HandlerFunc(whim))
	f.Fuzz(func(t *testing.T, seed uint64, body []byte) {
		paths := []string{"/unknown", "/v1/embeddings"}
		for _, d := range dialects {
			paths = append(paths, d.path)
		}
		to := fmt.Sprintf("%s?seed=%d", paths[seed%uint64(len(paths))], seed)
		direct := ask(t, r.client, http.MethodPost, r.server.URL+to, body)
		through := ask(t, r.client, http.MethodPost, r.proxy.Address()+to, body)
		if direct.Err { // how much arrives before a connection breaks is chance
			if !through.Err && through.Status != "502 Bad Gateway" { // which the proxy says where nothing came
				t.Errorf("the answer breaks directly, but not through the proxy: %+v", through)
			}
			return
		}
		if !reflect.DeepEqual(direct, through) {
			t.Errorf("through the proxy\n%+v, directly\n%+v", through, direct)
		}
	})
}

func zipped(t testing.TB, text string) []byte {
	t.Helper()
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	_, err := io.WriteString(w, text)
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// TestAnswersWithoutABody keep their lengths.
func TestAnswersWithoutABody(t *testing.T) {
	r := behind(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header()["Date"] = nil
		switch r.URL.Path {
		case "/none":
			w.WriteHeader(http.StatusNoContent)
		case "/same":
			w.WriteHeader(http.StatusNotModified)
		default:
			w.Header().Set("Content-Length", "12345")
		}
	}))
	for _, c := range []struct{ method, path string }{{"GET", "/none"}, {"GET", "/same"}, {"HEAD", "/"}, {"POST", "/none"}} {
		direct, through := ask(t, r.client, c.method, r.server.URL+c.path, nil), ask(t, r.client, c.method, r.proxy.Address()+c.path, nil)
		if !reflect.DeepEqual(direct, through) {
			t.Errorf("%s %s: through the proxy %+v, directly %+v", c.method, c.path, through, direct)
		}
	}
}

// TestInterimAnswers passes 1xx answers on as they come.
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
		t.Errorf("the proxy has made up the type %q", kind)
	}
}

// TestExpectation: the server decides whether the client is to send its body, and not the proxy.
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
		fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n", path)
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
		if err != nil || res.StatusCode != 200 {
			t.Fatalf("%v, %v", res, err)
		}
	}
}

// TestEarlyAnswer comes while the request is still being sent.
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

// TestUpgrade passes on what comes after another protocol was agreed upon, both ways.
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
	fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n", chat)
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
	if n := r.proxy.Stats(); n.Passed != 1 || n.Observed != 0 {
		t.Errorf("%+v", n)
	}
}

// TestHTTP2 passes requests on in the version that the client speaks.
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
	await(t, "both end", func() bool { return len(r.requests()) == 2 })
	for _, about := range r.requests() {
		if about.ended.State != event.StateFinished || about.generated() != 1 {
			t.Errorf("%v with %d tokens", about.ended.State, about.generated())
		}
	}
}

// TestPathOfTheServer stands before that of a request.
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

// TestDrain lets a request go on that is passing through when the proxy is to end, for a while.
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
				await(t, "no connection is taken", func() bool {
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
			about := r.requests()[0]
			if whole := err == nil && string(rest) == "data: [DONE]\n\n"; whole != (drain > 0) || (about.ended.State == event.StateFinished) != whole {
				t.Errorf("%q, %v, %v %q", rest, err, about.ended.State, about.outcome.Reason)
			}
			if last := r.all()[len(r.all())-1]; r.engine().State != event.EngineStopped || last.Kind != event.KindEngine {
				t.Errorf("the last event is %+v", last)
			}
		})
	}
}
