// Package metric defines llmtop's numbers and how they are formatted: each formula once, for the store, the reports and
// the comparisons.
package metric

import "time"

// Window is the period that a statistic covers, ending now.
type Window uint8

// The windows. Every distribution is kept for each of them.
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

// String returns the window's name for titles, for example "last 10 s".
func (w Window) String() string { return windows[w].name }

// Span returns the window's length, 0 for the session.
func (w Window) Span() time.Duration { return windows[w].span }

// Phase separates prompt processing from generation in router counts.
type Phase uint8

// The phases; Both is their sum.
const (
	Decode Phase = iota
	Prompt
	Both
	NumPhases
)

// String returns the phase's name for titles.
func (p Phase) String() string { return [...]string{"decode", "prompt", "prompt + decode"}[p] }

// Summary describes a distribution of times in ns. Percentiles come from a log-linear histogram (relative error at most
// 1/64). If Count is 0, the other fields have no meaning.
type Summary struct {
	Count              uint64
	Mean, StdDev       float64
	Min, Max           int64
	P50, P90, P95, P99 int64
}
