package fleet

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/llmtop/llmtop/profiler/event"
)

// fake is a Prometheus with made-up responses. It scrapes two engines of the job llm every 15 s, and one machine.
type fake struct {
	*httptest.Server
	mu            sync.Mutex
	now           float64         // s since 1970
	down          map[string]bool // engines whose scrapes fail
	removed       map[string]bool // engines that are no longer targets
	handler       http.HandlerFunc
	key           string
	queries       int    // all queries
	metricQueries int    // queries for metrics of engines
	huge          string // the value of a counter; "": what it should be
}

const fakeEpoch = 1_700_000_000

func newFake(t *testing.T) *fake {
	f := &fake{now: fakeEpoch, down: map[string]bool{}, removed: map[string]bool{}}
	f.Server = httptest.NewServer(http.HandlerFunc(f.serve))
	t.Cleanup(f.Close)
	return f
}

func (f *fake) change(do func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	do()
}

func (f *fake) serve(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	hook := f.handler
	f.mu.Unlock()
	if hook != nil {
		hook(w, r)
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.key != "" && r.Header.Get("Authorization") != "Bearer "+f.key {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	f.queries++
	at := f.now
	if text := r.URL.Query().Get("time"); text != "" {
		_, _ = fmt.Sscan(text, &at)
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, vector(f.answer(r.URL.Query().Get("query"), at)...))
}

// lastScrape returns the time of the last scrape of an engine.
func lastScrape(at float64) float64 { return float64(int(at)/15*15) + 0.5 }

func (f *fake) answer(query string, at float64) (out []string) {
	add := func(labels string, v float64) {
		out = append(out, fmt.Sprintf(`{"metric":{%s},"value":[%f,"%v"]}`, labels, at, v))
	}
	for i, instance := range []string{"gpu1:8000", "gpu2:8000", "node:9100"} {
		target, up := fmt.Sprintf(`"instance":%q,"job":%q`, instance, []string{"llm", "llm", "node"}[i]), 1.0
		if f.down[instance] {
			up = 0
		}
		engine := i < 2 && up == 1
		switch {
		case f.removed[instance]:
		case strings.HasPrefix(query, "up{"):
			add(`"__name__":"up",`+target, up)
		case strings.HasPrefix(query, "timestamp(up{"):
			add(target, lastScrape(at))
		case strings.HasPrefix(query, "max_over_time(timestamp("):
			if i == 1 {
				add(target, at-600)
			}
		case strings.HasPrefix(query, "count by(__name__)") && engine && len(out) == 0:
			add(`"__name__":"vllm:num_requests_running"`, 2)
			add(`"__name__":"vllm:generation_tokens_total"`, 2)
			add(`"__name__":"vllm:of_tomorrow"`, 2)
		case strings.HasPrefix(query, `{__name__=~"vllm:generation_tokens_total|vllm:num_requests_running|process_start_time_seconds"`):
			f.metricQueries++
			add(`"__name__":"process_start_time_seconds",`+target, 1000)
			if engine {
				add(`"__name__":"vllm:num_requests_running","model_name":"m",`+target, float64(3+i))
				add(`"__name__":"vllm:generation_tokens_total","model_name":"m",`+target, 40*(lastScrape(at)-1.6e9))
				if f.huge != "" {
					out[len(out)-1] = fmt.Sprintf(`{"metric":{"__name__":"vllm:generation_tokens_total","model_name":"m",%s},"value":[%f,%q]}`, target, at, f.huge)
				}
			}
		}
	}
	return out
}

// Rates of the last minute are available at once, each scrape counts once, and targets that are not engines are not
// shown.
func TestFleet(t *testing.T) {
	f := newFake(t)
	w := startPoller(t, Options{Address: f.URL})
	for i, name := range []string{"gpu1:8000", "gpu2:8000"} {
		r := w.waitForReplica(name)
		r.waitFor(event.KindAggregates, func(p any) bool {
			a := p.(*event.Aggregates)
			return a.Interval == 60e9 && a.Running.V == float64(3+i) && a.Generated.V == 2400 && a.Decode.V == 40
		})
	}
	before := 0
	f.change(func() { before = f.queries })
	for requests := before; requests < before+10; {
		f.change(func() { requests = f.queries })
	}
	if n := len(w.waitForReplica("gpu1:8000").OfKind(event.KindAggregates)); n != 2 {
		t.Errorf("%d reports for two scrapes", n)
	}
	f.change(func() { f.now += 15 })
	w.waitForReplica("gpu1:8000").waitFor(event.KindAggregates, func(p any) bool { return p.(*event.Aggregates).Interval == 15e9 })
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.replicas) != 2 {
		t.Errorf("%d replicas, want 2", len(w.replicas))
	}
}

// A replica that is down is reported with the time since when, as far as Prometheus has it, also if it was down before
// the session.
func TestReplicasDown(t *testing.T) {
	f := newFake(t)
	f.down["gpu2:8000"] = true
	w := startPoller(t, Options{Address: f.URL})
	w.waitForReplica("gpu2:8000").waitFor(event.KindEngine, func(p any) bool {
		r := p.(*event.EngineInfo).Remote
		return r.Link == event.LinkDisconnected && r.Since < -500e9 && strings.Contains(r.Reason, "cannot scrape")
	})
	f.change(func() { f.down["gpu2:8000"], f.now = false, f.now+15 })
	w.waitForReplica("gpu2:8000").waitFor(event.KindEngine, func(p any) bool { return p.(*event.EngineInfo).Remote.Link == event.LinkConnected })
	f.change(func() { f.removed["gpu1:8000"] = true })
	w.waitForReplica("gpu1:8000").waitFor(event.KindEngine, func(p any) bool {
		return strings.Contains(p.(*event.EngineInfo).Remote.Reason, "no longer a target")
	})
}

// Errors of Prometheus are reported with a reason, the replicas become stale, and polling continues.
func TestPrometheusErrors(t *testing.T) {
	f := newFake(t)
	w := startPoller(t, Options{Address: f.URL})
	w.waitForReplica("gpu1:8000").waitFor(event.KindAggregates, func(any) bool { return true })
	for why, hook := range map[string]http.HandlerFunc{
		"HTTP 503": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) },
		"HTTP 422: too many samples": func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusUnprocessableEntity)
			_, _ = io.WriteString(w, `{"status":"error","errorType":"execution","error":"too many samples"}`)
		},
		"response is a web page": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			_, _ = io.WriteString(w, "<html>")
		},
		"Prometheus requires an API key": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) },
		"no targets in Prometheus":       func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, vector()) },
	} {
		f.change(func() { f.handler = hook })
		w.waitForReason(why)
		w.waitForReplica("gpu1:8000").waitForLastLink(event.LinkStale)
		f.change(func() { f.handler = nil })
		w.waitForReplica("gpu1:8000").waitForLastLink(event.LinkConnected)
	}
}

// The key is redacted in a Prometheus error that repeats it.
func TestKeyIsRedacted(t *testing.T) {
	f := newFake(t)
	respond := func(status int) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(status)
			_, _ = fmt.Fprintf(w, `{"status":"error","error":"not for %s"}`, r.Header.Get("Authorization"))
		}
	}
	f.handler = respond(http.StatusOK)
	w := startPoller(t, Options{Address: f.URL, Key: "sesame"})
	w.waitForReason("query rejected: not for Bearer [key]")
	f.change(func() { f.handler = respond(http.StatusBadRequest) })
	w.waitForReason("HTTP 400: not for Bearer [key]")
	for _, e := range w.self.All() {
		if strings.Contains(fmt.Sprintf("%+v", e.Data), "sesame") {
			t.Errorf("the key is in %+v", e.Data)
		}
	}
}

func TestPrometheusKey(t *testing.T) {
	f := newFake(t)
	f.key = "sesame"
	startPoller(t, Options{Address: f.URL, Key: "sesame"}).waitForReplica("gpu1:8000")
	startPoller(t, Options{Address: f.URL, Key: "other"}).waitForReason("rejects this API key")
	if _, err := New(Options{Address: "http://user:secret@host"}); err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("an address with a password: %v", err)
	}
}
