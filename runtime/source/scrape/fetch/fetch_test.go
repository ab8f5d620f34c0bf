package fetch

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

const secret = "sk-very-secret"

// client returns a client for an address, with a key.
func client(t *testing.T, at string, opt Options) *Client {
	t.Helper()
	opt.Key = secret
	c, err := New(at, opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// read requests a path and reads the whole response.
func read(c *Client, path string) (string, error) {
	a, err := c.Get(context.Background(), path)
	if err != nil {
		return "", err
	}
	defer a.Close()
	raw, err := io.ReadAll(a.Body)
	return string(raw), err
}

// raw starts a server that sends the same bytes on each connection, and then closes it or keeps it open.
func raw(t *testing.T, answer string, hold bool) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				head := make([]byte, 4096)
				_, _ = conn.Read(head)
				_, _ = io.WriteString(conn, answer)
				for hold {
					if _, err := conn.Read(head); err != nil {
						return
					}
				}
			}()
		}
	}()
	return "http://" + l.Addr().String()
}

func compress(text string) string {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = io.WriteString(w, text)
	_ = w.Close()
	return b.String()
}

func TestBadServers(t *testing.T) {
	const head = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n"
	bomb := compress(strings.Repeat("0", 64<<20))
	for _, c := range []struct {
		name, answer string
		hold         bool
		want, err    string
	}{
		{"whole", head + "Content-Length: 2\r\n\r\nab", false, "ab", ""},
		{"gzip", head + "Content-Encoding: gzip\r\n\r\n" + compress("ab"), false, "ab", ""},
		{"hangs", "", true, "", "no response in time"},
		{"hangs in its head", head, true, "", "no response in time"},
		{"hangs in its body", head + "Content-Length: 9\r\n\r\nab", true, "ab", "no response in time"},
		{"endless head", head + "X: " + strings.Repeat("x", 2<<20), true, "", "response header too large"},
		{"continues first", "HTTP/1.1 100 Continue\r\n\r\n" + head + "Content-Length: 2\r\n\r\nab", false, "ab", ""},
		{"no response", "", false, "", "connection closed without a response"},
		{"closes in the middle of a chunk", head + "Transfer-Encoding: chunked\r\n\r\n9\r\nab", false, "ab", "response truncated"},
		{"length too long", head + "Content-Length: 99\r\n\r\nab", false, "ab", "response truncated"},
		{"length too short", head + "Content-Length: 1\r\n\r\nab", false, "a", ""},
		{"huge length", head + "Content-Length: 99999999999999\r\n\r\nab", false, "ab", "response truncated"},
		{"gzip bomb", head + "Content-Encoding: gzip\r\n\r\n" + bomb, false, strings.Repeat("0", 1<<20), "response too large"},
		{"invalid gzip", head + "Content-Encoding: gzip\r\n\r\nabcdefghijklmnop", false, "", "decompress response: gzip: invalid header"},
		{"unknown encoding", head + "Content-Encoding: br\r\n\r\nab", false, "", "response has an unsupported content encoding"},
		{"too large", head + "\r\n" + strings.Repeat("x", 2<<20), false, strings.Repeat("x", 1<<20), "response too large"},
		{"exactly at the limit", head + "\r\n" + strings.Repeat("x", 1<<20), false, strings.Repeat("x", 1<<20), ""},
	} {
		opt := Options{MaxBytes: 1 << 20, Timeout: time.Minute}
		if c.hold {
			opt.Timeout = 200 * time.Millisecond
		}
		got, err := read(client(t, raw(t, c.answer, c.hold), opt), "/metrics")
		if got != c.want || fmt.Sprint(err) != orNil(c.err) {
			t.Errorf("%s: %.40q, %v; want %.40q, %s", c.name, got, err, c.want, c.err)
		}
	}
}

// TestDenseJSON checks that JSON whose elements are larger in memory than their text is refused.
func TestDenseJSON(t *testing.T) {
	for n, want := range map[int]string{100: "<nil>", 1 << 20: "response is not the expected JSON"} {
		list := "[" + strings.Repeat("{},", n) + "{}]"
		var into []struct{ A, B, C, D string }
		err := client(t, raw(t, "HTTP/1.1 200 OK\r\n\r\n"+list, false), Options{}).JSON(t.Context(), "/slots", &into)
		if fmt.Sprint(err) != want {
			t.Errorf("%d objects: %v, want %s", n, err, want)
		}
	}
}

