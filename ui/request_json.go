package ui

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/report"
	"github.com/llmtop/llmtop/profiler/store"
)

// requestJSON is a request as reports have it, with the tokens that the store has kept.
func requestJSON(s *store.Snapshot, r *store.Request) (string, error) {
	kept := report.NewCollector()
	kept.Emit(event.Event{Kind: event.KindRequest, Req: r.ID, At: r.Enqueued, State: event.StateQueued})
	for i := range r.Tokens {
		t := &r.Tokens[i]
		kept.Emit(event.Event{
			Kind: event.KindToken, Req: r.ID, At: t.At, ID: t.ID, Index: int32(t.Index), N: int32(t.N), Text: t.Text,
			LogP: t.LogP, HasLogP: t.HasLP, Top: t.Top, Picks: t.Picks,
		})
	}
	alone := &store.Snapshot{Now: s.Now, Wall: s.Wall, Started: s.Started, Requests: []*store.Request{r}}
	out := report.Build(report.Meta{}, alone, kept).Requests[0]
	for i := range out.Tokens { // the store knows what was waited on purpose
		if t := &r.Tokens[i]; t.Nth > 0 {
			out.Tokens[i].Gap = report.Number(event.From(float64(t.Gap) / 1e9))
		}
	}
	if len(r.Tokens) > 0 && r.Tokens[0].Nth > 0 {
		out.TokensCut, out.Text = uint64(r.Tokens[0].Nth), nil
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(out); err != nil {
		return "", fmt.Errorf("write request as JSON: %w", err)
	}
	return b.String(), nil
}
