package proxy

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/llmtop/llmtop/profiler/event"
)

// TestCrowd has a thousand streams pass through side by side: all wait for each other, so that none can be held up by another.
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
	await(t, "all end", func() bool { return len(r.requests()) == streams })
	groups := map[string]int{}
	for _, about := range r.requests() {
		groups[about.request.Group]++
		if about.ended.State != event.StateFinished || about.generated() != tokens {
			t.Errorf("request %d: %v with %d tokens", about.ended.Req, about.ended.State, about.generated())
		}
	}
	if len(groups) != 3 || groups["group 0"] != 334 {
		t.Errorf("groups %v", groups)
	}
	if s := r.proxy.Stats(); s.Passed != streams || s.Observed != streams {
		t.Errorf("%+v", s)
	}
}

// TestServerThatHangs holds up nobody but its own client.
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
	await(t, "the request is told of", func() bool {
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
	if about := r.requests()[0]; about.ended.State != event.StateCancelled {
		t.Errorf("%v %q", about.ended.State, about.outcome.Reason)
	}
}

// TestTrickle: an answer that comes byte by byte is told of message by message.
func TestTrickle(t *testing.T) {
	text := strings.Repeat(`data: {"choices":[{"delta":{"content":"a"}}]}`+"\n\n", 5) + "data: [DONE]\n\n"
	r := behind(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", stream)
		for i := range len(text) {
			_, _ = io.WriteString(w, text[i:i+1])
			flush(w)
		}
	}))
	_, got, about := r.one(t, chat, `{}`)
	if got != text || about.generated() != 5 || about.outcome.Generated != 5 {
		t.Errorf("%q with %d tokens", got, about.generated())
	}
}
