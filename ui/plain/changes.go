package plain

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/profiler/verdict"
	"github.com/llmtop/llmtop/ui/sanitize"
)

// maxLines is the maximum number of lines of one kind per poll; further events are only counted.
const maxLines = 8

// stallInterval is the minimum time between two lines about stalls.
const stallInterval = event.Time(5 * time.Second)

// repeatAfter is how long a warning must be absent before it is printed again, because its numbers change all the time.
const repeatAfter = event.Time(30 * time.Second)

// tracker finds what changed in one engine between two polls.
type tracker struct {
	started        bool
	state          string
	link           event.Link
	announced      map[event.RequestID]announced // open requests, and ended ones while they are in the snapshot
	lastStall      event.Time                    // newest stall that was printed
	stallAnnounced event.Time                    // when it was printed
	dropped        uint64
	warned         map[string]event.Time // by topic: when the warning was last present
	session        event.Time            // start of the session
}

// announced records what was printed about a request.
type announced struct{ first, ended bool }

// update returns lines for the changes in a snapshot, oldest first.
func (t *tracker) update(s *store.Snapshot) (lines []string) {
	if s.Started != t.session { // another session
		*t = tracker{session: s.Started, link: t.link, state: t.state, started: t.started}
	}
	lines = append(lines, t.engine(s)...)
	lines = append(lines, t.requests(s)...)
	if k := len(s.Latency.Stalls); t.beforeAttach(s) && k > 0 {
		t.lastStall = s.Latency.Stalls[k-1].At
	}
	lines = append(lines, t.stalls(s)...)
	if dropped := s.Drops.Total(); dropped > t.dropped {
		lines = append(lines, fmt.Sprintf("warning: %s dropped, %d since the last warning: numbers are incomplete", metric.Plural(dropped, "event"), dropped-t.dropped))
		t.dropped = dropped
	}
	lines = append(lines, t.warnings(s)...)
	t.started = t.started || s.Engine.Name != ""
	return lines
}

// beforeAttach reports whether the snapshot only has events from before llmtop attached: an attached engine first sends
// its current state.
func (t *tracker) beforeAttach(s *store.Snapshot) bool {
	return !t.started && s.Engine.Remote.Link != event.LinkNone
}

// engine reports changes of state and connection.
func (t *tracker) engine(s *store.Snapshot) (lines []string) {
	if r := &s.Engine.Remote; r.Link != t.link && !s.NeverPolled() {
		t.link = r.Link
		lines = append(lines, joinWords("connection to ", sanitize.Line(r.Address), ": ", r.Link.String())+because(r.Reason))
	}
	words := engineWords(s)
	if words != t.state {
		t.state = words
		lines = append(lines, words)
	}
	return lines
}

// engineWords describes the engine, its state and its model.
func engineWords(s *store.Snapshot) string {
	words := joinWords("engine ", sanitize.Line(s.Engine.Name), ": ", s.Engine.State.String())
	words += because(s.Engine.Reason)
	if m := s.Model; m.Name != "" {
		words += ", model " + sanitize.Line(m.Name)
	}
	return words
}

// because returns the end of a line that gives a reason, "" without one.
func because(reason string) string {
	if why := sanitize.Line(reason); why != "" {
		return ", " + why
	}
	return ""
}

// joinWords joins words and removes the double spaces of empty ones.
func joinWords(words ...string) string {
	return strings.ReplaceAll(strings.ReplaceAll(strings.Join(words, ""), " :", ":"), "  ", " ")
}

// requests reports requests that were queued, had their first token, or ended.
func (t *tracker) requests(s *store.Snapshot) (lines []string) {
	current := make(map[event.RequestID]announced, len(s.Requests))
	var began, first, ended []string
	for _, r := range slices.Backward(s.Requests) {
		was, seen := t.announced[r.ID]
		now := announced{first: r.TTFT.OK(), ended: r.State.Final()}
		current[r.ID] = now
		if now.ended && t.beforeAttach(s) {
			continue
		}
		if !seen && !now.ended {
			began = append(began, startLine(r))
		}
		if now.first && !was.first {
			first = append(first, firstTokenLine(r))
		}
		if now.ended && !was.ended {
			ended = append(ended, endLine(r))
		}
	}
	t.announced = current
	lines = appendBounded(lines, began, "requests have begun")
	lines = appendBounded(lines, first, "requests had their first token")
	return appendBounded(lines, ended, "requests have ended")
}

