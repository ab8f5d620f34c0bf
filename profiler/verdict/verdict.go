// Package verdict turns measurements into sentences: what was measured, the limit it is held against, and what to try, in
// that order.
package verdict

// Severity orders verdicts; the screen colours them by it.
type Severity uint8

// The severities.
const (
	Good Severity = iota // within its limit
	Info
	Watch
	Bad
)

// Verdict is one finding with its evidence.
type Verdict struct {
	Severity Severity
	Topic    string // "TTFT", "decode", "experts", "memory", "CPU": stable, one verdict a topic at a time
	Text     string // the finding with its measured number and limit, one sentence
	Evidence string // the numbers it rests on, shown in the zoomed pane
	Try      string // what to do about it; "" if nothing
}
