package otlp

import (
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/event/eventtest"
)

// TestWhatIsNotTakenIsCounted: refused exports and rejected spans are counted, and the first refusal of each kind is
// logged.
func TestWhatIsNotTakenIsCounted(t *testing.T) {
	r, log := running(t, "")
	text := sample(t, "vllm_otlp_request.json")
	for range 2 { // the second export repeats its span
		if a := post(t, r.Address(), jsonType, text); a.status != http.StatusOK {
			t.Fatalf("%+v", a)
		}
	}
	for range 3 {
		post(t, r.Address(), jsonType, []byte("{"))
	}
	for _, path := range []string{"/v1/metrics", "/v1/logs", "/favicon.ico"} { // not traces
		post(t, strings.Replace(r.Address(), tracesPath, path, 1), jsonType, []byte("{}"))
	}
	preface(t, r.Address())
	want := map[string]float64{
		"exports_taken": 2, "exports_refused": 4, "requests_elsewhere": 3, "exports_deferred": 0, "spans_taken": 2, "spans_repeated": 1, "spans_rejected": 0, "spans_late": 0, "spans_dropped": 0, "spans_unknown": 0,
	}
	eventtest.Wait(t, "the counts", func() bool {
		all := log.OfKind(event.KindCounters)
		if len(all) == 0 {
			return false
		}
		c := all[len(all)-1].Data.(*event.Counters)
		for name, v := range want {
			if got := c.Get(name); !got.OK() || got.V != v {
				return false
			}
		}
		return len(c.Values) == len(want)
	})
	logs := ""
	for _, e := range log.OfKind(event.KindLog) {
		logs += e.Text + "\n"
	}
	for _, words := range []string{"was refused (400): ", "was answered with 404: llmtop accepts traces", "was refused (505): gRPC is not supported"} {
		if strings.Count(logs, words) != 1 {
			t.Errorf("%q was logged %d times in %q", words, strings.Count(logs, words), logs)
		}
	}
}

// preface opens a connection like a gRPC sender and waits for the answer.
func preface(t *testing.T, at string) {
	t.Helper()
	u, err := url.Parse(at)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := net.Dial("tcp", u.Host)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAtLeast(conn, make([]byte, 12), 12); err != nil {
		t.Error(err)
	}
}
