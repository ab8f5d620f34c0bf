package engine

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
)

const vllmText = "vllm:num_requests_running{model_name=%q} 3\nvllm:generation_tokens_total{model_name=%q} %d\n"

func vllmPages(model string, tokens int) map[string]string {
	return map[string]string{
		"/v1/models": strings.ReplaceAll(modelList("vllm"), `"m"`, `"`+model+`"`), "/version": `{"version":"0.11.2"}`,
		"/metrics": fmt.Sprintf(vllmText, model, model, tokens),
	}
}

func TestPoller(t *testing.T) {
	f := newFake(t, vllmPages("m", 100))
	w := startPoller(t, Options{Address: f.URL + "/v1"})
	e, _ := w.waitForLink(event.LinkConnected, "", 0)
	if e.Name != "vLLM" || e.Version != "0.11.2" || e.Remote.Address != f.URL || e.Caps != event.CapAggregates {
		t.Errorf("engine %+v", e)
	}
	first, n := waitFor(w, event.KindAggregates, 0, func(*event.Aggregates) bool { return true })
	if first.Interval != 0 || first.Generated.OK() || first.Running.V != 3 {
		t.Errorf("first report %+v", first)
	}
	f.setPage("/metrics", fmt.Sprintf(vllmText, "m", "m", 150))
	p, _ := waitFor(w, event.KindAggregates, n, func(p *event.Aggregates) bool { return p.Generated.V > 0 })
	if p.Generated.V != 50 || p.Interval <= 0 || p.Decode.V != 50/(float64(p.Interval)/1e9) {
		t.Errorf("second report %+v", p)
	}
}

func TestRestartWithAnotherModel(t *testing.T) {
	f := newFake(t, vllmPages("a", 100))
	w := startPoller(t, Options{Address: f.URL})
	_, n := waitFor(w, event.KindModel, 0, func(m *event.Model) bool { return m.Name == "a" })
	waitFor(w, event.KindAggregates, 0, func(*event.Aggregates) bool { return true })
	for path, page := range vllmPages("b", 7) {
		f.setPage(path, page)
	}
	waitFor(w, event.KindModel, n, func(m *event.Model) bool { return m.Name == "b" })
	// The counter of the other model is a new series, so no counter has fallen.
	f.setPage("/metrics", fmt.Sprintf(vllmText, "b", "b", 5))
	if e, _ := waitFor(w, event.KindEngine, 0, func(e *event.EngineInfo) bool { return e.Remote.Restarts == 1 }); e.Remote.Link != event.LinkConnected {
		t.Errorf("after a restart %+v", e.Remote)
	}
}

// TestBeforeFirstResponse expects an aggregate-only engine before the first response: its counts are absent, not 0.
func TestBeforeFirstResponse(t *testing.T) {
	f := newFake(t, nil)
	f.setHandler(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	w := startPoller(t, Options{Address: f.URL})
	e, _ := w.waitForLink(event.LinkDisconnected, "", 0)
	if e.Caps != event.CapAggregates || e.State != event.EngineStarting || e.Remote.Since != 0 {
		t.Errorf("engine %+v", e)
	}
}

// TestAnotherServerAtSameAddress: increases are reported only after the new server's counters were read twice.
func TestAnotherServerAtSameAddress(t *testing.T) {
	f := newFake(t, vllmPages("m", 100))
	w := startPoller(t, Options{Address: f.URL})
	waitFor(w, event.KindAggregates, 1, func(*event.Aggregates) bool { return true })
	for _, other := range []map[string]string{
		{"/v1/models": modelList("lmdeploy"), "/metrics": metricsOf(t, "lmdeploy")},
		llamaPages(t),
	} {
		engines := len(w.log.OfKind(event.KindEngine))
		f.setHandler(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "oh", http.StatusInternalServerError) })
		w.waitForLink(event.LinkDisconnected, "500", engines)
		n := len(w.log.OfKind(event.KindAggregates))
		f.mu.Lock()
		f.pages = other
		f.mu.Unlock()
		f.setHandler(nil)
		p, n := waitFor(w, event.KindAggregates, n, func(*event.Aggregates) bool { return true })
		if p.Generated.Origin != event.NotYet || p.Decode.Origin != event.NotYet || !p.Running.OK() {
			t.Errorf("after one poll:\n%s", describe(p))
		}
		waitFor(w, event.KindAggregates, n, func(p *event.Aggregates) bool { return p.Generated.OK() })
	}
}

