package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/event/wire"
	"github.com/llmtop/llmtop/runtime/source/peer"
)

// TestTallyOfSlotsAndCounters: rates and totals count tokens seen in slots at once, and those seen only in the server's
// counters: of requests between two polls, and of requests that ended after the last poll. Nothing counts twice.
func TestTallyOfSlotsAndCounters(t *testing.T) {
	busy := func(task int64, prompt, decoded int) []slot {
		return []slot{{ID: 0, Context: 64, Processing: true, Task: task, Processed: prompt, Next: nextToken{Decoded: decoded}}}
	}
	const second = event.Time(1e9)
	f := slotTracker{ids: new(atomic.Uint64)}
	for _, poll := range []struct {
		at                event.Time
		slots             []slot
		metrics           bool    // the metrics were read as well
		generated, prompt float64 // increase of the server's counters since they were read last
		delay             bool
		want              float64 // tokens since the last poll
		decode, prefill   float64 // rates afterwards
	}{
		{1 * second, busy(1, 5, 10), true, 0, 0, false, 0, 0, 0},
		{5 * second / 4, busy(1, 5, 15), false, 0, 0, true, 5, 0, 0},
		{6 * second / 4, busy(2, 7, 4), false, 0, 0, true, 4, 0, 0},
		{2 * second, busy(3, 7, 2), true, 20 + 30, 7 + 8, false, 33, 42, 15},        // task 1 ended with 20 tokens, task 2 with 30
		{9 * second / 4, busy(3, 7, 8), false, 0, 0, true, 6, 42, 15},               // seen in the slot
		{3 * second, busy(9, 6, 1), true, 10 + 5*40, 5 * 20, false, 203, 209, 100},  // task 3 ended with 10, and five requests ran between polls
		{4 * second, []slot{{ID: 0, Context: 64}}, true, 12, 0, false, 11, 11, 0},   // task 9 ended with 12
		{5 * second, []slot{{ID: 0, Context: 64}}, true, 0, 0, false, 0, 0, 0},      // no request
		{21 * second / 4, busy(10, 9, 3), false, 0, 0, true, 3, 0, 0},               // seen before it is counted
		{6 * second, []slot{{ID: 0, Context: 64}}, true, 50, 21, false, 47, 50, 21}, // the rest is counted when it ends
		{7 * second, []slot{{ID: 0, Context: 64}}, true, 0, 0, false, 0, 0, 0},      // no request
	} {
		p := &event.Aggregates{Interval: 1}
		if poll.metrics {
			p.Generated, p.Prompt, p.Cached = event.DerivedValue(poll.generated), event.DerivedValue(poll.prompt+40), event.DerivedValue(40)
		}
		f.delayRates = poll.delay
		f.update(poll.slots, poll.at, p)
		if p.Generated.V != poll.want || p.Decode.V != poll.decode || p.Prefill.V != poll.prefill {
			t.Errorf("at %v: %v new tokens, decode %v/s, prefill %v/s; want %v, %v and %v",
				poll.at, p.Generated.V, p.Decode.V, p.Prefill.V, poll.want, poll.decode, poll.prefill)
		}
	}
}

// TestSlotsAboveLimit: all slots count in the sums; up to wire.MaxSlots of them are listed.
func TestSlotsAboveLimit(t *testing.T) {
	const busy = wire.MaxSlots + 5
	f := slotTracker{ids: new(atomic.Uint64)}
	list := make([]slot, busy)
	for i := range list {
		list[i] = slot{ID: i, Context: 10, Tokens: 4, Processing: true, Task: int64(i + 1)}
	}
	f.update(list, 1e9, &event.Aggregates{})
	for i := range list {
		list[i].Next.Decoded = 3
	}
	p := &event.Aggregates{}
	f.update(list, 2e9, p)
	if len(p.Slots) != wire.MaxSlots || p.Running.V != busy || p.KVTotal.V != 10*busy || p.Generated.V != 3*busy {
		t.Errorf("%d slots, %v running, %v cells, %v tokens", len(p.Slots), p.Running.V, p.KVTotal.V, p.Generated.V)
	}
	line, err := wire.Append(nil, &event.Event{Kind: event.KindAggregates, At: 1, Layer: -1, Data: p})
	if err != nil {
		t.Fatal(err)
	}
	got := 0
	_, err = new(wire.Decoder).Decode(line, func(e event.Event) { got = len(e.Data.(*event.Aggregates).Slots) })
	if got != wire.MaxSlots || err != nil {
		t.Errorf("%d slots decoded, %v", got, err)
	}
}

