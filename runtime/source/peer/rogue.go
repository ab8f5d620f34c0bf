package peer

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

// Way is one kind of misbehaviour.
type Way struct {
	Name    string
	Answer  http.HandlerFunc
	Endless bool // a client without a time limit waits forever
}

// large is the size of bodies that are too large, line that of lines that are too long, in bytes.
const (
	large = 64 << 20
	line  = 10 << 20
)

// Ways returns all ways, made from a good answer of at least 16 bytes and its media type. Following a redirect to
// another host fails the test.
func Ways(tb testing.TB, kind, text string) []Way {
	elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		tb.Errorf("a redirect to another host was followed: %s, Authorization %q", r.URL, r.Header.Get("Authorization"))
	}))
	tb.Cleanup(elsewhere.Close)
	head := "HTTP/1.1 200 OK\r\nContent-Type: " + kind + "\r\n"
	half := text[:len(text)/2]
	return []Way{
		{"hangs", func(_ http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			<-r.Context().Done()
		}, true},
		{"trickles", func(w http.ResponseWriter, r *http.Request) { trickle(w, r, kind, half) }, true},
		{"closes at once", raw(""), false},
		{"closes in its head", raw(head), false},
		{"does not speak HTTP", raw("SSH-2.0-OpenSSH_9.6\r\n"), false},
		{"closes in the middle of a chunk", raw(fmt.Sprintf("%sTransfer-Encoding: chunked\r\n\r\n%x\r\n%s", head, len(text), half)), false},
		{"Content-Length too large", raw(fmt.Sprintf("%sContent-Length: %d\r\n\r\n%s", head, len(text)+1000, text)), false},
		{"Content-Length too small", raw(head + "Content-Length: 9\r\n\r\n" + text), false},
		{"Content-Length is not a number", raw(head + "Content-Length: -9\r\n\r\n" + text), false},
		{"sends half of it", raw(fmt.Sprintf("%sContent-Length: %d\r\n\r\n%s", head, len(text), half)), false},
		{"sends a line of 10 MB", answering(kind, "", strings.Repeat("x", line)), false},
		{"sends 64 MB", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", kind)
			many(w)
		}, false},
		{"packs 64 MB", answering(kind, "gzip", bomb()), false},
		{"packs half of it", answering(kind, "gzip", packed(text)[:len(packed(text))/2]), false},
		{"marked as gzip but is not", answering(kind, "gzip", text), false},
		{"packs otherwise", answering(kind, "br", text), false},
		{"answers a web page", answering("text/html", "", "<html><head><title>Sign in</title></head></html>"), false},
		{"answers nothing", answering(kind, "", ""), false},
		{"answers 500", refusing(http.StatusInternalServerError), false},
		{"answers 503", refusing(http.StatusServiceUnavailable), false},
		{"wants a key", refusing(http.StatusUnauthorized), false},
		{"redirects to another host", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, elsewhere.URL+r.URL.Path, http.StatusTemporaryRedirect)
		}, false},
		{"redirects in a circle", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, r.URL.Path, http.StatusPermanentRedirect)
		}, false},
		{"redirects to nowhere", refusing(http.StatusFound), false},
	}
}

// trickle sends a byte now and then until the client disconnects.
func trickle(w http.ResponseWriter, r *http.Request, kind, text string) {
	w.Header().Set("Content-Type", kind)
	for i := 0; r.Context().Err() == nil; i++ {
		if _, err := io.WriteString(w, string(text[i%len(text)])); err != nil {
			return
		}
		_ = http.NewResponseController(w).Flush()
		select {
		case <-r.Context().Done():
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// raw sends bytes over the plain connection and closes it.
func raw(answer string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		c, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			panic(err)
		}
		_, _ = io.WriteString(c, answer)
		_ = c.Close()
	}
}

func answering(kind, packing, text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", kind)
		if packing != "" {
			w.Header().Set("Content-Encoding", packing)
		}
		_, _ = io.WriteString(w, text)
	}
}

func refusing(status int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }
}

// many writes too much data, until the client disconnects.
func many(w io.Writer) {
	zeros := bytes.Repeat([]byte("a 0\n"), 1<<18)
	for range large / len(zeros) {
		if _, err := w.Write(zeros); err != nil {
			return
		}
	}
}

func packed(text string) string {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	_, _ = io.WriteString(w, text)
	_ = w.Close()
	return out.String()
}

// bomb is small, and large when decompressed.
var bomb = sync.OnceValue(func() string {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	many(w)
	_ = w.Close()
	return out.String()
})
