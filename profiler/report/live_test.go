package report

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/store"
)

// wordless removes the texts from a report.
func wordless(t *testing.T, r *Report) map[string]any {
	t.Helper()
	doc := decoded(t, r)
	for _, q := range doc["requests"].([]any) {
		q := q.(map[string]any)
		q["text"] = nil
		for _, token := range q["tokens"].([]any) {
			token := token.(map[string]any)
			token["text"] = nil
			for _, c := range token["top_logprobs"].([]any) {
				c.(map[string]any)["text"] = ""
			}
		}
	}
	return doc
}

// TestLiveReportHasTheSameNumbers checks that a report from a snapshot has the numbers of the run's report, and no
// text.
func TestLiveReportHasTheSameNumbers(t *testing.T) {
	r := wholeRun()
	r.request(6, event.Request{Group: "g", Prompt: "secret prompt"}, 20)
	live := FromSnapshot(Meta{Version: "1"}, r.store.Snapshot())
	if d := cmp.Diff(wordless(t, r.build(Meta{Version: "1", Partial: true})), wordless(t, live)); d != "" {
		t.Error(d)
	}
	var doc any
	out := written(t, live)
	if err := json.Unmarshal(out, &doc); err != nil {
		t.Fatal(err)
	}
	if err := schema(t).Validate(doc); err != nil {
		t.Error(err)
	}
	if strings.Contains(string(out), "secret prompt") || live.Requests[0].Text != nil || live.Requests[0].Tokens[0].Text != nil {
		t.Error("the report contains text")
	}
}

// TestLiveReportCountsWhatIsCut checks that tokens that the store no longer keeps count as cut, and that an unfinished
// run is partial.
func TestLiveReportCountsWhatIsCut(t *testing.T) {
	r := runKeeping(0)
	r.load()
	ids := event.RequestID(store.MaxRequests + 9)
	for id := range ids {
		r.request(id+1, event.Request{}, 2)
	}
	r.emit(ms, event.Event{Kind: event.KindRequest, Req: ids + 1, State: event.StateQueued, Data: &event.Request{}})
	for range store.MaxTokens + 40 {
		r.emit(ms, event.Event{Kind: event.KindToken, Req: ids + 1, N: 1})
	}
	live, whole := FromSnapshot(Meta{}, r.store.Snapshot()), r.build(Meta{})
	if !live.Partial || len(live.Requests) != len(whole.Requests) || live.Omitted.Requests != 0 || live.Totals.Finished != whole.Totals.Finished {
		t.Errorf("partial %v, %d requests of %d, cut %+v", live.Partial, len(live.Requests), len(whole.Requests), live.Omitted)
	}
	last := live.Requests[len(live.Requests)-1]
	if last.TokensCut == 0 || int(last.TokensCut)+len(last.Tokens) != store.MaxTokens+40 {
		t.Errorf("%d tokens cut, %d kept", last.TokensCut, len(last.Tokens))
	}
	if first := live.Requests[0]; first.TTFT != whole.Requests[0].TTFT || first.TokensCut != 2 {
		t.Errorf("first request: %+v", first)
	}
}

// A request lists only its last stalls, and how many there were before them.
func TestStallsThatAreCut(t *testing.T) {
	r := newRun()
	r.load()
	r.emit(0, event.Event{Kind: event.KindRequest, Req: 1, State: event.StateQueued, Data: &event.Request{}})
	r.emit(0, event.Event{Kind: event.KindRequest, Req: 1, State: event.StateDispatched})
	const stalls = store.MaxStalls + 5
	for i := range 20 * stalls {
		if r.now += event.Time(1e6); i >= 20 && i%19 == 0 {
			r.now += event.Time(1e9)
		}
		r.emit(0, event.Event{Kind: event.KindToken, Req: 1, N: 1, Index: int32(i)})
	}
	f := FromSnapshot(Meta{}, r.store.Snapshot()).Requests[0]
	if len(f.Stalls) > store.MaxStalls || f.StallsCut == 0 || len(f.Stalls)+f.StallsCut != r.store.Snapshot().Current.StallCount() {
		t.Errorf("%d stalls, %d of them cut, want %d", len(f.Stalls), f.StallsCut, r.store.Snapshot().Current.StallCount())
	}
}
