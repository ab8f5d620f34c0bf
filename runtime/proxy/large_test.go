package proxy

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime/peer/rogue"
)

// TestLargeBodies: 64 MB pass there and back as they are.
func TestLargeBodies(t *testing.T) {
	const size = 64 << 20
	sent := make([]byte, size)
	_, _ = rand.NewChaCha8([32]byte{1}).Read(sent)
	r := behind(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).EnableFullDuplex()
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.Copy(w, r.Body)
	}))
	res, err := r.client.Post(r.proxy.Address()+chat, "application/json", bytes.NewReader(sent))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	sum := sha256.New()
	n, err := io.Copy(sum, res.Body)
	if want := sha256.Sum256(sent); err != nil || n != size || !bytes.Equal(sum.Sum(nil), want[:]) {
		t.Errorf("%d bytes came back of %d, or others: %v", n, size, err)
	}
	await(t, "the request ends", func() bool { return len(r.requests()) == 1 })
}

// TestAPackedStreamThatExplodes passes as it is, and takes no more time or memory to be observed than one that does not.
func TestAPackedStreamThatExplodes(t *testing.T) {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	_, _ = io.WriteString(w, `data: {"choices":[{"delta":{"content":"a"}}]}`+"\n\ndata: ")
	zeros := []byte(strings.Repeat("0", 1<<20))
	for range 64 {
		_, _ = w.Write(zeros)
	}
	_ = w.Close()
	r := behind(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", stream)
		w.Header().Set("Content-Encoding", "gzip")
		_, _ = w.Write(out.Bytes())
	}))
	_, text, about := r.one(t, chat, `{}`)
	if text != out.String() || about.generated() > 1 {
		t.Errorf("%d bytes came of %d, or others; %d tokens", len(text), out.Len(), about.generated())
	}
}

// TestRogues: a client sees through the proxy what the server does, and each request ends with a reason, or as it should.
func TestRogues(t *testing.T) {
	good := `data: {"choices":[{"delta":{"content":"a"}}]}` + "\n\n" + `data: {"choices":[{"delta":{"content":"b"}}]}` + "\n\n"
	for _, way := range rogue.Ways(t, stream, good) {
		if way.Endless {
			continue // TestServerThatHangs and TestTrickle have them
		}
		t.Run(way.Name, func(t *testing.T) {
			r := behind(t, http.HandlerFunc(way.Answer))
			direct, through := ask(t, r.client, http.MethodPost, r.server.URL+chat, []byte(`{}`)), ask(t, r.client, http.MethodPost, r.proxy.Address()+chat, []byte(`{}`))
			direct.Header.Del("Date")
			through.Header.Del("Date")
			switch {
			case direct.Status == "" || direct.Err: // how much arrives before a connection breaks is chance
				if through.Status != "502 Bad Gateway" && !through.Err {
					t.Errorf("directly it breaks, through the proxy comes %s with %d bytes", through.Status, len(through.Body))
				}
			case direct.Status != through.Status || direct.Length != through.Length || !bytes.Equal(direct.Body, through.Body):
				t.Errorf("through the proxy comes %s, %d bytes; directly %s, %d bytes", through.Status, len(through.Body), direct.Status, len(direct.Body))
			}
			await(t, "the request ends", func() bool { return len(r.requests()) == 1 })
			if about := r.requests()[0]; about.ended.State != event.StateFailed && about.ended.State != event.StateFinished || about.ended.State == event.StateFailed && about.outcome.Reason == "" {
				t.Errorf("it has ended as %v: %q", about.ended.State, about.outcome.Reason)
			}
		})
	}
}