// appendBounded appends the last maxLines of more, and a line that counts the others.
func appendBounded(lines, more []string, what string) []string {
	if k := len(more) - maxLines; k > 0 {
		return append(append(lines, more[k:]...), fmt.Sprintf("and %d other %s", k, what))
	}
	return append(lines, more...)
}

// requestName names a request with its label and group.
func requestName(r *store.Request) string {
	words := fmt.Sprintf("request %d", r.ID)
	if label := sanitize.Line(r.Label); label != "" {
		words += ", " + label
	}
	if group := sanitize.Line(r.Group); group != "" {
		words += ", group " + group
	}
	return words
}

func startLine(r *store.Request) string {
	words := requestName(r) + ": " + r.Status()
	if r.PromptTokens > 0 {
		words += ", " + metric.Plural(r.PromptTokens, "prompt token")
	}
	return words
}

// generated describes the tokens that a request generated.
func generated(r *store.Request) string {
	words := metric.Plural(r.Generated, "token")
	if r.GeneratedAtLeast() {
		return "at least " + words
	}
	return words
}

// firstTokenLine describes the time to the first token: "request 3: time to first token 42.0 ms: queue 3.00 ms, prompt
// 30.0 ms, …".
func firstTokenLine(r *store.Request) string {
	words := fmt.Sprintf("request %d: time to first token %s", r.ID, metric.Seconds(r.TTFT.V))
	switch {
	case r.Cold && r.LoadTime() > 0:
		words += " cold, including the model load"
	case r.Cold:
		words += " cold"
	}
	if len(r.Parts) == 0 {
		return words
	}
	parts := make([]string, len(r.Parts))
	for i, p := range r.Parts {
		parts[i] = store.PartName(p.Stage) + " " + metric.Duration(int64(p.Dur))
	}
	words += ": " + strings.Join(parts, ", ")
	if r.Targets.TTFT > 0 && !r.HitTarget && !r.Cold {
		words += ". It missed the target of " + metric.Duration(int64(r.Targets.TTFT))
	}
	return words
}

// endLine describes how a request ended.
func endLine(r *store.Request) string {
	words := fmt.Sprintf("request %d: %s", r.ID, r.Status())
	if why := sanitize.Line(r.Reason); why != "" {
		words += " (" + why + ")"
	}
	words += ", " + generated(r)
	if r.E2EL.OK() {
		words += " in " + metric.Seconds(r.E2EL.V)
	}
	if r.DecodeRate.OK() {
		words += ", " + metric.Rate(r.DecodeRate.V) + " tokens per second"
	}
	if r.ITL.Count > 0 {
		words += fmt.Sprintf(", token gaps %s at the median, longest %s", metric.Duration(r.ITL.P50), metric.Duration(r.ITL.Max))
	}
	if n := r.StallCount(); n > 0 {
		words += ", " + metric.Plural(n, "stall")
	}
	return words
}

// stalls describes the longest new stall and counts the others.
func (t *tracker) stalls(s *store.Snapshot) []string {
	if t.stallAnnounced > 0 && s.Now-t.stallAnnounced < stallInterval {
		return nil
	}
	var worst *store.Stall
	count := 0
	for i := range s.Latency.Stalls {
		st := &s.Latency.Stalls[i]
		if st.At <= t.lastStall {
			continue
		}
		if count++; worst == nil || st.Gap > worst.Gap {
			worst = st
		}
	}
	if worst == nil {
		return nil
	}
	t.lastStall, t.stallAnnounced = s.Latency.Stalls[len(s.Latency.Stalls)-1].At, s.Now
	words := fmt.Sprintf("request %d waited %s for token %d, %s", worst.Request, metric.Duration(int64(worst.Gap)), worst.Index, worst.Words())
	if count > 1 {
		return []string{fmt.Sprintf("%d stalls, the longest: %s", count, words)}
	}
	return []string{"stall: " + words}
}

// warnings returns verdicts of severity Watch and above, each once until it was absent for repeatAfter.
func (t *tracker) warnings(s *store.Snapshot) (lines []string) {
	if t.warned == nil {
		t.warned = make(map[string]event.Time)
	}
	for _, v := range s.Verdicts {
		if v.Severity < verdict.Watch || v.Topic == "dropped events" {
			continue
		}
		if last, ok := t.warned[v.Topic]; !ok || s.Now-last > repeatAfter {
			lines = append(lines, "warning: "+sanitize.Line(v.Text))
		}
		t.warned[v.Topic] = s.Now
	}
	return lines
}
