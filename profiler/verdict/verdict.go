// Package verdict turns measurements into insights: the measured value, the limit it is checked against, and what to
// try, in that order.
package verdict

import (
	"fmt"
	"slices"

	"github.com/llmtop/llmtop/profiler/event"
)

// Severity orders verdicts; the screen colours them by it.
type Severity uint8

// The severities.
const (
	Good Severity = iota // within its limit
	Info
	Watch
	Bad
)

var severities = [...]string{Good: "good", Info: "info", Watch: "watch", Bad: "bad"}

// String returns the name of the severity.
func (s Severity) String() string { return severities[s] }

// MarshalText returns the name of the severity.
func (s Severity) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads the name of a severity.
func (s *Severity) UnmarshalText(text []byte) error {
	i := slices.Index(severities[:], string(text))
	if i < 0 {
		return fmt.Errorf("unknown severity %.20q", text)
	}
	*s = Severity(i)
	return nil
}

// Verdict is one finding with its evidence.
type Verdict struct {
	Severity Severity   `json:"severity"`
	Topic    string     `json:"topic"`    // "TTFT", "decode", "experts", "memory", ...: stable, at most one verdict per topic
	Cause    Cause      `json:"-"`        // of lost time
	Text     string     `json:"text"`     // the finding with measured value and limit, one sentence
	Evidence string     `json:"evidence"` // supporting numbers, shown in the zoomed pane
	Try      string     `json:"try"`      // suggested action with the settings of the engine; "" if none
	Degrades bool       `json:"-"`        // counts against the health of the engine
	Since    event.Time `json:"-"`        // when it was found, without interruption
}
