package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/profiler/verdict"
)

// heldUp is how many requests the section on waits lists.
const heldUp = 10

// words describes a part of a wait as the screen does.
func (w *Wait) words() string {
	part := store.Wait{Cause: verdict.Unknown}
	if i := slices.IndexFunc(verdict.Causes[:], func(c verdict.CauseRow) bool { return c.Key == w.Cause }); i >= 0 {
		part.Cause = verdict.Cause(i)
	}
	if w.Request != nil {
		part.By = *w.Request
	}
	return part.Words()
}

// waitsSection lists the requests that others held up longest before their first token.
func waitsSection(r *Report) section {
	s := section{title: "Held up before the first token", left: 1, header: []string{"request", "held up", "TTFT", "by"}}
	held := func(q *Request) (sum float64) {
		for _, w := range q.Waits {
			if w.Cause != verdict.Unknown.String() {
				sum += w.Wait.V
			}
		}
		return sum
	}
	all := slices.DeleteFunc(requestPointers(r), func(q *Request) bool { return held(q) <= 0 })
	slices.SortStableFunc(all, func(a, b *Request) int { return cmp.Compare(held(b), held(a)) })
	for _, q := range all[:min(len(all), heldUp)] {
		var by []string
		for _, w := range q.Waits {
			by = append(by, w.words()+" "+short(w.Wait, metric.Seconds))
		}
		s.rows = append(s.rows, []string{fmt.Sprintf("#%d", q.ID), metric.Seconds(held(q)), short(q.TTFT, metric.Seconds), strings.Join(by, ", ")})
	}
	if more := len(all) - heldUp; more > 0 {
		s.words = []string{fmt.Sprintf("The %d that waited longest of %d.", heldUp, len(all))}
	}
	return s
}
