package store

import (
	"math"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
)

// Changes compares two snapshots of one session: what happened between them, and before the first one.
type Changes struct {
	Elapsed, ElapsedBefore     time.Duration // between the snapshots, and from the session's start to the first
	Ended, EndedBefore         Ends
	Generated, GeneratedBefore uint64        // tokens
	Rate, RateBefore           event.Reading // generated tokens / wall clock
	TTFT, ITL, TPOT            BeforeAfter   // TTFT of warm requests; TPOT of finished requests
	Stalls, StallsBefore       uint64
	RSS, RSSBefore             event.Reading   // bytes, of the engine process: now, and at the first snapshot
	Dropped, DroppedBefore     uint64          // events dropped
	Drift                      []event.Reading // routing drift per layer, 0..1, see metric.DriftOf; nil: no picks
	MostDrifted                int             // layer with the most drift; -1 if unknown
	Drifted                    bool            // the drift of MostDrifted is more than chance
	Restarted                  bool            // counts decreased: the differences are meaningless
}

// BeforeAfter is a distribution before the first snapshot, and since.
type BeforeAfter struct {
	Before, Since metric.Summary
	P50, P99      bool // whether they differ by more than chance explains
}

// Ends counts ended requests by state.
type Ends struct{ Finished, Cancelled, Failed, Unseen uint64 }

func (e *Ends) total() uint64 { return e.Finished + e.Cancelled + e.Failed + e.Unseen }

// ChangesSince compares v with an earlier snapshot of the same session.
func (v *Snapshot) ChangesSince(then *Snapshot) *Changes {
	d := &Changes{
		Elapsed: time.Duration(max(v.Now-then.Now, 0)), ElapsedBefore: time.Duration(max(then.Now-then.Started, 0)),
		EndedBefore: then.Counts.Ends, RSS: v.Host.Engine.RSS, RSSBefore: then.Host.Engine.RSS, MostDrifted: -1,
	}
	counts, earlier := &v.Counts, &then.Counts
	ended, before := counts.Ends, d.EndedBefore
	fewer := ended.Finished < before.Finished || ended.Cancelled < before.Cancelled || ended.Failed < before.Failed || ended.Unseen < before.Unseen
	if v.Now < then.Now || v.Started > then.Now || counts.GeneratedTokens < earlier.GeneratedTokens || fewer {
		d.Restarted = true
		return d
	}
	d.Ended = Ends{ended.Finished - before.Finished, ended.Cancelled - before.Cancelled, ended.Failed - before.Failed, ended.Unseen - before.Unseen}
	d.GeneratedBefore, d.Generated = earlier.GeneratedTokens, counts.GeneratedTokens-earlier.GeneratedTokens
	d.Rate, d.RateBefore = wallRate(d.Generated, d.Elapsed), wallRate(d.GeneratedBefore, d.ElapsedBefore)
	from, to := &then.Latency, &v.Latency
	ofRequests := func(then, now *metric.Histogram) BeforeAfter {
		return compare(then, now, then.Count(), now.Count()-min(then.Count(), now.Count()))
	}
	d.TTFT, d.TPOT = ofRequests(from.Session.TTFT, to.Session.TTFT), ofRequests(from.Session.TPOT, to.Session.TPOT)
	d.ITL = compare(from.Session.ITL, to.Session.ITL, d.TPOT.Before.Count, d.TPOT.Since.Count)
	d.StallsBefore, d.DroppedBefore = from.StallCount[metric.Session], then.Drops.Total()
	d.Stalls = max(to.StallCount[metric.Session], d.StallsBefore) - d.StallsBefore
	d.Dropped = max(v.Drops.Total(), d.DroppedBefore) - d.DroppedBefore
	d.drift(v.Experts, then.Experts)
	return d
}

// compare compares a distribution with an earlier state of it, with so many independent values before and since.
func compare(then, now *metric.Histogram, independentBefore, independent uint64) BeforeAfter {
	since := now.Since(then)
	differs := func(q float64) bool { return since.Differs(q, independent, then, independentBefore) }
	return BeforeAfter{Before: then.Summary(), Since: since.Summary(), P50: differs(.5), P99: differs(.99)}
}

// MoreStalls reports whether there are more stalls per token since the first snapshot than before, by more than chance
// explains: by three standard deviations of the share of all stalls that came since, of ten stalls or more.
func (d *Changes) MoreStalls() bool {
	n, tokens := float64(d.Stalls+d.StallsBefore), float64(d.Generated+d.GeneratedBefore)
	if n < 10 || d.Generated == 0 || d.GeneratedBefore == 0 {
		return false
	}
	p := float64(d.Generated) / tokens
	return float64(d.Stalls) > n*p+3*math.Sqrt(n*p*(1-p))
}

// wallRate returns n per second of wall time, undefined if no time has passed.
func wallRate(n uint64, elapsed time.Duration) event.Reading {
	if elapsed <= 0 {
		return event.Absent(event.Undefined)
	}
	return event.DerivedValue(float64(n) / elapsed.Seconds())
}

// drift compares the router picks of each layer before the first snapshot with those since.
func (d *Changes) drift(now, then *Experts) {
	before, since := now.PicksSince(then)
	if before == nil {
		return
	}
	d.Drift = make([]event.Reading, now.Layers)
	for l := range d.Drift {
		from, to := l*now.Experts, (l+1)*now.Experts
		d.Drift[l] = event.Absent(event.NotYet)
		if x, ok := metric.DriftOf(before[from:to], since[from:to]); ok {
			d.Drift[l] = event.DerivedValue(x.Moved)
			if d.MostDrifted < 0 || x.Moved > d.Drift[d.MostDrifted].V {
				d.MostDrifted, d.Drifted = l, x.Significant()
			}
		}
	}
}

// PicksSince returns the router picks, prompt and decode, from the start of the session to an earlier snapshot, and
// from there to x; both indexed [layer*Experts+expert]. They are nil if either snapshot lacks picks, or then is not an
// earlier one of the same model.
func (x *Experts) PicksSince(then *Experts) (before, since []uint64) {
	if x == nil || then == nil || x.Layers != then.Layers || x.Experts != then.Experts {
		return nil, nil
	}
	before, now := then.Hits(metric.Session, metric.Both).Counts, x.Hits(metric.Session, metric.Both).Counts
	since = make([]uint64, len(now))
	for i := range now {
		if now[i] < before[i] {
			return nil, nil
		}
		since[i] = now[i] - before[i]
	}
	return before, since
}
