package store

import (
	"slices"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
)

// IdleAfter is how long nothing must have run before an engine counts as idle: the window of the throughput is empty
// then.
const IdleAfter = 10 * time.Second

// activeWindows are the values over windows at the end of the last second in which something ran. They are immutable.
type activeWindows struct {
	at         event.Time
	latency    *Latency // nil: no request had one
	throughput Throughput
	experts    *Experts
	histograms []WindowedHistogram
}

// active reports whether something ran in the second.
func (p *RatePoint) active() bool {
	return p.Running > 0 || p.Queued > 0 || p.Generated > 0 || p.Prefill > 0 || p.Decode > 0
}

func newActiveWindows(v *Snapshot) *activeWindows {
	w := &activeWindows{at: v.Now, throughput: v.Throughput, experts: v.Experts, histograms: v.Aggregates.Histograms}
	if slices.ContainsFunc(Latencies[:], func(l LatencyRow) bool { return l.In(&v.Latency)[metric.Session].Count > 0 }) {
		latency := v.Latency
		w.latency = &latency
	}
	return w
}

// in returns v with the windows instead of its own; nil if something runs or has just run, or if the engine does not
// report. Without a connection they are the last that is known.
func (w *activeWindows) in(v *Snapshot) *Snapshot {
	if w == nil {
		return nil
	}
	runs := v.Now-w.at < event.Time(IdleAfter) || v.Throughput.Running+v.Throughput.Queued > 0
	if !v.Engine.Remote.Link.Down() && (runs || v.Throughput.Series.Last().Silent) {
		return nil
	}
	last, now := *v, v.Throughput
	last.Now, last.Wall = w.at, v.Wall.Add(-time.Duration(v.Now-w.at))
	last.Latency, last.Throughput = Latency{LatencySummaries: &noLatencies, Goodput: v.Latency.Goodput}, w.throughput
	if w.latency != nil {
		last.Latency = *w.latency
	}
	last.Latency.Targets = v.Latency.Targets
	last.Throughput.Running, last.Throughput.Queued = now.Running, now.Queued
	if w.experts != nil {
		last.Experts = w.experts
	}
	last.Aggregates.Histograms = w.histograms
	return &last
}
