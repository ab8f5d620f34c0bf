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

// mostNews is how many lines of one kind are told at once; the others are counted.
const mostNews = 8

// stallsEvery is the least time between two lines about stalls.
const stallsEvery = event.Time(5 * time.Second)

// awayFor is how long a warning must have been away to be told again: its numbers change all the time.
const awayFor = event.Time(30 * time.Second)

// news tells what has changed of one engine between two looks.
type news struct {
	begun   bool
	state   string
	link    event.Link
	told    map[event.RequestID]told // of requests that have not ended, and those that have while they are in the snapshot
	stall   event.Time               // the newest stall that was told of
	stalled event.Time               // when that was
	lost    uint64
	warned  map[string]event.Time // topics of warnings, and when they last held
	started event.Time
}

// told is what has been said of a request.
type told struct{ began, first, ended bool }

// look returns the lines for what is new in a snapshot, oldest first.
func (n *news) look(s *store.Snapshot) (lines []string) {
	if s.Started != n.started { // another session
		*n = news{started: s.Started, link: n.link, state: n.state, begun: n.begun}
	}
	lines = append(lines, n.engine(s)...)
	lines = append(lines, n.requests(s)...)
	if k := len(s.Latency.Stalls); n.before(s) && k > 0 {
		n.stall = s.Latency.Stalls[k-1].At
	}
	lines = append(lines, n.stalls(s)...)
	if lost := s.Lost.Total(); lost > n.lost {
		lines = append(lines, fmt.Sprintf("warning: %d events were lost, %d since the last word: numbers are incomplete", lost, lost-n.lost))
		n.lost = lost
	}
	lines = append(lines, n.warnings(s)...)
	n.begun = n.begun || s.Engine.Name != ""
	return lines
}

// before reports whether what a snapshot has is from before anybody listened: an engine elsewhere begins by telling how it stands.
func (n *news) before(s *store.Snapshot) bool {
	return !n.begun && s.Engine.Remote.Link != event.LinkNone
}

// engine tells of state and connection.
func (n *news) engine(s *store.Snapshot) (lines []string) {
	if link := s.Engine.Remote.Link; link != n.link && !s.Unasked() {
		n.link = link
		lines = append(lines, trimmed("connection to ", sanitize.Line(s.Engine.Remote.Address), ": ", link.String()))
	}
	words := engineWords(s)
	if words != n.state {
		n.state = words
		lines = append(lines, words)
	}
	return lines
}

// engineWords are the engine, its state and its model.
func engineWords(s *store.Snapshot) string {
	words := trimmed("engine ", sanitize.Line(s.Engine.Name), ": ", s.Engine.State.String())
	if why := sanitize.Line(s.Engine.Reason); why != "" {
		words += ", " + why
	}
	if m := s.Model; m.Name != "" {
		words += ", model " + sanitize.Line(m.Name)
	}
	return words
}

// trimmed joins words without doubled spaces where one is missing.
func trimmed(words ...string) string {
	return strings.ReplaceAll(strings.ReplaceAll(strings.Join(words, ""), " :", ":"), "  ", " ")
}

// requests tells of those that were queued, that had their first token, and that have ended.
func (n *news) requests(s *store.Snapshot) (lines []string) {
	seen := make(map[event.RequestID]told, len(s.Requests))
	var began, first, ended []string
	for _, r := range slices.Backward(s.Requests) {
		was, known := n.told[r.ID]
		now := told{began: true, first: r.TTFT.OK(), ended: r.State.Final()}
		seen[r.ID] = now
		if now.ended && n.before(s) {
			continue
		}
		if !known && !now.ended {
			began = append(began, beginning(r))
		}
		if now.first && !was.first {
			first = append(first, firstToken(r))
		}
		if now.ended && !was.ended {
			ended = append(ended, ending(r))
		}
	}
	n.told = seen
	lines = bounded(lines, began, "requests have begun")
	lines = bounded(lines, first, "requests had their first token")
	return bounded(lines, ended, "requests have ended")
}