// TestEndsOfSlots checks the last tokens and the end of requests that have left their slots, by what llama-server shows
// of idle slots: whether more tokens would have followed, and the tokens in the cache, which lack the last one.
func TestEndsOfSlots(t *testing.T) {
	for name, c := range map[string]struct {
		idle string
		want int
		end  event.State
	}{
		"to its end":      {`"id_task":5,"n_prompt_tokens":306,"next_token":[{"has_next_token":false,"n_decoded":0}]`, 300, event.StateFinished},
		"cut off":         {`"id_task":5,"n_prompt_tokens":289,"next_token":[{"has_next_token":true,"n_decoded":0}]`, 282, event.StateCancelled},
		"cache cleared":   {`"id_task":5,"n_prompt_tokens":0,"next_token":[{"has_next_token":false,"n_decoded":0}]`, 280, event.StateFinished},
		"count is kept":   {`"id_task":5,"next_token":{"has_next_token":false,"n_decoded":299}`, 299, event.StateFinished},
		"speculative":     {`"speculative":true,"id_task":5,"n_prompt_tokens":306,"next_token":[{"has_next_token":false}]`, 280, event.StateFinished},
		"above its limit": {`"id_task":5,"n_prompt_tokens":900,"next_token":[{"has_next_token":false}],"params":{"n_predict":300}`, 300, event.StateFinished},
		"another task":    {`"id_task":6,"n_prompt_tokens":306,"next_token":[{"has_next_token":false}]`, 280, event.StateNone},
		"an older server": {``, 280, event.StateNone},
	} {
		f := slotTracker{ids: new(atomic.Uint64)}
		p, sum := &event.Aggregates{}, 0.0
		for i, text := range []string{
			`"is_processing":false`,
			`"is_processing":true,"id_task":5,"n_prompt_tokens":287,"n_prompt_tokens_processed":6,"n_prompt_tokens_cache":1,"next_token":[{"has_next_token":true,"n_decoded":280}]`,
			strings.TrimSuffix(`"is_processing":false,`+c.idle, ","),
		} {
			var list []slot
			if err := json.Unmarshal([]byte(`[{"id":0,`+text+`}]`), &list); err != nil {
				t.Fatal(err)
			}
			p = &event.Aggregates{}
			f.update(list, event.Time(i+1)*1e9, p)
			sum += p.Generated.V
		}
		switch got := p.Slots[0]; {
		case sum != float64(c.want):
			t.Errorf("%s: %v tokens, want %d", name, sum, c.want)
		case got.End != c.end, c.end == event.StateNone && got.Request != 0:
			t.Errorf("%s: slot %+v", name, got)
		case c.end != event.StateNone && (got.Request == 0 || got.Generated != c.want || got.Prompt != 7 || got.Cached != 1):
			t.Errorf("%s: slot %+v", name, got)
		}
	}
}

// TestRealEndsOfSlots polls a real llama-server while a request is cut off, and while one runs to its end.
func TestRealEndsOfSlots(t *testing.T) {
	server := peer.LlamaServer(t, "", "--parallel", "2", "--ctx-size", "16384", "--threads", "1")
	w, n := startPoller(t, Options{Address: server.URL, NeverSleeps: func() bool { return true }}), 0
	for _, want := range []event.State{event.StateCancelled, event.StateFinished} {
		ctx, cancel := context.WithCancel(t.Context())
		answered := make(chan struct{})
		const limit = 900
		go func() {
			defer close(answered)
			req, err := http.NewRequestWithContext(ctx, http.MethodPost, server.URL+"/completion", strings.NewReader(fmt.Sprintf(`{"prompt":"Call me Ishmael.","n_predict":%d,"ignore_eos":true,"stream":true}`, limit)))
			if err != nil {
				t.Error(err)
				return
			}
			if res, err := http.DefaultClient.Do(req); err == nil {
				_, _ = io.Copy(io.Discard, res.Body)
				_ = res.Body.Close()
			}
		}()
		decodes := func(p *event.Aggregates) bool {
			return slices.ContainsFunc(p.Slots, func(s event.Slot) bool { return s.Generated > 0 && s.End == event.StateNone })
		}
		_, n = waitFor(w, event.KindAggregates, n, decodes)
		if want == event.StateCancelled {
			cancel()
		}
		var p *event.Aggregates
		p, n = waitFor(w, event.KindAggregates, n, func(p *event.Aggregates) bool {
			return slices.ContainsFunc(p.Slots, func(s event.Slot) bool { return s.End != event.StateNone })
		})
		i := slices.IndexFunc(p.Slots, func(s event.Slot) bool { return s.End != event.StateNone })
		if s := p.Slots[i]; s.End != want || want == event.StateFinished && s.Generated != limit {
			t.Errorf("slot %+v, want %v", s, want)
		}
		cancel()
		<-answered
	}
}

