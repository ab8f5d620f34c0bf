package report

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
)

// whole is a count as text, or the word for its absence.
func whole(n Number) string {
	if !n.OK() {
		return n.why()
	}
	return strconv.FormatFloat(n.V, 'f', -1, 64)
}

// words are the totals of requests and of tokens as text, what is not told at the end.
func (t *Totals) words() (requests, tokens string) {
	requests = enumerate([]counted{
		{"finished", t.Finished}, {"cancelled", t.Cancelled}, {"failed", t.Failed}, {"running", t.Running}, {"queued", t.Queued},
	}, func(what, n string) string { return what + " " + n })
	if t.PromptTokens.OK() && t.CachedTokens.OK() && t.PaddingTokens.OK() {
		return requests, fmt.Sprintf("%s prompt (%s cached, %s padding), %s generated",
			whole(t.PromptTokens), whole(t.CachedTokens), whole(t.PaddingTokens), whole(t.GeneratedTokens))
	}
	return requests, enumerate([]counted{
		{"prompt", t.PromptTokens}, {"cached", t.CachedTokens}, {"padding", t.PaddingTokens}, {"generated", t.GeneratedTokens},
	}, func(what, n string) string { return n + " " + what })
}

// counted is a count with its name.
type counted struct {
	what string
	n    Number
}

// enumerate lists the counts that are known, and then by name those that are not, with the reason: "3 finished (not reported: failed)".
func enumerate(all []counted, write func(what, n string) string) string {
	var told, reasons []string
	missing := make(map[string][]string)
	for _, c := range all {
		if c.n.OK() {
			told = append(told, write(c.what, whole(c.n)))
			continue
		}
		why := c.n.why()
		if missing[why] == nil {
			reasons = append(reasons, why)
		}
		missing[why] = append(missing[why], c.what)
	}
	for i, why := range reasons {
		reasons[i] = why + ": " + strings.Join(missing[why], ", ")
	}
	known, unknown := strings.Join(told, ", "), strings.Join(reasons, "; ")
	switch {
	case known == "":
		return unknown
	case unknown == "":
		return known
	}
	return known + " (" + unknown + ")"
}

// words are what there is to say of a connection that was not always as it should be.
func (c *Connection) words() (lines []string) {
	if c == nil {
		return nil
	}
	if c.State != event.LinkConnected.String() {
		since := ""
		if c.Since.OK() {
			since = " since " + metric.Seconds(c.Since.V) + " after the beginning: what is told is from before that"
		}
		lines = append(lines, fmt.Sprintf("It was %s at the end (%s)%s.", c.State, c.Why, since))
	}
	if c.Restarts > 0 {
		times := "once"
		if c.Restarts > 1 {
			times = fmt.Sprintf("%d times", c.Restarts)
		}
		lines = append(lines, "It was started anew while it was watched, "+times+".")
	}
	return lines
}
