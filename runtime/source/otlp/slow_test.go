package otlp

import (
	"bufio"
	"bytes"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/llmtop/llmtop/profiler/event"
)

// slow opens a connection and sends the start of an export.
func slow(t *testing.T, at string, length int, body []byte) net.Conn {
	t.Helper()
	u, err := url.Parse(at)
	if err != nil {
		t.Fatal(err)
	}
	c, err := net.Dial("tcp", u.Host)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	fmt.Fprintf(c, "POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n", u.Path, length)
	_, _ = c.Write(body) // a refused sender gets its answer meanwhile
	return c
}

// TestSlowSenders: a stalled export blocks no other sender, and an aborted one produces nothing.
func TestSlowSenders(t *testing.T) {
	r, log := running(t, "")
	good := sample(t, "vllm_otlp_request.json")
	var all []net.Conn
	for range 5 * maxBusy {
		all = append(all, slow(t, r.Address(), len(good), good[:len(good)/2]))
	}
	for range 3 {
		if got := post(t, r.Address(), jsonType, good); got.status != http.StatusOK {
			t.Fatalf("with hanging senders: %+v", got)
		}
	}
	before := len(log.OfKind(event.KindRequest))
	for _, c := range all[1:] {
		_ = c.Close()
	}
	if _, err := all[0].Write(good[len(good)/2:]); err != nil {
		t.Fatal(err)
	}
	res, err := http.ReadResponse(bufio.NewReader(all[0]), nil)
	if err != nil || res.StatusCode != http.StatusOK {
		t.Fatalf("the answer to a sender that continues late is %+v, %v", res, err)
	}
	if n := len(log.OfKind(event.KindRequest)); before == 0 || n != before {
		t.Errorf("%d events, %d before the export was resent", n, before)
	}
}

// TestManyLargeSenders: concurrent exports never hold more than maxReading; senders over the limit are asked to retry.
func TestManyLargeSenders(t *testing.T) {
	r, _ := running(t, "")
	half := append([]byte(`{"x":"`), bytes.Repeat([]byte("y"), maxBody/2)...)
	refused := make(chan int)
	var all []net.Conn
	for range 3 * maxReading / maxBody {
		c := slow(t, r.Address(), maxBody, half)
		all = append(all, c)
		go func() {
			res, err := http.ReadResponse(bufio.NewReader(c), nil)
			if err != nil {
				refused <- 0 // closed by the test
				return
			}
			refused <- res.StatusCode
		}()
	}
	if status := <-refused; status != http.StatusServiceUnavailable {
		t.Errorf("too much is answered with %d", status)
	}
	for _, c := range all {
		_ = c.Close()
	}
	for range len(all) - 1 {
		<-refused
	}
	if got := post(t, r.Address(), jsonType, []byte("{}")); got.status != http.StatusOK {
		t.Errorf("afterwards: %+v", got)
	}
}

// TestLongLines: long values within the limits are read.
func TestLongLines(t *testing.T) {
	r, log := running(t, "")
	good := string(sample(t, "vllm_otlp_request.json"))
	long := strings.Replace(good, "{", `{"passed over":"`+strings.Repeat("x", 10<<20)+`",`, 1)
	if got := post(t, r.Address(), jsonType, []byte(long)); got.status != http.StatusOK || len(log.OfKind(event.KindRequest)) == 0 {
		t.Errorf("a line of 10 MB: %+v", got)
	}
	unknown := protowire.AppendBytes(protowire.AppendTag(nil, 99, protowire.BytesType), make([]byte, 10<<20))
	if got := post(t, r.Address(), protobufType, unknown); got.status != http.StatusOK {
		t.Errorf("an unknown field of 10 MB: %+v", got)
	}
}