func orNil(text string) string {
	if text == "" {
		return "<nil>"
	}
	return text
}

// TestConnectionsAreKept checks that requests share a connection, and that one which the server has closed is replaced.
func TestConnectionsAreKept(t *testing.T) {
	var made atomic.Int64
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/last" {
			w.Header().Set("Connection", "close")
		}
		_, _ = io.WriteString(w, strings.Repeat("a", 5000))
	}))
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			made.Add(1)
		}
	}
	s.Start()
	defer s.Close()
	c := client(t, s.URL, Options{})
	for i, step := range []struct {
		path string
		want int64 // connections so far
	}{{"/", 1}, {"/", 1}, {"/last", 1}, {"/", 2}, {"/", 2}, {"closed", 3}, {"/", 3}} {
		if step.path == "closed" {
			s.CloseClientConnections()
			step.path = "/"
		}
		if text, err := read(c, step.path); len(text) != 5000 || err != nil {
			t.Fatalf("%d: %d bytes, %v", i, len(text), err)
		}
		if n := made.Load(); n != step.want {
			t.Errorf("%d: %d connections, want %d", i, n, step.want)
		}
	}
}

func TestSlowBody(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for r.Context().Err() == nil {
			_, _ = io.WriteString(w, "x")
			w.(http.Flusher).Flush()
			select {
			case <-r.Context().Done():
			case <-time.After(time.Millisecond):
			}
		}
	}))
	defer s.Close()
	if _, err := read(client(t, s.URL, Options{Timeout: 100 * time.Millisecond}), "/"); !errors.Is(err, errTimeout) {
		t.Errorf("a slow body ends with %v", err)
	}
}

func TestConnectionRefused(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	at := "http://" + l.Addr().String()
	_ = l.Close()
	if _, err := read(client(t, at, Options{}), "/"); err == nil || strings.Contains(err.Error(), secret) {
		t.Errorf("connection refused: %v", err)
	}
}

func TestRedirectsStayOnTheHost(t *testing.T) {
	var key string
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { key = r.Header.Get("Authorization") }))
	defer other.Close()
	mux := http.NewServeMux()
	mux.HandleFunc("/here", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/there?q=1", http.StatusFound) })
	mux.HandleFunc("/there", func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, r.URL.RawQuery+" "+r.Header.Get("Authorization"))
	})
	mux.HandleFunc("/away", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, other.URL+"/?k="+secret, http.StatusTemporaryRedirect)
	})
	mux.HandleFunc("/round", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/round", http.StatusFound) })
	s := httptest.NewServer(mux)
	defer s.Close()
	c := client(t, s.URL, Options{})
	if got, err := read(c, "/here"); got != "q=1 Bearer "+secret || err != nil {
		t.Errorf("same host: %q, %v", got, err)
	}
	if _, err := read(c, "/away"); err == nil || !strings.Contains(err.Error(), "redirect to another host: attach to "+other.URL+" instead") || strings.Contains(err.Error(), secret) {
		t.Errorf("other host: %v", err)
	}
	if key != "" {
		t.Errorf("the other host got %q", key)
	}
	if _, err := read(c, "/round"); err == nil || err.Error() != "too many redirects" {
		t.Errorf("redirect loop: %v", err)
	}
}

func TestStatusErrors(t *testing.T) {
	var status int
	var page string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, page)
	}))
	defer s.Close()
	c := client(t, s.URL, Options{})
	for _, r := range []struct {
		status     int
		page, want string
	}{
		{200, `{"n":1}`, "<nil>"},
		{200, "<html><body>hello", "response is a web page"},
		{200, `{"n":`, "response is not the expected JSON"},
		{200, `{"n":"` + strings.Repeat("x", maxJSON) + `"}`, "response too large"},
		{401, `{"error":"Unauthorized"}`, "API key required"},
		{403, "", "API key required"},
		{500, "<html>", "HTTP 500 Internal Server Error"},
		{501, `{"error":{"code":501,"message":"This server does not support metrics endpoint."}}`, "HTTP 501: This server does not support metrics endpoint."},
		{503, `{"error":"busy"}`, "HTTP 503: busy"},
		{404, `{"message":"no such page"}`, "HTTP 404: no such page"},
	} {
		status, page = r.status, r.page
		var into struct{ N any }
		if err := c.JSON(context.Background(), "/", &into); fmt.Sprint(err) != r.want {
			t.Errorf("%d %.30q: %v, want %s", r.status, r.page, err, r.want)
		}
	}
}

