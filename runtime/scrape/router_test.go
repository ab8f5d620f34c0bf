package scrape

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/event/eventtest"
	"github.com/llmtop/llmtop/runtime/peer"
)

const (
	unloadedList = `{"object":"list","data":[{"id":"m","owned_by":"llamacpp","status":{"value":"unloaded"}}]}`
	loadedList   = `{"object":"list","data":[{"id":"m","owned_by":"llamacpp","status":{"value":"loaded"}}]}`
	routerProps  = `{"role":"router","default_generation_settings":{"n_ctx":0}}`
)

// telling is a router whose stream says what a test sends; closing the channel ends the stream.
func telling(f *fake, says chan string) {
	f.answer(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != loadsPath {
			f.page(w, r)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		for {
			_ = http.NewResponseController(w).Flush()
			select {
			case text, more := <-says:
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

// source is the source of a name in a report.
func source(p *event.Report, name string) (why string, there bool) {
	for _, s := range p.Sources {
		if s.Name == name {
			return s.Why, true
		}
	}
	return "", false
}

func TestLoadsOfARouter(t *testing.T) {
	f := newFake(t, map[string]string{"/v1/models": unloadedList, "/props": routerProps})
	says := make(chan string)
	telling(f, says)
	w := watchIt(t, Options{Address: f.URL})
	until(w, event.KindReport, 0, func(p *event.Report) bool {
		why, there := source(p, loadsPath)
		return there && why == ""
	})
	says <- message("m", "model_status", `{"status":"loading"}`) + progress("m", "text_model", 0)
	_, n := until(w, event.KindEngine, 0, func(e *event.Engine) bool { return e.State == event.EngineLoading })
	says <- progress("m", "text_model", 0.5)
	until(w, event.KindReport, 0, func(p *event.Report) bool {
		return len(p.More) == 1 && p.More[0].Name == "load_text_model_share" && p.More[0].V == 0.5 && p.More[0].Origin == event.Reported
	})
	f.set("/v1/models", loadedList)
	f.set("/slots", "[]")
	says <- progress("m", "text_model", 1) + message("m", "status_change", `{"status":"loaded"}`)
	until(w, event.KindEngine, n, func(e *event.Engine) bool { return e.State == event.EngineReady })
	until(w, event.KindModel, 0, func(m *event.Model) bool { return m.Name == "m" })
	stages := ""
	for _, e := range w.log.Of(event.KindStage) {
		if !strings.Contains(stages, e.Text+e.Stage.String()) {
			stages += e.Text + e.Stage.String() + "|"
		}
	}
	if !strings.HasPrefix(stages, "start of mload_open|text_modelload_part|") || !strings.HasSuffix(stages, "|model_load|") {
		t.Errorf("stages %q", stages)
	}
	// The server goes on without its stream, which is made anew.
	close(says)
	again := make(chan string)
	telling(f, again)
	again <- message("m", "status_change", `{"status":"sleeping"}`)
}

// TestARouterThatDoesNotTellOfLoads is not asked again, and the looks go on.
func TestARouterThatDoesNotTellOfLoads(t *testing.T) {
	f := newFake(t, map[string]string{"/v1/models": unloadedList, "/props": routerProps})
	w := watchIt(t, Options{Address: f.URL})
	_, n := until(w, event.KindReport, 0, func(p *event.Report) bool {
		why, _ := source(p, loadsPath)
		return strings.Contains(why, "404")
	})
	until(w, event.KindReport, n+5, func(*event.Report) bool { return true })
	if asked := f.times(loadsPath); asked != 1 {
		t.Errorf("it was asked %d times", asked)
	}
}

// TestRealLoads follows a real llama-server while it loads a model, which somebody else has it do.
func TestRealLoads(t *testing.T) {
	server := peer.LlamaRouter(t, "one", "two")
	w := watchIt(t, Options{Address: server.URL})
	until(w, event.KindReport, 0, func(p *event.Report) bool {
		why, there := source(p, loadsPath)
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
			rows = w.log.Of(event.KindStage)[n:]
			return len(rows) > 0 && rows[len(rows)-1].Stage == event.StageLoad
		})
		n += len(rows)
		whole := rows[len(rows)-1]
		names := ""
		for _, e := range rows[:len(rows)-1] {
			if begin := e.At - event.Time(e.Dur); e.Dur < 0 || begin < whole.At-event.Time(whole.Dur) || e.At > whole.At {
				t.Errorf("%q lasts from %d to %d, outside the load, which is %d long and ends at %d", e.Text, begin, e.At, whole.Dur, whole.At)
			}
			if !strings.HasSuffix(names, e.Text+"|") {
				names += e.Text + "|"
			}
		}
		if !strings.HasPrefix(names, "start of "+model+"|text_model|") || whole.Dur <= 0 {
			t.Errorf("of the load of %s came %q, in all %d ns", model, names, whole.Dur)
		}
		until(w, event.KindModel, 0, func(m *event.Model) bool { return strings.Contains(m.Name, model) })
	}
}
