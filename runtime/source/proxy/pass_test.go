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
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/llmtop/llmtop/runtime/source/answers"
)

// exchangeRaw sends bytes to an address and returns what the server behind it received: request line, header, body and
// trailer.
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

// TestRequestsArriveAsTheyWereSent compares what a server receives directly and through the proxy.
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
	}), func(o *Options) { o.Allow = []string{"example"} })
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

// whim is a server with random answers that depend only on the seed.
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

// FuzzPass compares random answers received directly and through the proxy.
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
		for _, d := range answers.Dialects {
			paths = append(paths, d.Path)
		}
		to := fmt.Sprintf("%s?seed=%d", paths[seed%uint64(len(paths))], seed)
		direct := ask(t, r.client, http.MethodPost, r.server.URL+to, body)
		through := ask(t, r.client, http.MethodPost, r.proxy.Address()+to, body)
		if direct.Err { // how much arrives before a connection breaks is random
			if !through.Err && through.Status != "502 Bad Gateway" { // the proxy's answer if nothing arrived
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

// TestAnswersWithoutABody: answers without a body keep their Content-Length.
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
