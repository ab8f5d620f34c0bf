package store

import (
	"cmp"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
)

// IdleAfter is how long nothing must have run before an engine counts as idle: the window of the throughput is empty
// then.
const IdleAfter = 10 * time.Second

// active reports whether something ran in the second.
func (p *RatePoint) active() bool {
	return p.Running > 0 || p.Queued > 0 || p.Generated > 0 || p.Prefill > 0 || p.Decode > 0
}

// windowsOf returns the values over windows of a snapshot alone, not its requests.
func windowsOf(v *Snapshot) *Snapshot {
	return &Snapshot{Now: v.Now, Latency: v.Latency, Throughput: v.Throughput, Experts: v.Experts, Aggregates: Aggregates{Histograms: v.Aggregates.Histograms}}
}

// lastActive returns v with the windows of w, the end of the last second in which something ran, instead of its own; nil
// if something runs or has just run, or if the engine does not report. Without a connection they are the last that is
// known.
func lastActive(w, v *Snapshot) *Snapshot {
	if w == nil {
		return nil
	}
	runs := v.Now-w.Now < event.Time(IdleAfter) || v.Throughput.Running+v.Throughput.Queued > 0
	if !v.Engine.Remote.Link.Down() && (runs || v.Throughput.Series.Last().Silent) {
		return nil
	}
	last, now := *v, v.Throughput
	last.Now, last.Wall = w.Now, v.Wall.Add(-time.Duration(v.Now-w.Now))
	last.Latency, last.Throughput = w.Latency, w.Throughput
	last.Latency.Targets = v.Latency.Targets
	last.Throughput.Running, last.Throughput.Queued = now.Running, now.Queued
	last.Experts = cmp.Or(w.Experts, v.Experts)
	last.Aggregates.Histograms = w.Aggregates.Histograms
	return &last
}
