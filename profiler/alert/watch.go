package alert

import (
	"fmt"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/profiler/store"
)

// State is where a rule stands.
type State uint8

// The states, in the order in which a rule goes through them.
const (
	Quiet    State = iota // the condition does not hold and has not fired
	Pending               // it holds, but not for long enough yet
	Firing                // it has held for long enough
	Resolved              // it does not hold any more
)

// String is the state in a word.
func (s State) String() string { return [...]string{"quiet", "pending", "FIRING", "resolved"}[s] }

// Status is a rule as it stands.
type Status struct {
	Engine     string // which of several, as NewWatch was told
	Name, When string
	For        time.Duration
	Window     metric.Window
	State      State
	Since      event.Time // when it came into this state; of Pending and Firing, when the condition began to hold
	Now        event.Time // of the last look
	Value      string     // of the first measure of the condition, as the screen writes it
	Fired      uint64     // times so far
}

// Change is a rule that has begun to fire, or has resolved.
type Change struct {
	Status
	Rule *Rule
}

// Words tells of a change in one line.
func (c *Change) Words() string {
	if c.State == Firing && c.For > 0 {
		return fmt.Sprintf("alert %s is firing: %s (%s for %v)", c.Name, c.Value, c.When, c.For)
	}
	if c.State == Firing {
		return fmt.Sprintf("alert %s is firing: %s (%s)", c.Name, c.Value, c.When)
	}
	return fmt.Sprintf("alert %s has resolved: %s (%s)", c.Name, c.Value, c.When)
}

// Watch looks at the snapshots of one session. It belongs to one goroutine.
type Watch struct {
	rules  []Rule
	states []Status
}

// NewWatch begins with all rules quiet, for a session of an engine of that name. The rules are not changed.
func NewWatch(engine string, rules []Rule) *Watch {
	w := &Watch{rules: rules, states: make([]Status, len(rules))}
	for i := range rules {
		r := &rules[i]
		w.states[i] = Status{Engine: engine, Name: r.Name, When: r.When.String(), For: r.For, Window: r.Window}
	}
	return w
}

// Look holds all rules against a snapshot and returns those that began to fire or have resolved. Time is the snapshot's; when it runs
// backwards, what was pending begins anew.
func (w *Watch) Look(s *store.Snapshot) (changes []Change) {
	for i := range w.rules {
		r, st := &w.rules[i], &w.states[i]
		holds, value := r.When.look(s, r.Window)
		st.Value = value
		if st.step(holds, s.Now) {
			changes = append(changes, Change{*st, r})
		}
		st.Now = s.Now
	}
	return changes
}

// step goes on to the next state and reports whether that is worth telling.
func (st *Status) step(holds bool, now event.Time) bool {
	if now < st.Now && st.State != Quiet { // a recording was wound back
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

// States are the rules as they stand, a copy.
func (w *Watch) States() []Status { return append([]Status(nil), w.states...) }
