package report

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/profiler/store"
)

// formatCount formats a count, or returns the reason for its absence.
func formatCount(n event.Reading) string {
	if !n.OK() {
		return n.Absence()
	}
	return strconv.FormatFloat(n.V, 'f', -1, 64)
}

// describe returns the totals of requests and of tokens as text, with absent numbers at the end.
func (t *Totals) describe() (requests, tokens string) {
	finished := t.Finished
	if t.FinishedSeen != nil && !finished.OK() {
		finished = *t.FinishedSeen
	}
	ends := []named{{"finished", finished}, {"cancelled", t.Cancelled}, {"failed", t.Failed}}
	if t.Unseen.OK() {
		ends = append(ends, named{"end unseen", t.Unseen})
	}
	requests = formatCounts(append(ends, named{"running", t.Running}, named{"queued", t.Queued}), func(name, n string) string {
		if name == "finished" && !t.Finished.OK() {
			n += "+"
		}
		return name + " " + n
	})
	if finished.OK() && !t.Finished.OK() {
		requests += "; " + store.MissedByPolls
	}
	atLeast := map[string]bool{"prompt": t.PromptAtLeast, "cached": t.CachedAtLeast, "generated": t.AtLeast}
	if t.PromptTokens.OK() && t.CachedTokens.OK() && t.PaddingTokens.OK() && !t.PromptAtLeast && !t.CachedAtLeast {
		return requests, fmt.Sprintf("%s prompt (%s cached, %s padding), %s generated",
			formatCount(t.PromptTokens), formatCount(t.CachedTokens), formatCount(t.PaddingTokens), formatCount(t.GeneratedTokens))
	}
	return requests, formatCounts([]named{
		{"prompt", t.PromptTokens}, {"cached", t.CachedTokens}, {"padding", t.PaddingTokens}, {"generated", t.GeneratedTokens},
	}, func(name, n string) string {
		if atLeast[name] {
			n += "+"
		}
		return n + " " + name
	})
}

// bound returns the bound of a total or of a number of the server: what is counted in polled slots is a lower bound.
func (t *Totals) bound(name string) string {
	if t.AtLeast && slices.Contains([]string{"generated_tokens", "ttps", "decode_tokens_per_s", "prefill_tokens_per_s"}, name) {
		return boundAbove
	}
	if t.PromptAtLeast && name == "prompt_tokens" || t.CachedAtLeast && name == "cached_tokens" {
		return boundAbove
	}
	return boundWithin
}

// orMore marks the text of a number that is a lower bound: "3.7+ tokens/s".
func (t *Totals) orMore(name string, n event.Reading, text string) string {
	if _, ok := n.Positive(); !ok || t.bound(name) != boundAbove {
		return text
	}
	number, unit, _ := strings.Cut(text, " ")
	return strings.TrimSpace(number + "+ " + unit)
}

// formatCounts lists the available counts, then the names of the others with the reason: "3 finished (not reported:
// failed)".
func formatCounts(all []named, write func(name, n string) string) string {
	var present, reasons []string
	missing := make(map[string][]string)
	for _, c := range all {
		if c.N.OK() {
			present = append(present, write(c.Name, formatCount(c.N)))
			continue
		}
		why := c.N.Absence()
		if missing[why] == nil {
			reasons = append(reasons, why)
		}
		missing[why] = append(missing[why], c.Name)
	}
	for i, why := range reasons {
		reasons[i] = why + ": " + strings.Join(missing[why], ", ")
	}
	counts, absent := strings.Join(present, ", "), strings.Join(reasons, "; ")
	switch {
	case counts == "":
		return absent
	case absent == "":
		return counts
	}
	return counts + " (" + absent + ")"
}

// notes returns sentences about a connection that was interrupted or whose engine restarted.
func (c *Connection) notes() (lines []string) {
	if c == nil {
		return nil
	}
	if c.State != event.LinkConnected.String() {
		why, since := "", ""
		if c.Why != "" {
			why = " (" + c.Why + ")"
		}
		if c.Since.OK() {
			since = " since " + metric.Seconds(c.Since.V) + " after the start: the values are from before that"
		}
		lines = append(lines, fmt.Sprintf("The engine was %s at the end%s%s.", c.State, why, since))
	}
	if c.Restarts > 0 {
		times := "once"
		if c.Restarts > 1 {
			times = fmt.Sprintf("%d times", c.Restarts)
		}
		lines = append(lines, "The engine restarted "+times+" while it was watched.")
	}
	if c.Missed != 0 {
		lines = append(lines, fmt.Sprintf("Missed %s of the engine: the numbers below lack them.", metric.Plural(c.Missed, "event")))
	}
	if c.Malformed > 0 {
		lines = append(lines, "Skipped "+metric.Plural(c.Malformed, "malformed line")+" of the engine.")
	}
	return lines
}
