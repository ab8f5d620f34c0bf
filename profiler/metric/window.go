// Package metric holds the definitions of llmtop's numbers: each formula once, used by the store, the reports and the
// comparisons alike.
package metric

import "time"

// Window is the span of time that a statistic covers, ending now.
type Window uint8

// The windows that every distribution is kept for.
const (
	Second Window = iota
	TenSeconds
	Minute
	Session
	NumWindows
)

var windows = [NumWindows]struct {
	name string
	span time.Duration
}{{"last 1 s", time.Second}, {"last 10 s", 10 * time.Second}, {"last 1 min", time.Minute}, {"session", 0}}

// String names the window as titles do, for example "last 10 s".
func (w Window) String() string { return windows[w].name }

// Span is the window's length, 0 for the session.
func (w Window) Span() time.Duration { return windows[w].span }

// Phase tells prompt processing from generation in router counts.
type Phase uint8

// The phases; Both is their sum.
const (
	Decode Phase = iota
	Prompt
	Both
	NumPhases
)

// String names the phase as titles do.
func (p Phase) String() string { return [...]string{"decode", "prompt", "prompt + decode"}[p] }

// Summary describes one distribution. All times are in ns. Percentiles come from a log-linear histogram (relative error
// at most 1/64); Count 0 means that nothing was recorded and no other field means anything.
type Summary struct {
	Count              uint64
	Mean, StdDev       float64
	Min, Max           int64
	P50, P90, P95, P99 int64
}
