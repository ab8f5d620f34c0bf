package request

import (
	"bytes"
	"fmt"

	"github.com/llmtop/llmtop/profiler/clean"
	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/profiler/report"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/ui/sanitize"
	"github.com/llmtop/llmtop/ui/table"
	"github.com/llmtop/llmtop/ui/view"
)

// copyRequest copies the selected request as JSON to the clipboard. A terminal does not confirm that it supports OSC 52.
func copyRequest(program view.Program, selection *table.Selection) {
	s := program.Snapshot()
	q := selection.Request(s)
	if q == nil {
		program.Notify("no request to copy")
		return
	}
	text, err := JSON(s, q)
	if err != nil {
		program.Notify(sanitize.Line(err.Error()))
		return
	}
	program.Copy(text)
	program.Notify(fmt.Sprintf("#%d copied as JSON, %s, if the terminal takes OSC 52", q.ID, metric.Bytes(float64(len(text)))))
}

// JSON formats a request as in reports, with the tokens that the store still has.
func JSON(s *store.Snapshot, r *store.Request) (string, error) {
	kept := report.NewCollector()
	kept.Emit(event.Event{Kind: event.KindRequest, Req: r.ID, At: r.Enqueued, State: event.StateQueued})
	tokens := r.Tokens.All()
	for i := range tokens {
		t := &tokens[i]
		kept.Emit(event.Event{
			Kind: event.KindToken, Req: r.ID, At: t.At, ID: t.ID, Index: int32(t.Index), N: int32(t.N), Text: t.Text,
			Step: t.Step, LogP: t.LogP, HasLogP: t.HasLP, Top: t.Top, Picks: t.Picks,
		})
	}
	alone := store.Empty()
	alone.Now, alone.Wall, alone.Started, alone.Requests = s.Now, s.Wall, s.Started, []*store.Request{r}
	out := report.Build(report.Meta{}, alone, kept).Requests[0]
	for i := range out.Tokens { // gaps of the store exclude pacing
		if t := &tokens[i]; t.Nth > 0 && t.Gap >= 0 {
			out.Tokens[i].Gap = report.Number(event.DerivedValue(float64(t.Gap) / 1e9))
		}
	}
	if len(tokens) > 0 && tokens[0].Nth > 0 {
		out.TokensCut, out.Text = uint64(tokens[0].Nth), nil
	}
	var b bytes.Buffer
	if err := clean.NewEncoder(&b).Encode(out); err != nil {
		return "", fmt.Errorf("write request as JSON: %w", err)
	}
	return b.String(), nil
}