func TestReconnect(t *testing.T) {
	f := newFake(t, vllmPages("m", 100))
	w := startPoller(t, Options{Address: f.URL})
	_, n := w.waitForLink(event.LinkConnected, "", 0)
	for _, c := range []struct {
		why   string
		serve http.HandlerFunc
	}{
		{"HTTP 500", func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "oh", http.StatusInternalServerError) }},
		{"web page", func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte("<html><body>come in</body></html>"))
		}},
		{"API key required", func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusUnauthorized) }},
		{"attach to http://elsewhere", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://elsewhere/x", http.StatusFound)
		}},
		{"truncated", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "1000")
			_, _ = w.Write([]byte("vllm:num_requests_running 3\n"))
		}},
	} {
		f.setHandler(c.serve)
		var e *event.EngineInfo
		why := c.why
		if why == "web page" { // first the metrics are invalid, then the server is no longer identified as an engine
			why = ""
		}
		e, n = w.waitForLink(event.LinkDisconnected, why, n)
		since := e.Remote.Since
		f.setHandler(nil)
		e, n = w.waitForLink(event.LinkConnected, "", n)
		if e.Remote.Since < since || e.Name != "vLLM" || e.Remote.Restarts != 0 {
			t.Errorf("after %q: %+v", c.why, e)
		}
	}
}

func TestNoOverlappingPolls(t *testing.T) {
	f := newFake(t, vllmPages("m", 1))
	w := startPoller(t, Options{Address: f.URL, Interval: time.Millisecond})
	w.waitForLink(event.LinkConnected, "", 0)
	at, most := make(chan struct{}, 1), make(chan struct{}, 64)
	f.setHandler(func(w http.ResponseWriter, r *http.Request) {
		most <- struct{}{}
		if len(most) > 1 {
			t.Error("polled again before the response")
		}
		select {
		case at <- struct{}{}:
		default:
		}
		time.Sleep(20 * time.Millisecond)
		<-most
		_, _ = w.Write([]byte("vllm:num_requests_running 4\n"))
	})
	waitFor(w, event.KindAggregates, 0, func(p *event.Aggregates) bool { return p.Running.V == 4 })
	<-at
	f.setHandler(nil)
}

func TestLongLinesAreSkipped(t *testing.T) {
	f := newFake(t, vllmPages("m", 1))
	f.setPage("/metrics", strings.Repeat("x", 10<<20)+"\nvllm:num_requests_running 5\n")
	w := startPoller(t, Options{Address: f.URL})
	waitFor(w, event.KindAggregates, 0, func(p *event.Aggregates) bool { return p.Running.V == 5 })
}

// TestLargeResponses: a response of 64 MB, plain or compressed, is read only up to the limits of size and time.
func TestLargeResponses(t *testing.T) {
	large := bytes.Repeat([]byte("a 1\n"), 1<<18)
	small := compress(bytes.Repeat(large, 64))
	for name, serve := range map[string]http.HandlerFunc{
		"64 MB": func(w http.ResponseWriter, _ *http.Request) {
			for range 64 {
				if _, err := w.Write(large); err != nil {
					return
				}
			}
		},
		"compressed": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = w.Write(small)
		},
	} {
		f := newFake(t, vllmPages("m", 1))
		w := startPoller(t, Options{Address: f.URL})
		_, n := w.waitForLink(event.LinkConnected, "", 0)
		f.setHandler(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/metrics" {
				serve(w, r)
				return
			}
			f.servePage(w, r)
		})
		e, n := waitFor(w, event.KindEngine, n, func(e *event.EngineInfo) bool { return e.Remote.Link == event.LinkDisconnected })
		if why := e.Remote.Reason; !strings.Contains(why, "too large") && !strings.Contains(why, "in time") { // on a busy machine the timeout may come first
			t.Errorf("%s: %s", name, why)
		}
		f.setHandler(nil)
		w.waitForLink(event.LinkConnected, "", n)
	}
}

func TestKeyIsNeverShown(t *testing.T) {
	const key = "sk-very-secret"
	f := newFake(t, vllmPages("m", 1))
	f.setHandler(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer "+key {
			http.Error(w, "no", http.StatusUnauthorized)
			return
		}
		http.Error(w, r.Header.Get("Authorization"), http.StatusForbidden)
	})
	w := startPoller(t, Options{Address: f.URL, Key: key})
	_, n := w.waitForLink(event.LinkDisconnected, "rejects this API key", 0)
	f.setHandler(nil)
	_, n = w.waitForLink(event.LinkConnected, "", n)
	f.setHandler(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprintf(w, `{"error":{"message":"%sno such %s"}}`, strings.Repeat("x", 160), r.Header.Get("Authorization"))
	})
	w.waitForLink(event.LinkDisconnected, "no such Bearer [key]", n)
	for _, e := range w.log.All() {
		if strings.Contains(fmt.Sprintf("%+v %+v", e, e.Data), key) {
			t.Errorf("the key is in %+v", e)
		}
	}
}

func TestHangingServersDoNotBlockOthers(t *testing.T) {
	held := make(chan struct{})
	defer close(held)
	for i := range 100 {
		f := newFake(t, vllmPages("m", 1))
		if i%2 == 0 {
			f.setHandler(func(http.ResponseWriter, *http.Request) { <-held })
			startPoller(t, Options{Address: f.URL})
			t.Cleanup(f.CloseClientConnections)
			continue
		}
		w := startPoller(t, Options{Address: f.URL, Interval: 100 * time.Millisecond})
		t.Cleanup(func() {})
		defer func() { waitFor(w, event.KindAggregates, 3, func(*event.Aggregates) bool { return true }) }()
	}
}
