package engine

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/event/eventtest"
	"github.com/llmtop/llmtop/runtime/source/peer"
)

const (
	unloadedList = `{"object":"list","data":[{"id":"m","owned_by":"llamacpp","status":{"value":"unloaded"}}]}`
	loadedList   = `{"object":"list","data":[{"id":"m","owned_by":"llamacpp","status":{"value":"loaded"}}]}`
	routerProps  = `{"role":"router","build_info":"b10582-e85caa81e","default_generation_settings":{"n_ctx":0}}`
)

// serveLoadEvents makes the server a router whose event stream sends the test's messages; closing the channel ends the
// stream.
func serveLoadEvents(f *fake, events chan string) {
	f.setHandler(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != loadsPath {
			f.servePage(w, r)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		for {
			_ = http.NewResponseController(w).Flush()
			select {
			case text, more := <-events:
				if !more {
					return
				}
				_, _ = io.WriteString(w, text)
			case <-r.Context().Done():
				return
			}
		}
	})
}

// endpoint returns the reason of an endpoint in a report, and whether it is listed.
func endpoint(p *event.Aggregates, name string) (why string, there bool) {
	for _, s := range p.Endpoints {
		if s.Name == name {
			return s.Reason, true
		}
	}
	return "", false
}

func TestRouterLoads(t *testing.T) {
	f := newFake(t, map[string]string{"/v1/models": unloadedList, "/props": routerProps})
	events := make(chan string)
	serveLoadEvents(f, events)
	w := startPoller(t, Options{Address: f.URL})
	waitFor(w, event.KindAggregates, 0, func(p *event.Aggregates) bool {
		why, there := endpoint(p, loadsPath)
		return there && why == ""
	})
	events <- loadEvent("m", "model_status", `{"status":"loading"}`) + progressEvent("m", "text_model", 0)
	_, n := waitFor(w, event.KindEngine, 0, func(e *event.EngineInfo) bool { return e.State == event.EngineLoading })
	events <- progressEvent("m", "text_model", 0.5)
	waitFor(w, event.KindAggregates, 0, func(p *event.Aggregates) bool {
		return len(p.More) == 1 && p.More[0].Name == "load_text_model_share" && p.More[0].V == 0.5 && p.More[0].Origin == event.Reported
	})
	f.setPage("/v1/models", loadedList)
	f.setPage("/slots", "[]")
	events <- progressEvent("m", "text_model", 1) + loadEvent("m", "status_change", `{"status":"loaded"}`)
	waitFor(w, event.KindEngine, n, func(e *event.EngineInfo) bool { return e.State == event.EngineReady })
	waitFor(w, event.KindModel, 0, func(m *event.Model) bool { return m.Name == "m" })
	stages := ""
	for _, e := range w.log.OfKind(event.KindStage) {
		if !strings.Contains(stages, e.Text+e.Stage.String()) {
			stages += e.Text + e.Stage.String() + "|"
		}
	}
	if !strings.HasPrefix(stages, "start of mload_open|text_modelload_part|") || !strings.HasSuffix(stages, "|model_load|") {
		t.Errorf("stages %q", stages)
	}
	// The stream ends and is opened again.
	close(events)
	again := make(chan string)
	serveLoadEvents(f, again)
	again <- loadEvent("m", "status_change", `{"status":"sleeping"}`)
}

// TestRouterWithoutLoadEvents checks that the stream is not requested again, and that polling continues.
func TestRouterWithoutLoadEvents(t *testing.T) {
	f := newFake(t, map[string]string{"/v1/models": unloadedList, "/props": routerProps})
	w := startPoller(t, Options{Address: f.URL})
	_, n := waitFor(w, event.KindAggregates, 0, func(p *event.Aggregates) bool {
		why, _ := endpoint(p, loadsPath)
		return strings.Contains(why, "404")
	})
	waitFor(w, event.KindAggregates, n+5, func(*event.Aggregates) bool { return true })
	if requests := f.requestCount(loadsPath); requests != 1 {
		t.Errorf("%d requests, want 1", requests)
	}
}

// TestRealLoads follows a real llama-server while it loads a model at another client's request.
func TestRealLoads(t *testing.T) {
	server := peer.LlamaRouter(t, "one", "two")
	w := startPoller(t, Options{Address: server.URL})
	waitFor(w, event.KindAggregates, 0, func(p *event.Aggregates) bool {
		why, there := endpoint(p, loadsPath)
		return there && why == ""
	})
	n := 0
	for _, model := range []string{"two", "one"} {
		resp, err := http.Post(server.URL+"/models/load", "application/json", strings.NewReader(`{"model":"`+model+`"}`))
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		var rows []event.Event
		eventtest.Wait(t, "the load of "+model, func() bool {
			rows = w.log.OfKind(event.KindStage)[n:]
			return len(rows) > 0 && rows[len(rows)-1].Stage == event.StageLoad
		})
		n += len(rows)
		whole := rows[len(rows)-1]
		names := ""
		for _, e := range rows[:len(rows)-1] {
			if begin := e.At - event.Time(e.Dur); e.Dur < 0 || begin < whole.At-event.Time(whole.Dur) || e.At > whole.At {
				t.Errorf("%q: %d to %d is outside the load, which takes %d and ends at %d", e.Text, begin, e.At, whole.Dur, whole.At)
			}
			if !strings.HasSuffix(names, e.Text+"|") {
				names += e.Text + "|"
			}
		}
		if !strings.HasPrefix(names, "start of "+model+"|text_model|") || whole.Dur <= 0 {
			t.Errorf("load of %s: %q, %d ns in total", model, names, whole.Dur)
		}
		waitFor(w, event.KindModel, 0, func(m *event.Model) bool { return strings.Contains(m.Name, model) })
	}
}