// bounded adds lines up to mostNews, and a line for the others.
func bounded(lines, more []string, what string) []string {
	if k := len(more) - mostNews; k > 0 {
		return append(append(lines, more[k:]...), fmt.Sprintf("and %d other %s", k, what))
	}
	return append(lines, more...)
}

// name is a request with its kind and group.
func name(r *store.Request) string {
	words := fmt.Sprintf("request %d", r.ID)
	if label := sanitize.Line(r.Label); label != "" {
		words += ", " + label
	}
	if group := sanitize.Line(r.Group); group != "" {
		words += ", group " + group
	}
	return words
}

func beginning(r *store.Request) string {
	words := name(r) + ": " + r.State.String()
	if r.PromptTokens > 0 {
		words += ", " + tokens(r.PromptTokens, "prompt ")
	}
	return words
}

// tokens is a number of tokens with their kind, "1 token".
func tokens(n int, kind string) string {
	if n == 1 {
		return "1 " + kind + "token"
	}
	return fmt.Sprintf("%d %stokens", n, kind)
}

// firstToken is the time to the first token with its parts: "request 3: time to first token 42.0 ms: queue 3.00 ms, prompt 30.0 ms, …".
func firstToken(r *store.Request) string {
	words := fmt.Sprintf("request %d: time to first token %s", r.ID, metric.Seconds(r.TTFT.V))
	if r.Cold {
		words += " cold, with the model's load"
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

// ending is how a request ended.
func ending(r *store.Request) string {
	words := fmt.Sprintf("request %d: %s", r.ID, r.State)
	if why := sanitize.Line(r.Reason); why != "" {
		words += " (" + why + ")"
	}
	words += ", " + tokens(r.Generated, "")
	if r.E2EL.OK() {
		words += " in " + metric.Seconds(r.E2EL.V)
	}
	if r.DecodeRate.OK() {
		words += ", " + metric.Rate(r.DecodeRate.V) + " tokens a second"
	}
	if r.ITL.Count > 0 {
		words += fmt.Sprintf(", token gaps %s at the median, longest %s", metric.Duration(r.ITL.P50), metric.Duration(r.ITL.Max))
	}
	if n := len(r.Stalls); n == 1 {
		words += ", 1 stall"
	} else if n > 1 {
		words += fmt.Sprintf(", %d stalls", n)
	}
	return words
}

// stalls tells of the longest new one, and of how many there were.
func (n *news) stalls(s *store.Snapshot) []string {
	if n.stalled > 0 && s.Now-n.stalled < stallsEvery {
		return nil
	}
	var worst *store.Stall
	count := 0
	for i := range s.Latency.Stalls {
		st := &s.Latency.Stalls[i]
		if st.At <= n.stall {
			continue
		}
		if count++; worst == nil || st.Gap > worst.Gap {
			worst = st
		}
	}
	if worst == nil {
		return nil
	}
	n.stall, n.stalled = s.Latency.Stalls[len(s.Latency.Stalls)-1].At, s.Now
	words := fmt.Sprintf("request %d waited %s for token %d, %s", worst.Request, metric.Duration(int64(worst.Gap)), worst.Index, cause(worst.Cause))
	if count > 1 {
		return []string{fmt.Sprintf("%d stalls, the longest: %s", count, words)}
	}
	return []string{"stall: " + words}
}

func cause(c string) string {
	if c == "unknown" {
		return "cause unknown"
	}
	return sanitize.Line(c)
}

// warnings are verdicts that are worth a word, each once until it has been away for a while.
func (n *news) warnings(s *store.Snapshot) (lines []string) {
	if n.warned == nil {
		n.warned = make(map[string]event.Time)
	}
	for _, v := range s.Verdicts {
		if v.Severity < verdict.Watch || v.Topic == "lost events" {
			continue
		}
		if last, ok := n.warned[v.Topic]; !ok || s.Now-last > awayFor {
			lines = append(lines, "warning: "+sanitize.Line(v.Text))
		}
		n.warned[v.Topic] = s.Now
	}
	return lines
}
