package proxy

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/event/eventtest"
)

// TestCrowd runs a thousand concurrent streams, each of which waits for all others, so that a blocked one would block
// all.
func TestCrowd(t *testing.T) {
	const streams, tokens = 1000, 4
	var met [tokens]sync.WaitGroup
	for i := range met {
		met[i].Add(streams)
	}
	message := `data: {"choices":[{"delta":{"content":"a"}}]}` + "\n\n"
	r := behind(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", stream)
		for i := range tokens {
			_, _ = io.WriteString(w, message)
			flush(w)
			met[i].Done()
			met[i].Wait()
		}
		_, _ = io.WriteString(w, "data: [DONE]\n\n")
	}), func(o *Options) { o.GroupHeader = "X-Tenant" })
	var all sync.WaitGroup
	for i := range streams {
		all.Go(func() {
			req, err := http.NewRequest(http.MethodPost, r.proxy.Address()+chat, strings.NewReader(`{"model":"m"}`))
			if err != nil {
				t.Error(err)
				return
			}
			req.Header.Set("X-Tenant", fmt.Sprint("group ", i%3))
			res, err := r.client.Do(req)
			if err != nil {
				t.Error(err)
				return
			}
			defer res.Body.Close()
			text, err := io.ReadAll(res.Body)
			if want := strings.Repeat(message, tokens) + "data: [DONE]\n\n"; string(text) != want || err != nil {
				t.Errorf("%d bytes, %v", len(text), err)
			}
		})
	}
	all.Wait()
	eventtest.Wait(t, "all end", func() bool { return len(r.requests()) == streams })
	groups := map[string]int{}
	for _, logged := range r.requests() {
		groups[logged.request.Group]++
		if logged.ended.State != event.StateFinished || logged.generated() != tokens {
			t.Errorf("request %d: %v with %d tokens", logged.ended.Req, logged.ended.State, logged.generated())
		}
	}
	if len(groups) != 3 || groups["group 0"] != 334 {
		t.Errorf("groups %v", groups)
	}
	if n := r.proxy.last.Load(); n != streams {
		t.Errorf("%d requests are measured, want %d", n, streams)
	}
}

// TestServerThatHangs: a stuck server blocks only its own client.
func TestServerThatHangs(t *testing.T) {
	r := behind(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == chat {
			_, _ = io.Copy(io.Discard, r.Body)
			<-r.Context().Done()
			return
		}
		_, _ = io.WriteString(w, "{}")
	}))
	hung := make(chan error, 1)
	go func() {
		res, err := r.client.Post(r.proxy.Address()+chat, "application/json", strings.NewReader(`{}`))
		if err == nil {
			res.Body.Close()
		}
		hung <- err
	}()
	eventtest.Wait(t, "the request is reported", func() bool {
		for _, e := range r.All() {
			if e.State == event.StateQueued {
				return true
			}
		}
		return false
	})
	for range 3 {
		if res := ask(t, r.client, http.MethodGet, r.proxy.Address()+"/v1/models", nil); string(res.Body) != "{}" {
			t.Errorf("%+v", res)
		}
	}
	r.stop() // without a drain
	if err := <-hung; err == nil {
		t.Error("the client that was cut off has an answer")
	}
	if logged := r.requests()[0]; logged.ended.State != event.StateCancelled {
		t.Errorf("%v %q", logged.ended.State, logged.outcome.Reason)
	}
}

// TestTrickle: tokens of an answer that arrives byte by byte are emitted message by message.
func TestTrickle(t *testing.T) {
	text := strings.Repeat(`data: {"choices":[{"delta":{"content":"a"}}]}`+"\n\n", 5) + "data: [DONE]\n\n"
	r := behind(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", stream)
		for i := range len(text) {
			_, _ = io.WriteString(w, text[i:i+1])
			flush(w)
		}
	}))
	_, got, logged := r.one(t, chat, `{}`)
	if got != text || logged.generated() != 5 || logged.outcome.Generated != 5 {
		t.Errorf("%q with %d tokens", got, logged.generated())
	}
}
