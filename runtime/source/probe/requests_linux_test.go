//go:build amd64 || arm64

package probe

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/runtime/engine"
	"github.com/llmtop/llmtop/runtime/source/peer"
	"github.com/llmtop/llmtop/runtime/source/proxy"
)

// seen is what a source reported about a request.
type seen struct {
	queued  event.Time
	tokens  []int32
	at      []event.Time
	stages  map[event.Stage]int64
	drafts  int32
	state   event.State
	outcome event.Outcome
}

// requests returns the requests among events, in the order of their numbers.
func requests(all []event.Event) (out []*seen) {
	for _, e := range all {
		if e.Req == 0 {
			continue
		}
		for len(out) < int(e.Req) {
			out = append(out, &seen{stages: map[event.Stage]int64{}})
		}
		r := out[e.Req-1]
		switch e.Kind {
		case event.KindRequest:
			r.state = e.State
			if o, ok := e.Data.(*event.Outcome); ok {
				r.outcome = *o
			}
			if e.State == event.StateQueued {
				r.queued = e.At
			}
		case event.KindStage:
			r.stages[e.Stage] += e.Dur
			if e.Text == "draft" {
				r.drafts += e.N
			}
		case event.KindToken:
			r.tokens, r.at = append(r.tokens, e.ID), append(r.at, e.At)
		}
	}
	return out
}

// ends returns the requests once n have ended.
func (h *heard) ends(t *testing.T, n int) []*seen {
	t.Helper()
	var out []*seen
	h.wait(t, fmt.Sprintf("%d ends", n), func(event.Event) bool {
		h.mu.Lock()
		defer h.mu.Unlock()
		out = requests(h.all)
		return len(slices.DeleteFunc(slices.Clone(out), func(r *seen) bool { return !r.state.Final() })) >= n
	})
	return out
}

// words makes a prompt of n different words.
func words(begin string, n int) string {
	out := begin
	for i := range n {
		out += fmt.Sprintf(" %c%d", 'a'+i%26, i)
	}
	return out
}

// TestRequestsOfServer compares what is seen of requests with what the server answers: token ids, and the numbers of tokens
// in the prompt, in the cache and in the answer. Requests that came by a connection have all their parts.
func TestRequestsOfServer(t *testing.T) {
	needProbes(t)
	for name, c := range map[string]struct {
		args  []string
		words int
	}{
		"one slot":                          {[]string{"--parallel", "1"}, 5},
		"two slots":                         {[]string{"--parallel", "2"}, 5},
		"four slots with a unified cache":   {[]string{"--parallel", "4", "--kv-unified"}, 5},
		"long prompts in several passes":    {[]string{"--parallel", "2", "--batch-size", "32", "--ubatch-size", "16"}, 40},
		"long prompts with a unified cache": {[]string{"--parallel", "2", "--kv-unified", "--batch-size", "64", "--ubatch-size", "16"}, 40},
		"draft model":                       {[]string{"--parallel", "2", "--spec-draft-n-max", "4", "--spec-type", "draft-simple", "--model-draft", peer.Model(t)}, 5},
	} {
		t.Run(name, func(t *testing.T) {
			server := peer.LlamaServer(t, "", append(c.args, "--threads", "1", "--ctx-size", "2048")...)
			h := observe(t, server.PID, engine.NewClock(), engine.Hooks{})
			const at = 4 // requests at a time
			var replies [2 * at]reply
			for round := range 2 { // the second one finds the prompts of the first in the cache
				var tasks errgroup.Group
				for i := range at {
					tasks.Go(func() error {
						body := map[string]any{
							"prompt": words(fmt.Sprint("Number ", i), c.words+2*round) + fmt.Sprint(" end ", i), "n_predict": 12 + i, "temperature": 0, "ignore_eos": true, "return_tokens": true,
						}
						return post(t.Context(), server.URL+"/completion", body, func(line []byte) error {
							return json.Unmarshal(line, &replies[round*at+i])
						})
					})
				}
				if err := tasks.Wait(); err != nil {
					t.Fatal(err)
				}
			}
			got := h.ends(t, len(replies))
			cached, drafted := 0, 0
			for i, want := range replies {
				k := slices.IndexFunc(got, func(r *seen) bool {
					return slices.Equal(r.tokens, want.Tokens) && r.outcome.Cached == want.Timings.Cached && r.outcome.Prompt == want.Timings.Cached+want.Timings.Prompt
				})
				if k < 0 {
					t.Errorf("no request %d with %d tokens in the prompt, %d of them cached, and the tokens %v", i, want.Timings.Cached+want.Timings.Prompt, want.Timings.Cached, want.Tokens)
					continue
				}
				r := got[k]
				got = slices.Delete(got, k, k+1)
				if r.state != event.StateFinished || r.outcome.Generated != len(want.Tokens) {
					t.Errorf("request %d: %v with %d tokens", i, r.state, r.outcome.Generated)
				}
				for _, s := range []event.Stage{event.StageReceive, event.StageTokenize, event.StageQueue, event.StagePrompt, event.StageFirst} {
					if r.stages[s] <= 0 {
						t.Errorf("request %d has no part %v", i, s)
					}
				}
				if int(r.drafts) != want.Timings.Drafted {
					t.Errorf("request %d: %d drafted tokens, want %d", i, r.drafts, want.Timings.Drafted)
				}
				cached, drafted = cached+want.Timings.Cached, drafted+want.Timings.Drafted
			}
			for _, r := range got {
				t.Errorf("another request: %v, %d tokens in the prompt, %d of them cached, and the tokens %v", r.state, r.outcome.Prompt, r.outcome.Cached, r.tokens)
			}
			t.Logf("%d tokens from the cache, %d drafted", cached, drafted)
			if cached == 0 || name == "draft model" != (drafted > 0) {
				t.Error("these are not the requests that the test is about")
			}
			if drafted > 0 {
				compareDrafts(t, h, replies[:])
			}
		})
	}
}