func TestAddresses(t *testing.T) {
	for in, want := range map[string]string{
		"http://h:8000":            "http://h:8000",
		"http://h:8000/":           "http://h:8000",
		"http://h:8000/v1/":        "http://h:8000",
		"https://h/llm/v1":         "https://h/llm",
		"http://h:8000/metrics":    "http://h:8000",
		"h:8000":                   `address "h:8000": write http://HOST:PORT or https://HOST`,
		"ftp://h":                  `address "ftp://h": write http://HOST:PORT or https://HOST`,
		"http://u:p@h:1":           `address "http://h:1": remove the user and password: pass a key with LLMTOP_API_KEY or --api-key-file`,
		"http://h:1/?token=secret": `address "http://h:1/": remove the query and the fragment`,
		"http://h:1/%zz":           `address "http://h:1/%zz": not a URL`,
		"http://h:1?token=secret":  `address "http://h:1": remove the query and the fragment`,
		"http://h:1#secret":        `address "http://h:1": remove the query and the fragment`,
		"http://[::1]:80/v1":       "http://[::1]:80",
		"http://u:secret/x@h":      `address "http://…": not a URL`,
		"http://u:1?secret@h":      `address "http://…": remove the query and the fragment`,
		"u:secret@h":               `address "h": write http://HOST:PORT or https://HOST`,
		"u:secret":                 `address "…": write http://HOST:PORT or https://HOST`,
	} {
		got := ""
		if c, err := New(in, Options{}); err != nil {
			got = err.Error()
		} else {
			got = c.Address()
		}
		if got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

func FuzzAddress(f *testing.F) {
	for _, seed := range []string{"http://h:8000/v1", "http://u:p@h", "h", "http://[::1]:8000/metrics?x=1", "://", "http://a@b@c/d@e"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, address string) {
		u, err := ParseAddress(address, "")
		if err == nil && (u.Host == "" || u.User != nil || u.RawQuery != "") {
			t.Errorf("%q is parsed as %q", address, u)
		}
	})
}

// TestText: a text that a server wraps is read as if it were not.
func TestText(t *testing.T) {
	const text = "# TYPE a gauge\na{b=\"c\"} 1\nd 2\n"
	quoted := fmt.Sprintf("%q", text)
	python := `b'` + strings.NewReplacer("\n", `\n`).Replace(text) + `'`
	for body, want := range map[string]string{
		text: text, quoted: text, "\ufeff  " + quoted + "\n": text, fmt.Sprintf("%q", quoted): text, python: text, fmt.Sprintf("%q", python): text,
		`{"status":"ok","metrics":` + quoted + `}`:  text + "\nok",
		`["# TYPE a gauge","a{b=\"c\"} 1","d 2"]`:   strings.TrimSuffix(text, "\n"),
		`{"data":{"text":` + quoted + `,"time":1}}`: text,
		`[{"iter":1}]`:  "",
		`{"a",b="c"} 1`: `{"a",b="c"} 1`,
		"batch 3\n":     "batch 3\n",
		`"half of`:      `"half of`,
		"":              "",
	} {
		a := &Response{Body: strings.NewReader(body)}
		r, err := a.Text()
		if err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(r); string(got) != want || err != nil {
			t.Errorf("%q: %q, %v, want %q", body, got, err, want)
		}
	}
}

func FuzzText(f *testing.F) {
	for _, body := range []string{`"a\nb"`, `b'a\nb'`, `{"a":["b",{"c":"d"}]}`, `"\"x\""`, "b'"} {
		f.Add(body)
	}
	f.Fuzz(func(t *testing.T, body string) {
		if got := unwrap(body); len(got) > 3*len(body) {
			t.Errorf("%d bytes of %d", len(got), len(body))
		}
	})
}

// TestAbove: metrics of an address with a path may be at a folder above it.
func TestAbove(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.URL.RequestURI()) }))
	t.Cleanup(s.Close)
	for path, want := range map[string]string{
		"": "", "/": "", "/v1": "", "/engines/v1": "/metrics?a=b", "/x/y/z": "/x/y/metrics?a=b /x/metrics?a=b /metrics?a=b", "/a/b/c/d": "/a/b/c/metrics?a=b /a/b/metrics?a=b /a/metrics?a=b",
	} {
		c := client(t, s.URL+path, Options{})
		var got []string
		for _, above := range c.Above("/metrics?a=b") {
			text, err := read(c, above)
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, text)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
}
