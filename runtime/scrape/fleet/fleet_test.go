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

// fake is a Prometheus with answers made by hand. It scrapes two engines of the job llm once in 15 s, and one machine.
type fake struct {
	*httptest.Server
	mu     sync.Mutex
	now    float64         // s since 1970
	down   map[string]bool // engines that it cannot scrape
	gone   map[string]bool // engines that are no targets any more
	hook   http.HandlerFunc
	key    string
	asked  int // queries
	widest int // for metrics of engines
}

const fakeEpoch = 1_700_000_000

func newFake(t *testing.T) *fake {
	f := &fake{now: fakeEpoch, down: map[string]bool{}, gone: map[string]bool{}}
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
	hook := f.hook
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
	f.asked++
	at := f.now
	if text := r.URL.Query().Get("time"); text != "" {
		_, _ = fmt.Sscan(text, &at)
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, vector(f.answer(r.URL.Query().Get("query"), at)...))
}

// scraped is when an engine was scraped last.
func scraped(at float64) float64 { return float64(int(at)/15*15) + 0.5 }

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
		case f.gone[instance]:
		case strings.HasPrefix(query, "up{"):
			add(`"__name__":"up",`+target, up)
		case strings.HasPrefix(query, "timestamp(up{"):
			add(target, scraped(at))
		case strings.HasPrefix(query, "max_over_time(timestamp("):
			if i == 1 {
				add(target, at-600)
			}
		case strings.HasPrefix(query, "count by(__name__)") && engine && len(out) == 0:
			add(`"__name__":"vllm:num_requests_running"`, 2)
			add(`"__name__":"vllm:generation_tokens_total"`, 2)
			add(`"__name__":"vllm:of_tomorrow"`, 2)
		case strings.HasPrefix(query, `{__name__=~"vllm:generation_tokens_total|vllm:num_requests_running|process_start_time_seconds"`):
			f.widest++
			add(`"__name__":"process_start_time_seconds",`+target, 1000)
			if engine {
				add(`"__name__":"vllm:num_requests_running","model_name":"m",`+target, float64(3+i))
				add(`"__name__":"vllm:generation_tokens_total","model_name":"m",`+target, 40*(scraped(at)-1.6e9))
			}
		}
	}
	return out
}

// The rates of the minute before are there at once, a scrape is taken once, and what is no engine is not shown.
func TestFleetIsWatched(t *testing.T) {
	f := newFake(t)
	w := watch(t, Options{Address: f.URL})
	for i, name := range []string{"gpu1:8000", "gpu2:8000"} {
		r := w.replica(name)
		r.until(event.KindReport, func(p any) bool {
			told := p.(*event.Report)
			return told.Interval == 60e9 && told.Running.V == float64(3+i) && told.Generated.V == 2400 && told.Decode.V == 40
		})
	}
	before := 0
	f.change(func() { before = f.asked })
	for asked := before; asked < before+10; {
		f.change(func() { asked = f.asked })
	}
	if n := len(w.replica("gpu1:8000").Of(event.KindReport)); n != 2 {
		t.Errorf("%d reports of two scrapes", n)
	}
	f.change(func() { f.now += 15 })
	w.replica("gpu1:8000").until(event.KindReport, func(p any) bool { return p.(*event.Report).Interval == 15e9 })
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.all) != 2 {
		t.Errorf("%d replicas, want 2", len(w.all))
	}
}

// Down is told with since when, as far as Prometheus remembers; also of replicas that were down before anybody looked.
func TestReplicasThatAreDown(t *testing.T) {
	f := newFake(t)
	f.down["gpu2:8000"] = true
	w := watch(t, Options{Address: f.URL})
	w.replica("gpu2:8000").until(event.KindEngine, func(p any) bool {
		r := p.(*event.Engine).Remote
		return r.Link == event.LinkDisconnected && r.Since < -500e9 && strings.Contains(r.Why, "cannot scrape")
	})
	f.change(func() { f.down["gpu2:8000"], f.now = false, f.now+15 })
	w.replica("gpu2:8000").until(event.KindEngine, func(p any) bool { return p.(*event.Engine).Remote.Link == event.LinkConnected })
	f.change(func() { f.gone["gpu1:8000"] = true })
	w.replica("gpu1:8000").until(event.KindEngine, func(p any) bool {
		return strings.Contains(p.(*event.Engine).Remote.Why, "no longer has it")
	})
}

// What goes wrong with Prometheus is told with its reason, and what was known of the replicas is marked as old; then it goes on.
func TestPrometheusThatFails(t *testing.T) {
	f := newFake(t)
	w := watch(t, Options{Address: f.URL})
	w.replica("gpu1:8000").until(event.KindReport, func(any) bool { return true })
	for why, hook := range map[string]http.HandlerFunc{
		"answers 503": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) },
		"answers 422: too many samples": func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusUnprocessableEntity)
			_, _ = io.WriteString(w, `{"status":"error","errorType":"execution","error":"too many samples"}`)
		},
		"answers a web page": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			_, _ = io.WriteString(w, "<html>")
		},
		"Prometheus needs a key": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) },
		"it has no targets":      func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, vector()) },
	} {
		f.change(func() { f.hook = hook })
		w.says(why)
		w.replica("gpu1:8000").untilLast(event.LinkStale)
		f.change(func() { f.hook = nil })
		w.replica("gpu1:8000").untilLast(event.LinkConnected)
	}
}

// The key is in nothing that is told of a Prometheus that repeats it.
func TestAKeyThatIsRepeated(t *testing.T) {
	f := newFake(t)
	saying := func(status int) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(status)
			_, _ = fmt.Fprintf(w, `{"status":"error","error":"not for %s"}`, r.Header.Get("Authorization"))
		}
	}
	f.hook = saying(http.StatusOK)
	w := watch(t, Options{Address: f.URL, Key: "sesame"})
	w.says("refuses the query: not for Bearer [key]")
	f.change(func() { f.hook = saying(http.StatusBadRequest) })
	w.says("answers 400: not for Bearer [key]")
	for _, e := range w.self.All() {
		if strings.Contains(fmt.Sprintf("%+v", e.Data), "sesame") {
			t.Errorf("the key is in %+v", e.Data)
		}
	}
}

func TestKeyOfPrometheus(t *testing.T) {
	f := newFake(t)
	f.key = "sesame"
	watch(t, Options{Address: f.URL, Key: "sesame"}).replica("gpu1:8000")
	watch(t, Options{Address: f.URL, Key: "other"}).says("does not take this key")
	if _, err := New(Options{Address: "http://user:secret@host"}); err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("an address with a password: %v", err)
	}
}
