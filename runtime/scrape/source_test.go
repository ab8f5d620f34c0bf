package scrape

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
		"/v1/models": strings.ReplaceAll(models("vllm"), `"m"`, `"`+model+`"`), "/version": `{"version":"0.11.2"}`,
		"/metrics": fmt.Sprintf(vllmText, model, model, tokens),
	}
}

func TestAServerIsWatched(t *testing.T) {
	f := newFake(t, vllmPages("m", 100))
	w := watchIt(t, Options{Address: f.URL + "/v1"})
	e, _ := w.linked(event.LinkConnected, "", 0)
	if e.Name != "vLLM" || e.Version != "0.11.2" || e.Remote.Address != f.URL || e.Caps != event.CapReports {
		t.Errorf("it is %+v", e)
	}
	first, n := until(w, event.KindReport, 0, func(*event.Report) bool { return true })
	if first.Interval != 0 || first.Generated.OK() || first.Running.V != 3 {
		t.Errorf("the first report is %+v", first)
	}
	f.set("/metrics", fmt.Sprintf(vllmText, "m", "m", 150))
	p, _ := until(w, event.KindReport, n, func(p *event.Report) bool { return p.Generated.V > 0 })
	if p.Generated.V != 50 || p.Interval <= 0 || p.Decode.V != 50/(float64(p.Interval)/1e9) {
		t.Errorf("then %+v", p)
	}
}

func TestAServerThatIsStartedAnewWithAnotherModel(t *testing.T) {
	f := newFake(t, vllmPages("a", 100))
	w := watchIt(t, Options{Address: f.URL})
	_, n := until(w, event.KindModel, 0, func(m *event.Model) bool { return m.Name == "a" })
	until(w, event.KindReport, 0, func(*event.Report) bool { return true })
	for path, page := range vllmPages("b", 7) {
		f.set(path, page)
	}
	until(w, event.KindModel, n, func(m *event.Model) bool { return m.Name == "b" })
	// The counter of the other model is another series, so that nothing has fallen.
	f.set("/metrics", fmt.Sprintf(vllmText, "b", "b", 5))
	if e, _ := until(w, event.KindEngine, 0, func(e *event.Engine) bool { return e.Remote.Restarts == 1 }); e.Remote.Link != event.LinkConnected {
		t.Errorf("after a restart %+v", e.Remote)
	}
}

// TestAServerThatHasNotAnswered is introduced before it has, as one that tells in sum: its counts are absent, and no 0.
func TestAServerThatHasNotAnswered(t *testing.T) {
	f := newFake(t, nil)
	f.answer(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	w := watchIt(t, Options{Address: f.URL})
	e, _ := w.linked(event.LinkDisconnected, "", 0)
	if e.Caps != event.CapReports || e.State != event.EngineStarting || e.Remote.Since != 0 {
		t.Errorf("it is introduced as %+v", e)
	}
}

// TestAnotherServerAtTheAddress: what has come is not told before its counters were read twice.
func TestAnotherServerAtTheAddress(t *testing.T) {
	f := newFake(t, vllmPages("m", 100))
	w := watchIt(t, Options{Address: f.URL})
	until(w, event.KindReport, 1, func(*event.Report) bool { return true })
	for _, other := range []map[string]string{
		{"/v1/models": models("lmdeploy"), "/metrics": metricsOf(t, "lmdeploy")},
		llamaPages(t),
	} {
		told := len(w.log.Of(event.KindEngine))
		f.answer(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "oh", http.StatusInternalServerError) })
		w.linked(event.LinkDisconnected, "500", told)
		n := len(w.log.Of(event.KindReport))
		f.mu.Lock()
		f.pages = other
		f.mu.Unlock()
		f.answer(nil)
		p, n := until(w, event.KindReport, n, func(*event.Report) bool { return true })
		if p.Generated.Origin != event.NotYet || p.Decode.Origin != event.NotYet || !p.Running.OK() {
			t.Errorf("of a server that was asked once\n%s", rows(p))
		}
		until(w, event.KindReport, n, func(p *event.Report) bool { return p.Generated.OK() })
	}
}

func TestAServerThatGoesAndComesBack(t *testing.T) {
	f := newFake(t, vllmPages("m", 100))
	w := watchIt(t, Options{Address: f.URL})
	_, n := w.linked(event.LinkConnected, "", 0)
	for _, c := range []struct {
		why   string
		serve http.HandlerFunc
	}{
		{"answers 500", func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "oh", http.StatusInternalServerError) }},
		{"web page", func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte("<html><body>come in</body></html>"))
		}},
		{"needs a key", func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusUnauthorized) }},
		{"redirects to http://elsewhere", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://elsewhere/x", http.StatusFound)
		}},
		{"broke off", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "1000")
			_, _ = w.Write([]byte("vllm:num_requests_running 3\n"))
		}},
	} {
		f.answer(c.serve)
		var e *event.Engine
		why := c.why
		if why == "web page" { // while it is watched its metrics are no metrics; then it is no engine
			why = ""
		}
		e, n = w.linked(event.LinkDisconnected, why, n)
		since := e.Remote.Since
		f.answer(nil)
		e, n = w.linked(event.LinkConnected, "", n)
		if e.Remote.Since < since || e.Name != "vLLM" || e.Remote.Restarts != 0 {
			t.Errorf("after %q: %+v", c.why, e)
		}
	}
}

