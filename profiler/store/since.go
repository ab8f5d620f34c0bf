package store

import (
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
)

// Since is what has happened between two snapshots of one session, beside what had happened before the first of them.
type Since struct {
	Span, Before               time.Duration // between the two, and of the session before
	Ended, EndedBefore         Ends
	Generated, GeneratedBefore uint64        // tokens
	Rate, RateBefore           event.Reading // tokens generated / wall clock
	TTFT, ITL, TPOT            Compared      // TTFT of warm requests; TPOT of those that have finished
	Stalls, StallsBefore       uint64
	RSS, RSSBefore             event.Reading // B, of the engine's process: now, and at the first snapshot
	Lost, LostBefore           uint64
	Drift                      []event.Reading // of each layer's router picks, decode and prompt, 0..1: see metric.DriftOf; nil if none are told
	Drifted                    int             // the layer with the most; -1 if none is known
	Again                      bool            // the counts went down: the session began anew, and differences mean nothing
}

// Compared is a distribution before and since.
type Compared struct{ Before, Since metric.Summary }

// Ends are requests that ended, by how.
type Ends struct{ Finished, Cancelled, Failed uint64 }

// Since compares a snapshot with an earlier one of the same session.
func (v *Snapshot) Since(then *Snapshot) *Since {
	d := &Since{
		Span: time.Duration(max(v.Now-then.Now, 0)), Before: time.Duration(max(then.Now-then.Started, 0)),
		EndedBefore: ends(&then.Counts), RSS: v.Host.Engine.RSS, RSSBefore: then.Host.Engine.RSS, Drifted: -1,
	}
	is, was := &v.Counts, &then.Counts
	now := ends(is)
	if v.Now < then.Now || v.Started > then.Now || is.GeneratedTokens < was.GeneratedTokens || now.less(d.EndedBefore) {
		d.Again = true
		return d
	}
	d.Ended = Ends{now.Finished - d.EndedBefore.Finished, now.Cancelled - d.EndedBefore.Cancelled, now.Failed - d.EndedBefore.Failed}
	d.GeneratedBefore, d.Generated = was.GeneratedTokens, is.GeneratedTokens-was.GeneratedTokens
	d.Rate, d.RateBefore = over(d.Generated, d.Span), over(d.GeneratedBefore, d.Before)
	from, to := &then.Latency, &v.Latency
	d.TTFT = compare(from.Whole.TTFT, to.Whole.TTFT)
	d.ITL = compare(from.Whole.ITL, to.Whole.ITL)
	d.TPOT = compare(from.Whole.TPOT, to.Whole.TPOT)
	d.StallsBefore, d.LostBefore = from.StallCount[metric.Session], then.Lost.Total()
	d.Stalls = max(to.StallCount[metric.Session], d.StallsBefore) - d.StallsBefore
	d.Lost = max(v.Lost.Total(), d.LostBefore) - d.LostBefore
	d.drift(v.Experts, then.Experts)
	return d
}

func compare(then, now *metric.Packed) Compared { return Compared{then.Summary(), now.Since(then)} }

func ends(c *Counts) Ends { return Ends{c.Finished, c.Cancelled, c.Failed} }

// less reports whether some count is below that of other.
func (e Ends) less(other Ends) bool {
	return e.Finished < other.Finished || e.Cancelled < other.Cancelled || e.Failed < other.Failed
}

// over is n a second, undefined where no time has passed.
func over(n uint64, in time.Duration) event.Reading {
	if in <= 0 {
		return event.Absent(event.Undefined)
	}
	return event.From(float64(n) / in.Seconds())
}

// drift compares the picks of each layer before the first snapshot with those since.
func (d *Since) drift(now, then *Experts) {
	before, since := now.Since(then)
	if before == nil {
		return
	}
	d.Drift = make([]event.Reading, now.Layers)
	for l := range d.Drift {
		from, to := l*now.Experts, (l+1)*now.Experts
		d.Drift[l] = event.Absent(event.NotYet)
		if x, ok := metric.DriftOf(before[from:to], since[from:to]); ok {
			d.Drift[l] = event.From(x.Moved)
			if d.Drifted < 0 || x.Moved > d.Drift[d.Drifted].V {
				d.Drifted = l
			}
		}
	}
}

// Since are the picks of decode and prompt over the session up to an earlier view, and those since: counts[layer*Experts+expert] each. They are nil
// where either is missing, or the other is no earlier view of the same model.
func (x *Experts) Since(then *Experts) (before, since []uint64) {
	if x == nil || then == nil || x.Layers != then.Layers || x.Experts != then.Experts {
		return nil, nil
	}
	before, now := then.Hits[metric.Session][metric.Both].Counts, x.Hits[metric.Session][metric.Both].Counts
	since = make([]uint64, len(now))
	for i := range now {
		if now[i] < before[i] {
			return nil, nil
		}
		since[i] = now[i] - before[i]
	}
	return before, since
}
