package report

import "github.com/llmtop/llmtop/profiler/event"

// Bench says which of the requests a benchmark made for what. Requests of its warm-up are in no run.
type Bench struct {
	Points []Point `json:"points"`
}

// Point is one point of a benchmark's workload: so many requests side by side or a second, of prompts of one kind.
type Point struct {
	Name        string `json:"name"`
	Concurrency int    `json:"concurrency"`         // 0: open loop
	Rate        Number `json:"rate_requests_per_s"` // null: closed loop
	Runs        []Run  `json:"runs"`                // the repeats, in order
}

// Run is one repeat of a point.
type Run struct {
	Requests []event.RequestID `json:"requests"`
	Started  Number            `json:"started_s"` // since the session began
	Duration Number            `json:"duration_s"`
}
