// Package table arranges the list of requests and the list of replicas: columns, filter, order and totals. It draws
// nothing.
package table

import (
	"strconv"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/profiler/store"
)

// Field is a column of the table of requests. Requests can be filtered and sorted by it.
type Field uint8

// The fields, in the order of their columns.
const (
	ID Field = iota
	State
	Age
	Group
	Label
	Prompt
	Cached
	Generated
	Queue
	TTFT
	Answer
	TPOT
	ITL // p99
	E2EL
	Rate
	Stalls
	Reason
	Model
	Text
	NumFields
)

var fields = [NumFields]metric.Column{
	ID:        {Name: "id", Title: "id", Means: "number of the request"},
	State:     {Name: "state", Title: "state", Unit: metric.Word, Means: "queued, waiting (no queue is reported), running, finished, cancelled, failed, unseen"},
	Age:       {Name: "age", Title: "age", Unit: "s", Means: "time since it was enqueued"},
	Group:     {Name: "group", Title: "group", Unit: metric.Word, Means: "adapter or tenant"},
	Label:     {Name: "label", Title: "label", Unit: metric.Word, Means: "prompt kind"},
	Prompt:    {Name: "prompt", Title: "prompt", Means: "prompt tokens, cached ones included"},
	Cached:    {Name: "cached", Title: "cached", Means: "prompt tokens taken from a cache"},
	Generated: {Name: "gen", Title: "gen", Means: "generated tokens"},
	Queue:     {Name: "queue", Title: "queue", Unit: "s", Means: "enqueued to dispatched"},
	TTFT:      {Name: "ttft", Title: "TTFT", Unit: "s", Means: "time to first token"},
	Answer:    {Name: "answer", Title: "1st answer", Unit: "s", Means: "time to the first token of the answer, of requests that reason"},
	TPOT:      {Name: "tpot", Title: "TPOT", Unit: "s", Means: "time per output token"},
	ITL:       {Name: "itl", Title: "p99 ITL", Unit: "s", Means: "99th percentile of the gaps between tokens"},
	E2EL:      {Name: "e2el", Title: "E2EL", Unit: "s", Means: "enqueued to the last token"},
	Rate:      {Name: "rate", Title: "tok/s", Unit: "{token}/s", Means: "decode tokens/s"},
	Stalls:    {Name: "stalls", Title: "stalls", Means: "gaps of at least 3 times the median"},
	Reason:    {Name: "reason", Title: "reason", Unit: metric.Word, Means: "why it ended"},
	Model:     {Name: "model", Title: "model", Unit: metric.Word, Means: "model, where several serve"},
	Text:      {Name: "text", Title: "prompt text", Unit: metric.Word, Means: "beginning of the prompt, where it is sent"},
}

// String returns the name of the field in filters.
func (f Field) String() string { return fields[f].Name }

// Title returns the column title.
func (f Field) Title() string { return fields[f].Title }

// Unit returns the unit of the field.
func (f Field) Unit() event.Unit { return fields[f].Unit }

// maxText bounds the beginning of a prompt in a row, in bytes.
const maxText = 256

// Text returns the value of a field of text, not sanitised, or "" if absent.
func (f Field) Text(r *store.Request) string {
	switch f {
	case State:
		return r.Status()
	case Group:
		return r.Group
	case Label:
		return r.Label
	case Model:
		return r.Model
	case Reason:
		return r.Reason
	case Text:
		return r.Prompt[:min(len(r.Prompt), maxText)]
	}
	return ""
}

// Value returns the value of a numeric field.
func (f Field) Value(r *store.Request, now event.Time) event.Reading {
	switch f {
	case ID:
		return event.DerivedValue(float64(r.ID))
	case Age:
		if r.MissedStart {
			return event.Absent(event.NotReported)
		}
		return event.DerivedValue(float64(max(now-r.Enqueued, 0)) / 1e9)
	case Prompt:
		return countIf(r.PromptTokens, r.PromptTokens > 0)
	case Cached:
		return countIf(r.CachedTokens, r.PromptTokens > 0 && !r.AnyCached)
	case Generated:
		return countIf(r.Generated, r.Generated > 0 || r.State.Final())
	case Queue:
		return r.STIL
	case TTFT:
		return r.TTFT
	case Answer:
		if !r.Reasons() {
			return event.Absent(event.Undefined)
		}
		return r.Answer
	case TPOT:
		return r.TPOT
	case ITL:
		return ofGaps(r, float64(r.ITL.P99)/1e9)
	case E2EL:
		return r.E2EL
	case Rate:
		return r.DecodeRate
	case Stalls:
		return ofGaps(r, float64(r.StallCount()))
	}
	return event.Absent(event.Undefined)
}

// countIf returns n, or NotYet if ok is false.
func countIf(n int, ok bool) event.Reading {
	if !ok {
		return event.Absent(event.NotYet)
	}
	return event.DerivedValue(float64(n))
}

// ofGaps returns v, which is of the gaps between tokens, or why the request has none.
func ofGaps(r *store.Request, v float64) event.Reading {
	switch {
	case r.ITL.Count > 0:
		return event.DerivedValue(v)
	case r.Polled:
		return event.Absent(event.NotReported)
	}
	return event.Absent(event.NotYet)
}

// Missed reports whether a request has missed one of its targets, or is running for so long that it must miss it.
func Missed(r *store.Request, now event.Time) bool { return r.Misses(now) != 0 }

// Target returns the target for a field's values (0: none) and whether a request missed it.
func (f Field) Target(r *store.Request, now event.Time) (target time.Duration, missed bool) {
	t := &r.Targets
	var which store.Misses
	switch f {
	case TTFT:
		target, which = t.TTFT, store.MissedTTFT
	case Answer:
		target, which = t.Answer, store.MissedAnswer
	case TPOT:
		target, which = t.TPOT, store.MissedTPOT
	case ITL:
		target, which = t.ITL, store.MissedITL
	case E2EL:
		target, which = t.E2EL, store.MissedE2EL
	}
	return target, which != 0 && r.Misses(now).Has(which)
}

// idText formats the id as the filter matches it.
func idText(r *store.Request) string { return "#" + strconv.FormatUint(uint64(r.ID), 10) }
