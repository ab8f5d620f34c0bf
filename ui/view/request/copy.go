package request

import (
	"bytes"
	"fmt"

	"github.com/llmtop/llmtop/profiler/clean"
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
	var b bytes.Buffer
	if err := clean.NewEncoder(&b).Encode(report.NewRequest(s, r)); err != nil {
		return "", fmt.Errorf("write request as JSON: %w", err)
	}
	return b.String(), nil
}
