package report

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/store"
)

// wordless takes from a report what only a run that is collected from its beginning can tell: texts, and what samples of the machine sum up to.
func wordless(t *testing.T, r *Report) map[string]any {
	t.Helper()
	doc := decoded(t, r)
	delete(doc["host"].(map[string]any), "over_run")
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

// The report of what a store shows has the numbers of the run's own report, and no word of what was said.
func TestLiveReportHasTheSameNumbers(t *testing.T) {
	r := wholeRun()
	r.request(6, event.Request{Group: "g", Prompt: "secret prompt"}, 20)
	live := Live(Meta{Version: "1"}, r.store.Snapshot())
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
		t.Error("the report tells what was said")
	}
}

// What the store no longer keeps is counted as cut, and a run that goes on is partial.
func TestLiveReportTellsWhatIsCut(t *testing.T) {
	r := newRun()
	r.load()
	ids := event.RequestID(store.MaxRequests + 9)
	for id := range ids {
		r.request(id+1, event.Request{}, 2)
	}
	r.emit(ms, event.Event{Kind: event.KindRequest, Req: ids + 1, State: event.StateQueued, Data: &event.Request{}})
	for range store.MaxTokens + 40 {
		r.emit(ms, event.Event{Kind: event.KindToken, Req: ids + 1, N: 1})
	}
	live, whole := Live(Meta{}, r.store.Snapshot()), r.build(Meta{})
	if !live.Partial || len(live.Requests) != len(whole.Requests) || live.Cut.Requests != 0 || live.Totals.Finished != whole.Totals.Finished {
		t.Errorf("partial %v, %d requests of %d, cut %+v", live.Partial, len(live.Requests), len(whole.Requests), live.Cut)
	}
	last := live.Requests[len(live.Requests)-1]
	if last.TokensCut == 0 || int(last.TokensCut)+len(last.Tokens) != store.MaxTokens+40 {
		t.Errorf("%d tokens are cut, %d are kept", last.TokensCut, len(last.Tokens))
	}
	if first := live.Requests[0]; first.TTFT != whole.Requests[0].TTFT || first.TokensCut != 2 {
		t.Errorf("a request that is no longer kept in whole reads %+v", first)
	}
}