// compareDrafts compares the sums of speculation with those of replies.
func compareDrafts(t *testing.T, h *heard, replies []reply) {
	t.Helper()
	var want [2]uint64
	for _, r := range replies {
		want[0] += uint64(r.Timings.Drafted)
		want[1] += uint64(r.Timings.Accepted)
	}
	h.wait(t, fmt.Sprintf("%v drafted and accepted tokens", want), func(e event.Event) bool {
		s, ok := e.Data.(*event.Speculation)
		if !ok || s.DraftTime == 0 || len(s.Shapes) < 2 {
			return false
		}
		var got [2]uint64
		for i := range s.Drafted {
			got[0], got[1] = got[0]+s.Drafted[i], got[1]+s.Accepted[i]
		}
		return got == want
	})
}

// TestCancelledRequest leaves a server during an answer: the request ends as cancelled, and the next one is measured.
func TestCancelledRequest(t *testing.T) {
	needProbes(t)
	server := peer.LlamaServer(t, "", "--parallel", "1", "--threads", "1", "--ctx-size", "8192")
	h := observe(t, server.PID, engine.NewClock(), engine.Hooks{})
	ctx, leave := context.WithCancel(t.Context())
	messages := 0
	body := map[string]any{"prompt": "The white whale", "n_predict": 4000, "ignore_eos": true, "stream": true}
	if err := post(ctx, server.URL+"/completion", body, func([]byte) error {
		if messages++; messages == 20 {
			leave()
		}
		return nil
	}); !errors.Is(err, context.Canceled) {
		t.Fatalf("after %d messages: %v", messages, err)
	}
	body["n_predict"], body["stream"] = 5, false
	complete(t, server.URL, body)
	got := h.ends(t, 2)
	if r := got[0]; r.state != event.StateCancelled || r.outcome.Generated < 20 || r.outcome.Generated == 4000 || r.stages[event.StageSend] <= 0 {
		t.Errorf("the first request: %v after %d tokens, first sent after %d ns", r.state, r.outcome.Generated, r.stages[event.StageSend])
	}
	if r := got[1]; r.state != event.StateFinished || r.outcome.Generated != 5 || r.stages[event.StageSend] != 0 {
		t.Errorf("the second request: %v after %d tokens, first sent after %d ns", r.state, r.outcome.Generated, r.stages[event.StageSend])
	}
}

// TestEmbeddings watches a server that computes embeddings: requests without tokens of their own.
func TestEmbeddings(t *testing.T) {
	needProbes(t)
	server := peer.LlamaServer(t, "", "--embedding", "--pooling", "mean", "--parallel", "2", "--threads", "1")
	h := observe(t, server.PID, engine.NewClock(), engine.Hooks{})
	for _, n := range []int{3, 30} {
		if err := post(t.Context(), server.URL+"/embedding", map[string]any{"content": words("Once", n)}, func([]byte) error { return nil }); err != nil {
			t.Fatal(err)
		}
	}
	got := h.ends(t, 2)
	for i, r := range got {
		if r.state != event.StateFinished || r.outcome.Generated != 0 || r.outcome.Prompt < 3 || r.stages[event.StagePrompt] <= 0 || r.stages[event.StageReceive] <= 0 {
			t.Errorf("request %d: %+v", i, r)
		}
	}
	if len(got) != 2 || got[0].outcome.Prompt >= got[1].outcome.Prompt {
		t.Errorf("%d requests", len(got))
	}
}

