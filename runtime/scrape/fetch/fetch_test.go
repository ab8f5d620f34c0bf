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
	"testing"
	"time"
)

const secret = "sk-very-secret"

// client asks the server at an address, with a key.
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

// read asks for a path and reads the whole answer.
func read(c *Client, path string) (string, error) {
	a, err := c.Get(context.Background(), path)
	if err != nil {
		return "", err
	}
	defer a.Close()
	raw, err := io.ReadAll(a.Body)
	return string(raw), err
}

// raw is a server that answers each connection with the same bytes and closes it, or keeps it open.
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

func packed(text string) string {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = io.WriteString(w, text)
	_ = w.Close()
	return b.String()
}

func TestAnswersOfBadServers(t *testing.T) {
	const head = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n"
	bomb := packed(strings.Repeat("0", 64<<20))
	for _, c := range []struct {
		name, answer string
		hold         bool
		want, err    string
	}{
		{"whole", head + "Content-Length: 2\r\n\r\nab", false, "ab", ""},
		{"packed", head + "Content-Encoding: gzip\r\n\r\n" + packed("ab"), false, "ab", ""},
		{"hangs", "", true, "", "does not answer in time"},
		{"hangs in its head", head, true, "", "does not answer in time"},
		{"hangs in its body", head + "Content-Length: 9\r\n\r\nab", true, "ab", "does not answer in time"},
		{"says nothing", "", false, "", "closed the connection without an answer"},
		{"closes in the middle of a chunk", head + "Transfer-Encoding: chunked\r\n\r\n9\r\nab", false, "ab", "broke off in the middle of an answer"},
		{"says a length that is too long", head + "Content-Length: 99\r\n\r\nab", false, "ab", "broke off in the middle of an answer"},
		{"says a length that is too short", head + "Content-Length: 1\r\n\r\nab", false, "a", ""},
		{"says a length that is huge", head + "Content-Length: 99999999999999\r\n\r\nab", false, "ab", "broke off in the middle of an answer"},
		{"packs what explodes", head + "Content-Encoding: gzip\r\n\r\n" + bomb, false, strings.Repeat("0", 1<<20), "answers more than llmtop reads"},
		{"says packed and is not", head + "Content-Encoding: gzip\r\n\r\nabcdefghijklmnop", false, "", "answers what is no gzip: gzip: invalid header"},
		{"packs otherwise", head + "Content-Encoding: br\r\n\r\nab", false, "", "answers in an encoding that was not asked for"},
		{"sends too much", head + "\r\n" + strings.Repeat("x", 2<<20), false, strings.Repeat("x", 1<<20), "answers more than llmtop reads"},
		{"sends exactly as much as it may", head + "\r\n" + strings.Repeat("x", 1<<20), false, strings.Repeat("x", 1<<20), ""},
	} {
		opt := Options{Bytes: 1 << 20, Within: time.Minute}
		if c.hold {
			opt.Within = 200 * time.Millisecond
		}
		got, err := read(client(t, raw(t, c.answer, c.hold), opt), "/metrics")
		if got != c.want || fmt.Sprint(err) != orNil(c.err) {
			t.Errorf("%s: %.40q, %v; want %.40q, %s", c.name, got, err, c.want, c.err)
		}
	}
}

func orNil(text string) string {
	if text == "" {
		return "<nil>"
	}
	return text
}

func TestATrickleIsCutOff(t *testing.T) {
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
	if _, err := read(client(t, s.URL, Options{Within: 100 * time.Millisecond}), "/"); !errors.Is(err, errLate) {
		t.Errorf("a trickle ends with %v", err)
	}
}

func TestNobodyIsThere(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	at := "http://" + l.Addr().String()
	_ = l.Close()
	if _, err := read(client(t, at, Options{}), "/"); err == nil || strings.Contains(err.Error(), secret) {
		t.Errorf("nobody answers, and the error is %v", err)
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
		t.Errorf("on the host: %q, %v", got, err)
	}
	if _, err := read(c, "/away"); err == nil || !strings.Contains(err.Error(), "redirects to "+other.URL+":") || strings.Contains(err.Error(), secret) {
		t.Errorf("to another host: %v", err)
	}
	if key != "" {
		t.Errorf("the other host got %q", key)
	}
	if _, err := read(c, "/round"); err == nil || err.Error() != "redirects again and again" {
		t.Errorf("in a circle: %v", err)
	}
}

func TestRefusals(t *testing.T) {
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
		{200, "<html><body>hello", "answers a web page"},
		{200, `{"n":`, "answers what is not the JSON that was asked for"},
		{200, `{"n":"` + strings.Repeat("x", maxJSON) + `"}`, "answers more than llmtop reads"},
		{401, `{"error":"Unauthorized"}`, "needs a key"},
		{403, "", "needs a key"},
		{500, "<html>", "answers 500 Internal Server Error"},
		{501, `{"error":{"code":501,"message":"This server does not support metrics endpoint."}}`, "answers 501: This server does not support metrics endpoint."},
		{503, `{"error":"busy"}`, "answers 503: busy"},
		{404, `{"message":"no such page"}`, "answers 404: no such page"},
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
		"http://u:p@h:1":           `address "http://h:1": it must not hold a user or password: give the key as LLMTOP_API_KEY or in a file`,
		"http://h:1/?token=secret": `address "http://h:1/": it must end with its path`,
		"http://h:1/%zz":           `address "http://h:1/%zz": no URL`,
		"http://h:1?token=secret":  `address "http://h:1": it must end with its path`,
		"http://h:1#secret":        `address "http://h:1": it must end with its path`,
		"http://[::1]:80/v1":       "http://[::1]:80",
		"http://u:secret/x@h":      `address "http://…": no URL`,
		"http://u:1?secret@h":      `address "http://…": it must end with its path`,
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
		u, err := ParseAddress(address)
		if err == nil && (u.Host == "" || u.User != nil || u.RawQuery != "") {
			t.Errorf("%q is read as %q", address, u)
		}
		if shown := Strip(address); strings.Contains(shown, "?") || strings.Contains(shown, "#") {
			t.Errorf("%q is shown as %q", address, shown)
		}
		if host, _, _ := strings.Cut(strings.TrimPrefix(Strip(address), "http://"), "/"); strings.HasPrefix(address, "http://") && strings.Contains(host, "@") {
			t.Errorf("%q is shown as %q", address, Strip(address))
		}
	})
}