// Builds of llama.cpp differ in the JSON of a slot's next token. Nonsense is left out, and the slot stays.
func TestNextToken(t *testing.T) {
	for text, want := range map[string]int{`[{"n_decoded":7}]`: 7, `{"n_decoded":8}`: 8, `[]`: 0, `null`: 0, `"x"`: math.MaxInt, `[3]`: math.MaxInt} {
		var n nextToken
		if err := json.Unmarshal([]byte(text), &n); err != nil || n.Decoded != want {
			t.Errorf("%s: %v, %v", text, n.Decoded, err)
		}
	}
}

// TestLoadedAfterAnyRequest: a server rejects its first requests while it loads, up to any one of those that identify it.
func TestLoadedAfterAnyRequest(t *testing.T) {
	for n := range int32(6) {
		pages := map[string]string{
			"/v1/models": modelList("llamacpp"), "/slots": `[{"id":0,"n_ctx":64,"is_processing":false}]`,
			"/props":   `{"build_info":"b7000-6ee0f6579","total_slots":1,"endpoint_slots":true,"endpoint_metrics":true,"default_generation_settings":{"n_ctx":64}}`,
			"/metrics": "llamacpp:tokens_predicted_total 100\nllamacpp:requests_processing 0\nllamacpp:requests_deferred 0\n",
		}
		var requests atomic.Int32
		f := newFake(t, nil)
		f.setHandler(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Server", "llama.cpp")
			if requests.Add(1) <= n {
				w.WriteHeader(http.StatusServiceUnavailable)
				return
			}
			if page, ok := pages[r.URL.Path]; ok {
				_, _ = fmt.Fprint(w, page)
				return
			}
			http.NotFound(w, r)
		})
		w := startPoller(t, Options{Address: f.URL})
		waitFor(w, event.KindAggregates, 0, func(a *event.Aggregates) bool { return len(a.Slots) == 1 })
		if e := w.log.OfKind(event.KindEngine); e[len(e)-1].Data.(*event.EngineInfo).Name != "llama.cpp" {
			t.Errorf("%d rejected: %+v", n, e[len(e)-1].Data)
		}
		if len(w.log.OfKind(event.KindModel)) == 0 {
			t.Errorf("%d rejected: no model", n)
		}
	}
}

// TestLlamaRestart: after a restart, all tokens of the new process count, and all that were seen of the old one, also of
// requests that it could not end: whatever the polls saw, and whether or not it was polled while it loaded.
func TestLlamaRestart(t *testing.T) {
	const props = `{"build_info":"b10582-e85caa81e","total_slots":1,"endpoint_slots":true,"endpoint_metrics":true,"default_generation_settings":{"n_ctx":64}}`
	busy := func(task, decoded int) string {
		return fmt.Sprintf(`[{"id":0,"n_ctx":999,"is_processing":true,"id_task":%d,"n_prompt_tokens_processed":8,"next_token":[{"n_decoded":%d}]}]`, task, decoded)
	}
	const idle = `[{"id":0,"n_ctx":999,"is_processing":false}]`
	for name, c := range map[string]struct {
		before, task, loading int    // counted before; the task that was killed; requests rejected while it loads
		slots                 string // after the restart
		generated, counted    int    // then: counted by the server, and all that llmtop has counted
	}{
		"next task":                    {100, 2, 0, busy(0, 30), 0, 500 + 30},
		"the same task":                {100, 2, 0, busy(2, 30), 0, 500 + 30},
		"after loading":                {100, 2, 3, busy(0, 30), 0, 500 + 30},
		"the same task after loading":  {100, 0, 3, busy(0, 30), 0, 500 + 30},
		"between two polls":            {100, 2, 0, idle, 90, 500 + 90},
		"several since":                {100, 2, 3, busy(7, 30), 90, 500 + 90 + 30},
		"the first task":               {0, 2, 0, busy(0, 30), 0, 500 + 30},
		"the first task after loading": {0, 0, 3, busy(0, 30), 0, 500 + 30},
		"ended since":                  {0, 2, 3, busy(1, 30), 900, 500 + 900 + 30},
	} {
		t.Run(name, func(t *testing.T) {
			pages := func(prompt, generated, running int, slots string) map[string]string {
				const metrics = "llamacpp:prompt_tokens_total %d\nllamacpp:tokens_predicted_total %d\nllamacpp:requests_processing %d\n"
				return map[string]string{
					"/v1/models": modelList("llamacpp"), "/props": props, "/slots": slots, "/metrics": fmt.Sprintf(metrics, prompt, generated, running),
				}
			}
			f := newFake(t, pages(c.before, c.before, 0, idle))
			w := startPoller(t, Options{Address: f.URL})
			_, n := w.waitForLink(event.LinkConnected, "", 0)
			waitFor(w, event.KindAggregates, 1, func(a *event.Aggregates) bool { return len(a.Slots) == 1 })
			for path, page := range pages(c.before+8, c.before, 1, busy(c.task, 500)) {
				f.setPage(path, page)
			}
			waitFor(w, event.KindAggregates, 0, func(a *event.Aggregates) bool { return a.Running.V == 1 && a.Slots[0].Generated == 500 })
			f.Close()
			w.waitForLink(event.LinkDisconnected, "", n)
			reports := len(w.log.OfKind(event.KindAggregates))
			l, err := net.Listen("tcp", f.Listener.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			again := newFake(t, pages(8, c.generated, strings.Count(c.slots, "true"), c.slots))
			var requests atomic.Int32
			go func() {
				_ = http.Serve(l, http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
					rw.Header().Set("Server", "llama.cpp")
					if int(requests.Add(1)) <= c.loading {
						rw.WriteHeader(http.StatusServiceUnavailable)
						return
					}
					again.servePage(rw, r)
				}))
			}()
			t.Cleanup(func() { _ = l.Close() })
			waitFor(w, event.KindAggregates, reports+4, func(a *event.Aggregates) bool { return len(a.Slots) == 1 })
			sum := 0.0
			for _, e := range w.log.OfKind(event.KindAggregates) {
				if a, is := e.Data.(*event.Aggregates); is && a.Generated.OK() {
					sum += a.Generated.V
				}
			}
			if int(sum) != c.counted {
				t.Errorf("%v tokens, want %d", sum, c.counted)
			}
		})
	}
}