func TestASlowServerIsNotAskedAgainMeanwhile(t *testing.T) {
	f := newFake(t, vllmPages("m", 1))
	w := watchIt(t, Options{Address: f.URL, Interval: time.Millisecond})
	w.linked(event.LinkConnected, "", 0)
	at, most := make(chan struct{}, 1), make(chan struct{}, 64)
	f.answer(func(w http.ResponseWriter, r *http.Request) {
		most <- struct{}{}
		if len(most) > 1 {
			t.Error("it was asked while it had not answered")
		}
		select {
		case at <- struct{}{}:
		default:
		}
		time.Sleep(20 * time.Millisecond)
		<-most
		_, _ = w.Write([]byte("vllm:num_requests_running 4\n"))
	})
	until(w, event.KindReport, 0, func(p *event.Report) bool { return p.Running.V == 4 })
	<-at
	f.answer(nil)
}

func TestLinesThatAreTooLongArePassedOver(t *testing.T) {
	f := newFake(t, vllmPages("m", 1))
	f.set("/metrics", strings.Repeat("x", 10<<20)+"\nvllm:num_requests_running 5\n")
	w := watchIt(t, Options{Address: f.URL})
	until(w, event.KindReport, 0, func(p *event.Report) bool { return p.Running.V == 5 })
}

// TestAnswersThatAreTooLarge: of 64 MB, as they are and packed into little, no more is read than makes sense, nor for longer.
func TestAnswersThatAreTooLarge(t *testing.T) {
	large := bytes.Repeat([]byte("a 1\n"), 1<<18)
	small := packed(bytes.Repeat(large, 64))
	for name, serve := range map[string]http.HandlerFunc{
		"64 MB": func(w http.ResponseWriter, _ *http.Request) {
			for range 64 {
				if _, err := w.Write(large); err != nil {
					return
				}
			}
		},
		"a bomb": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = w.Write(small)
		},
	} {
		f := newFake(t, vllmPages("m", 1))
		w := watchIt(t, Options{Address: f.URL})
		_, n := w.linked(event.LinkConnected, "", 0)
		f.answer(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/metrics" {
				serve(w, r)
				return
			}
			f.page(w, r)
		})
		e, n := until(w, event.KindEngine, n, func(e *event.Engine) bool { return e.Remote.Link == event.LinkDisconnected })
		if why := e.Remote.Why; !strings.Contains(why, "more than llmtop reads") && !strings.Contains(why, "in time") { // on a busy machine the time may end first
			t.Errorf("%s: %s", name, why)
		}
		f.answer(nil)
		w.linked(event.LinkConnected, "", n)
	}
}

func TestAKeyIsNeverTold(t *testing.T) {
	const key = "sk-very-secret"
	f := newFake(t, vllmPages("m", 1))
	f.answer(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer "+key {
			http.Error(w, "no", http.StatusUnauthorized)
			return
		}
		http.Error(w, r.Header.Get("Authorization"), http.StatusForbidden)
	})
	w := watchIt(t, Options{Address: f.URL, Key: key})
	_, n := w.linked(event.LinkDisconnected, "does not take this key", 0)
	f.answer(nil)
	_, n = w.linked(event.LinkConnected, "", n)
	f.answer(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprintf(w, `{"error":{"message":"%sno such %s"}}`, strings.Repeat("x", 160), r.Header.Get("Authorization"))
	})
	w.linked(event.LinkDisconnected, "no such Bearer [key]", n)
	for _, e := range w.log.All() {
		if strings.Contains(fmt.Sprintf("%+v %+v", e, e.Data), key) {
			t.Errorf("the key is in %+v", e)
		}
	}
}

func TestManyServersOfWhichHalfHang(t *testing.T) {
	lanes := NewLanes()
	held := make(chan struct{})
	defer close(held)
	for i := range 100 {
		f := newFake(t, vllmPages("m", 1))
		if i%2 == 0 {
			f.answer(func(http.ResponseWriter, *http.Request) { <-held })
			watchIt(t, Options{Address: f.URL, Lanes: lanes})
			t.Cleanup(f.CloseClientConnections)
			continue
		}
		w := watchIt(t, Options{Address: f.URL, Lanes: lanes, Interval: 100 * time.Millisecond})
		t.Cleanup(func() {})
		defer func() { until(w, event.KindReport, 3, func(*event.Report) bool { return true }) }()
	}
}

// published is what a server publishes besides.
type published struct{}

func (published) Numbers() []event.Number {
	return []event.Number{{Name: "kv_blocks_stored", Reading: event.From(3)}, {Name: "passes", Reading: event.From(7)}}
}

func (published) Passes() bool { return true }

// TestPublished puts what a server publishes into its reports.
func TestPublished(t *testing.T) {
	f := newFake(t, map[string]string{"/v1/models": models("somebody")})
	w := watchIt(t, Options{Address: f.URL, Published: published{}})
	until(w, event.KindReport, 0, func(r *event.Report) bool {
		return len(r.More) == 2 && r.More[0].Name == "kv_blocks_stored" && r.More[1].V == 7
	})
	until(w, event.KindEngine, 0, func(e *event.Engine) bool { return e.Caps.Has(event.CapSteps | event.CapReports) })
}
