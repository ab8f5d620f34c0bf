package alert

import (
	"fmt"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/profiler/store"
)

// State is the state of a rule.
type State uint8

// The states, in the order of a rule's life.
const (
	Quiet    State = iota // the condition does not hold, and the alert has not fired
	Pending               // the condition holds, but not long enough yet
	Firing                // the condition has held long enough
	Resolved              // the alert has fired, and the condition no longer holds
)

// String returns the state as a word.
func (s State) String() string { return [...]string{"quiet", "pending", "FIRING", "resolved"}[s] }

// Status is a rule with its current state.
type Status struct {
	Engine     string // engine name passed to NewWatch
	Name, When string
	For        time.Duration
	Window     metric.Window
	State      State
	Since      event.Time // start of this state; for Pending and Firing, when the condition began to hold
	Now        event.Time // time of the last evaluation
	Value      string     // reading of the condition's first measure, formatted
	Fired      uint64     // how many times it has fired
}

// Change is a rule that started to fire or resolved, or one that cannot hold.
type Change struct {
	Status
	Rule    *Rule
	Missing string // name of the measure without which the rule cannot hold; "": it fires or has resolved
}

// Message describes the change in one line.
func (c *Change) Message() string {
	if c.Missing != "" {
		return fmt.Sprintf("alert %s cannot fire: %s is not reported for what is watched", c.Name, c.Missing)
	}
	if c.State == Firing && c.For > 0 {
		return fmt.Sprintf("alert %s is firing: %s (%s for %v)", c.Name, c.Value, c.When, c.For)
	}
	if c.State == Firing {
		return fmt.Sprintf("alert %s is firing: %s (%s)", c.Name, c.Value, c.When)
	}
	return fmt.Sprintf("alert %s has resolved: %s (%s)", c.Name, c.Value, c.When)
}

// Watch evaluates rules on the snapshots of one session. Use it from one goroutine.
type Watch struct {
	rules  []Rule
	states []Status
	blocks []block // of each rule
}

// block is a measure that a rule lacks.
type block struct {
	since event.Time
	held  bool // it was missing in the last evaluation
	said  bool
}

// blockedFor is how long a measure must be missing, after the engine has reported anything, before a Change says so:
// not everything comes with the first report.
const blockedFor = 10 * time.Second

// blocked reports whether a rule has lacked a measure for blockedFor, once.
func (b *block) blocked(missing bool, now event.Time) bool {
	if !missing || !b.held || now < b.since {
		b.since, b.held = now, missing
	}
	if b.said || !missing || time.Duration(now-b.since) < blockedFor {
		return false
	}
	b.said = true
	return true
}

// NewWatch returns a Watch for an engine with all rules quiet. It does not change the rules.
func NewWatch(engine string, rules []Rule) *Watch {
	w := &Watch{rules: rules, states: make([]Status, len(rules)), blocks: make([]block, len(rules))}
	for i := range rules {
		r := &rules[i]
		w.states[i] = Status{Engine: engine, Name: r.Name, When: r.When.String(), For: r.For, Window: r.Window}
	}
	return w
}

// Evaluate checks all rules on a snapshot and returns those that started to fire or resolved, and once each rule that
// cannot hold. It uses the snapshot's time; when that goes backwards, pending conditions start again.
func (w *Watch) Evaluate(s *store.Snapshot) (changes []Change) {
	known := s.Engine.State == event.EngineReady && s.Totals().Running.Origin != event.NotYet
	for i := range w.rules {
		r, st := &w.rules[i], &w.states[i]
		holds, value, missing := r.When.evaluate(s, r.Window)
		st.Value = value
		if st.step(holds, s.Now) {
			changes = append(changes, Change{Status: *st, Rule: r})
		}
		st.Now = s.Now
		if w.blocks[i].blocked(known && missing != nil, s.Now) {
			changes = append(changes, Change{*st, r, missing.Name})
		}
	}
	return changes
}

// step moves to the next state and reports whether the alert started to fire or resolved.
func (st *Status) step(holds bool, now event.Time) bool {
	if now < st.Now && st.State != Quiet { // going back in a recording
		if st.State != Firing {
			st.State = Quiet
		}
		st.Since = now
	}
	if holds && (st.State == Quiet || st.State == Resolved) {
		st.State, st.Since = Pending, now
	}
	switch {
	case holds && st.State == Pending && time.Duration(now-st.Since) >= st.For:
		st.State = Firing
		st.Fired++
		return true
	case !holds && st.State == Pending:
		st.State, st.Since = Quiet, now
		if st.Fired > 0 {
			st.State = Resolved
		}
	case !holds && st.State == Firing:
		st.State, st.Since = Resolved, now
		return true
	}
	return false
}

// States returns a copy of all rules with their state.
func (w *Watch) States() []Status { return append([]Status(nil), w.states...) }