// TestCellsOfSlots: the cells in use are those that the slots say. Older servers say none, and the metrics may.
func TestCellsOfSlots(t *testing.T) {
	at := func(tokens, decoded int) []slot {
		return []slot{{ID: 0, Context: 100, Processing: true, Task: 1, Tokens: tokens, Processed: 5, Next: nextToken{Decoded: decoded}}, {ID: 1, Context: 100}}
	}
	for name, c := range map[string]struct {
		slots       []slot
		used, usage float64 // -1: not reported
	}{
		"said":               {at(25, 20), 25, 0.125},
		"not said":           {at(0, 20), 70, 0.35}, // as the metrics say
		"more than there is": {at(999, 20), -1, -1},
		"negative":           {at(-25, 20), -1, -1},
	} {
		f := slotTracker{ids: new(atomic.Uint64)}
		p := &event.Aggregates{KVUsed: event.ReportedValue(70), KVUsage: event.ReportedValue(0.35)}
		f.update(c.slots, 1, p)
		if p.KVUsed.OK() != (c.used >= 0) || p.KVUsage.OK() != (c.usage >= 0) || c.used >= 0 && (p.KVUsed.V != c.used || p.KVUsage.V != c.usage) {
			t.Errorf("%s: %+v, %+v; want %v, %v", name, p.KVUsed, p.KVUsage, c.used, c.usage)
		}
	}
}

// TestSlotsOfSeveralServers: joined slots, in which nothing shows whose they are, are not read. Prompts that no poll has seen
// count in the rate also of servers that do not count cached tokens.
func TestSlotsOfSeveralServers(t *testing.T) {
	const one = `{"id":0,"n_ctx":64,"is_processing":true,"id_task":%d,"n_prompt_tokens":8,"n_prompt_tokens_processed":8,"next_token":[{"n_decoded":2}]}`
	for slots, joined := range map[string]bool{fmt.Sprintf("["+one+","+one+"]", 1, 2): true, fmt.Sprintf("["+one+"]", 1): false} {
		prompts := func(n int) string {
			return fmt.Sprintf("llamacpp:prompt_tokens_total %d\nllamacpp:tokens_predicted_total 5\nllamacpp:requests_processing 1\n", n)
		}
		f := newFake(t, map[string]string{
			"/v1/models": modelList("llamacpp"), "/slots": slots, "/metrics": prompts(100),
			"/props": `{"build_info":"b9000-e85caa81e","total_slots":1,"endpoint_slots":true,"endpoint_metrics":true,"default_generation_settings":{"n_ctx":64}}`,
		})
		w := startPoller(t, Options{Address: f.URL})
		waitFor(w, event.KindAggregates, 1, func(a *event.Aggregates) bool { return a.Running.V == 1 })
		f.setPage("/metrics", prompts(100_100))
		if joined {
			waitFor(w, event.KindAggregates, 1, func(a *event.Aggregates) bool {
				return len(a.Slots) == 0 && slices.ContainsFunc(a.Endpoints, func(e event.Endpoint) bool { return strings.Contains(e.Reason, "twice") })
			})
			continue
		}
		waitFor(w, event.KindAggregates, 1, func(a *event.Aggregates) bool { return len(a.Slots) == 1 && a.Prefill.V > 1000 })
	}
}
