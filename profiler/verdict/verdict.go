// Package verdict turns measurements into insights: the measured value, the limit it is checked against, and what to
// try, in that order.
package verdict

import "github.com/llmtop/llmtop/profiler/event"

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
	Topic    string     // "TTFT", "decode", "experts", "memory", ...: stable, at most one verdict per topic
	Cause    Cause      // of lost time
	Text     string     // the finding with measured value and limit, one sentence
	Evidence string     // supporting numbers, shown in the zoomed pane
	Try      string     // suggested action with the settings of the engine; "" if none
	Degrades bool       // counts against the health of the engine
	Since    event.Time // when it was found, without interruption
}
