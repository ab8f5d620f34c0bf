package store

import (
	"slices"
	"strings"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
)

// counts are the totals of the session, and those of each group.
type counts struct {
	Counts
	groups   map[string]*groupSum
	shown    []Group // what snapshots show of groups; nil: a request has ended since
	reported Counts  // those of reports, which may turn out to be wrong
}

// groupSum sums the requests of one group.
type groupSum struct {
	requests, generated uint64  // requests, tokens
	latency             float64 // s, sum of E2EL
	ttft, tpot, rtt     metric.Histogram
	finished, met       uint64 // requests, of them those that met every target
}

// addEnd counts a request that ended, with its tokens; but its prompt was counted before.
func (c *counts) addEnd(how event.State, o *event.Outcome) {
	switch how {
	case event.StateFinished:
		c.Finished++
	case event.StateCancelled:
		c.Cancelled++
	case event.StateFailed:
		c.Failed++
	case event.StateUnseen:
		c.Unseen++
	}
	c.CachedTokens += uint64(o.Cached)
	c.PadTokens += uint64(o.Padding)
	switch {
	case o.Prompt > 0 && o.AnyCached:
		c.AnyCached++
	case o.Prompt == 0 && o.Generated > 0:
		c.AnyPrompt++
	}
}

// addReport adds the counts of one interval that an engine reports.
func (c *counts) addReport(p *event.Aggregates) {
	if p.Void {
		r := &c.reported
		c.addCounts(-r.Finished, -r.Failed, -r.Cancelled, -r.PromptTokens, -r.CachedTokens, -r.GeneratedTokens)
		c.reported, c.Covered = Counts{}, 0
	}
	n := [...]uint64{countOf(p.Finished), countOf(p.Failed), countOf(p.Cancelled), countOf(p.Prompt), countOf(p.Cached), countOf(p.Generated)}
	c.addCounts(n[0], n[1], n[2], n[3], n[4], n[5])
	c.reported.addCounts(n[0], n[1], n[2], n[3], n[4], n[5])
	c.AtLeast = c.AtLeast || p.AtLeast
	if p.Generated.OK() || p.Finished.OK() {
		c.Covered = event.Add(c.Covered, max(p.Interval, 0))
	}
}

func (c *Counts) addCounts(finished, failed, cancelled, prompt, cached, generated uint64) {
	c.Finished += finished
	c.Failed += failed
	c.Cancelled += cancelled
	c.PromptTokens += prompt
	c.CachedTokens += cached
	c.GeneratedTokens += generated
}

// addToGroup adds a request that has ended to the sums of its group.
func (c *counts) addToGroup(r *Request) {
	g := c.groups[r.Group]
	if g == nil {
		if len(c.groups) >= MaxGroups {
			c.OmittedGroups++
			return
		}
		g = new(groupSum)
		c.groups[r.Group] = g
	}
	c.shown = nil
	g.requests++
	g.generated += uint64(r.Generated)
	if r.E2EL.OK() {
		g.latency += r.E2EL.V
	}
	if r.RTT.OK() {
		g.rtt.Record(nanos(r.RTT), 1)
	}
	if r.State != event.StateFinished || r.Polled { // as in the distributions of all
		return
	}
	if g.finished++; r.met() {
		g.met++
	}
	if !r.Cold && r.TTFT.OK() {
		g.ttft.Record(nanos(r.TTFT), 1)
	}
	if r.TPOT.OK() {
		g.tpot.Record(nanos(r.TPOT), 1)
	}
}

// endedTotal returns n, a sum over the ended requests, absent if it is 0 and unknown of them did not report it.
func endedTotal(n, unknown uint64) event.Reading {
	if unknown > 0 && n == 0 {
		return event.Absent(event.NotReported)
	}
	return event.MeasuredValue(float64(n))
}

// view returns the counts with the groups by name.
func (c *counts) view() Counts {
	if c.shown == nil {
		c.shown = c.viewGroups()
	}
	v := c.Counts
	v.Groups = c.shown
	return v
}

func (c *counts) viewGroups() (out []Group) {
	for name, g := range c.groups {
		tps := event.Absent(event.NotYet)
		if g.latency > 0 {
			tps = event.DerivedValue(float64(g.generated) / g.latency)
		}
		met := event.Absent(event.NotYet)
		if g.finished > 0 {
			met = event.DerivedValue(float64(g.met) / float64(g.finished))
		}
		out = append(out, Group{
			Name: name, Requests: g.requests, Generated: g.generated, TPS: tps, TTFT: g.ttft.Summary(), TPOT: g.tpot.Summary(), RTT: g.rtt.Summary(), Met: met,
		})
	}
	slices.SortFunc(out, func(a, b Group) int { return strings.Compare(a.Name, b.Name) })
	return out
}
