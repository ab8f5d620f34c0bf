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
	"github.com/llmtop/llmtop/profiler/event/eventtest"
	"github.com/llmtop/llmtop/runtime/source/peer"
)

// TestLargeBodies: 64 MB pass in both directions unchanged.
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
		t.Errorf("%d of %d bytes came back, or they differ: %v", n, size, err)
	}
	eventtest.Wait(t, "the request ends", func() bool { return len(r.requests()) == 1 })
}

// TestAPackedStreamThatExplodes: a decompression bomb passes unchanged, and observing it costs no more time or memory
// than another answer.
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
	_, text, logged := r.one(t, chat, `{}`)
	if text != out.String() || logged.generated() > 1 {
		t.Errorf("%d of %d bytes arrived, or they differ; %d tokens", len(text), out.Len(), logged.generated())
	}
}

// TestRogues: through the proxy a client sees what a misbehaving server does, and each request ends in the right state
// with a reason.
func TestRogues(t *testing.T) {
	good := `data: {"choices":[{"delta":{"content":"a"}}]}` + "\n\n" + `data: {"choices":[{"delta":{"content":"b"}}]}` + "\n\n"
	for _, way := range peer.Ways(t, stream, good) {
		if way.Endless {
			continue // covered by TestServerThatHangs and TestTrickle
		}
		t.Run(way.Name, func(t *testing.T) {
			r := behind(t, http.HandlerFunc(way.Answer))
			direct, through := ask(t, r.client, http.MethodPost, r.server.URL+chat, []byte(`{}`)), ask(t, r.client, http.MethodPost, r.proxy.Address()+chat, []byte(`{}`))
			direct.Header.Del("Date")
			through.Header.Del("Date")
			switch {
			case direct.Status == "" || direct.Err: // how much arrives before a connection breaks is random
				if through.Status != "502 Bad Gateway" && !through.Err {
					t.Errorf("directly it breaks, through the proxy comes %s with %d bytes", through.Status, len(through.Body))
				}
			case direct.Status != through.Status || direct.Length != through.Length || !bytes.Equal(direct.Body, through.Body):
				t.Errorf("through the proxy comes %s, %d bytes; directly %s, %d bytes", through.Status, len(through.Body), direct.Status, len(direct.Body))
			}
			eventtest.Wait(t, "the request ends", func() bool { return len(r.requests()) == 1 })
			if logged := r.requests()[0]; logged.ended.State != event.StateFailed && logged.ended.State != event.StateFinished || logged.ended.State == event.StateFailed && logged.outcome.Reason == "" {
				t.Errorf("the request ended as %v: %q", logged.ended.State, logged.outcome.Reason)
			}
		})
	}
}