// TestAgreement sends requests through llmtop's proxy to a server that probes watch, and compares what both measure with the
// server's own timings. It prints the distances, which depend on the machine, and checks what does not: ids and counts.
func TestAgreement(t *testing.T) {
	needProbes(t)
	server := peer.LlamaServer(t, "", "--parallel", "1", "--threads", "1", "--ctx-size", "2048")
	clock := engine.NewClock()
	h, between := observe(t, server.PID, clock, engine.Hooks{}), &heard{}
	p, err := proxy.New(proxy.Options{To: server.URL, Clock: clock})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- p.Run(ctx, between) }()
	defer func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	const n = 20
	var replies [n]reply
	for i := range replies {
		var ids []int32
		body := map[string]any{
			"prompt": words(fmt.Sprint("Number ", i), 20), "n_predict": 40, "temperature": 0, "ignore_eos": true, "return_tokens": true, "stream": true,
		}
		if err := post(t.Context(), p.Address()+"/completion", body, func(line []byte) error {
			replies[i].Tokens = nil
			err := json.Unmarshal(line, &replies[i])
			ids = append(ids, replies[i].Tokens...)
			return err
		}); err != nil {
			t.Fatal(err)
		}
		replies[i].Tokens = ids
	}
	stop() // closes the connections while the last request may seem to run
	probed, proxied := h.ends(t, n), between.ends(t, n)
	distances := map[string][]float64{}
	add := func(what string, a, b float64) { distances[what] = append(distances[what], max(a-b, b-a)) }
	for i, want := range replies {
		a, b, timings := probed[i], proxied[i], want.Timings
		if !slices.Equal(a.tokens, want.Tokens) || a.outcome.Generated != timings.Predicted || a.outcome.Prompt != timings.Cached+timings.Prompt || a.outcome.Cached != timings.Cached {
			t.Errorf("request %d: tokens %v, %+v; want %v, %+v", i, a.tokens, a.outcome, want.Tokens, timings)
		}
		if a.state != event.StateFinished {
			t.Errorf("request %d: %v", i, a.state)
		}
		if b.outcome.Generated != timings.Predicted || a.stages[event.StageSend] <= 0 {
			t.Errorf("request %d: %d tokens by the proxy, first sent after %d ns", i, b.outcome.Generated, a.stages[event.StageSend])
			continue
		}
		sum := int64(0)
		for _, s := range event.Components() {
			sum += a.stages[s]
		}
		ttft := int64(a.at[0]-a.queued) + a.stages[event.StageSend]
		add("TTFT, its parts", float64(ttft), float64(sum))
		add("TTFT, proxy", float64(ttft), float64(b.at[0]-b.queued))
		add("prefill, server", float64(a.stages[event.StagePrompt]+a.stages[event.StageFirst]), timings.PromptMS*1e6)
		add("decode, server", float64(a.at[len(a.at)-1]-a.at[0]), timings.PredictedMS*1e6)
		if len(b.at) != len(a.at) {
			t.Logf("request %d: %d of %d tokens came alone", i, len(b.at), len(a.at))
			continue
		}
		for k := range len(a.at) - 1 {
			add("gap, proxy", float64(a.at[k+1]-a.at[k]), float64(b.at[k+1]-b.at[k]))
		}
	}
	for _, what := range []string{"TTFT, its parts", "TTFT, proxy", "prefill, server", "decode, server", "gap, proxy"} {
		d := distances[what]
		slices.Sort(d)
		if len(d) == 0 {
			t.Errorf("nothing to compare: %s", what)
			continue
		}
		t.Logf("%-16s %4d: p50 %s, p99 %s", what, len(d), metric.Duration(int64(d[len(d)/2])), metric.Duration(int64(d[len(d)*99/100])))
	}
	if d := distances["TTFT, its parts"]; len(d) > 0 && d[len(d)-1] != 0 {
		t.Errorf("the parts of TTFT do not add up: %v ns are missing", d[len(d)-1])
	}
}
