package store

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/profiler/verdict"
)

// evidence returns what the verdicts on a snapshot are based on.
func (v *Snapshot) evidence() *verdict.Evidence {
	e := &verdict.Evidence{
		Now: v.Now, Target: v.Latency.Targets.TTFT, ITL: v.Distribution(ITL, metric.Minute),
		Running: v.Throughput.Running, Pace: v.Engine.Pace,
		Bandwidth: v.Throughput.Bandwidth, Wall: v.Throughput.ReadBandwidth, Recent: v.Recent, BusyShare: v.Throughput.BusyShare,
		MemUsed: v.Host.MemUsed, MemTotal: v.Host.MemTotal, KV: v.KV.Usage, Layer: -1,
		Threads: v.Engine.Device.Threads,
		Engine:  v.Remedied(), Given: !v.Latency.Targets.DefaultTTFT && v.Latency.Targets.TTFT > 0, TPOT: v.Latency.Targets.TPOT, Warm: v.Distribution(TTFT, metric.Minute), Slots: v.Throughput.Slots,
		Dropped: v.Drops.Total(), Unmeasured: v.Counts.Unmeasured, MaxOpen: MaxOpen,
	}
	e.Losses, e.DecodeLosses, e.Stalls = v.Losses.Over(metric.Minute)
	if v.Engine.State == event.EngineFailed {
		e.Failed = v.Engine.Reason
	}
	if cpu, n := v.Host.Engine.CPU, len(v.Host.Cores); cpu.OK() && n > 0 {
		e.CPU, e.Cores = event.DerivedValue(cpu.V/float64(n)), n
	}
	if c := v.Host.Engine.Cores; c.OK() {
		e.Cores = int(c.V)
	}
	if v.Speculation != nil {
		p := metric.ProfitOf(v.Speculation)
		e.Profit = &p
	}
	v.ttftEvidence(e)
	v.queueEvidence(e)
	v.cacheEvidence(e)
	v.targetEvidence(e)
	v.expertEvidence(e)
	if v.AggregateOnly() {
		e.Server = true
		v.servedEvidence(e)
	}
	var kinds []string
	for k, n := range v.Drops {
		if n > 0 {
			kinds = append(kinds, fmt.Sprintf("%v %d", event.Kind(k), n))
		}
	}
	e.DroppedKinds = strings.Join(kinds, ", ")
	return e
}

// untargeted reports whether TTFT was measured and nobody has given a target.
func (v *Snapshot) untargeted() bool {
	t := &v.Latency.Targets
	return (t.TTFT == 0 || t.DefaultTTFT) && !t.BeyondTTFT() && v.Distribution(TTFT, metric.Session).Count > 0
}

// Remedied returns the engine whose settings remedies name: "" for one that llmtop runs, here or attached.
func (v *Snapshot) Remedied() string {
	name := cmp.Or(v.Engine.Provider, v.Engine.Name)
	if v.Engine.Remote.Link == event.LinkNone && v.Engine.Provider == "" || name == "native" {
		return ""
	}
	return name
}

// ttftEvidence adds the TTFT of the newest request that has one and counts in the statistics.
func (v *Snapshot) ttftEvidence(e *verdict.Evidence) {
	i := slices.IndexFunc(v.Requests, func(r *Request) bool { return r.TTFT.OK() && !v.Excluded(r) })
	if i < 0 {
		return
	}
	r := v.Requests[i]
	e.Request, e.TTFT, e.Cold, e.Prompt, e.Why = r.ID, r.TTFT, r.Cold, r.PromptTokens, r.Slow
	e.DeviceStart = r.DeviceStart
	e.Loaded, e.LoadBefore = r.LoadTime() > 0, LoadBefore(v, r)
	e.Dominant, e.DomShare, e.DomPerTok = PartName(r.Dominant.Stage), r.Dominant.Share, r.Dominant.PerToken
}

// queueEvidence adds what the warm requests of the last minute waited in the queue.
func (v *Snapshot) queueEvidence(e *verdict.Evidence) {
	for _, r := range v.Requests {
		if !r.TTFT.OK() || r.Cold || v.Excluded(r) || v.Now-r.First > event.Time(metric.Minute.Span()) {
			continue
		}
		if wait, known := v.queueWait(r); known {
			e.Queue.Requests++
			e.Queue.Wait, e.Queue.TTFTs = e.Queue.Wait+wait, e.Queue.TTFTs+int64(r.TTFT.V*second)
		}
	}
}

// cacheEvidence adds what misses of the prompt cache cost in the last minute, as the Latency view shows it.
func (v *Snapshot) cacheEvidence(e *verdict.Evidence) {
	m := SumCacheMisses(v.CountedIn(metric.Minute, false))
	if m.Lost <= 0 {
		return
	}
	e.CacheLost, e.CachePrefill = m.Lost, m.Prefill
	e.CacheWhy, e.CachePlace = m.Kinds[0].Words(), m.Kinds[0].Where()
	for i := range m.Kinds {
		e.CacheMissed += m.Kinds[i].Requests
	}
}

// targetEvidence counts the requests of the last minute that missed a target for ITL or E2EL. TTFT and TPOT are judged by
// their distributions.
func (v *Snapshot) targetEvidence(e *verdict.Evidence) {
	e.ITLs.Target, e.E2ELs.Target = v.Latency.Targets.ITL, v.Latency.Targets.E2EL
	for _, r := range v.Requests {
		if r.State != event.StateFinished || r.Polled || v.Excluded(r) || v.Now-r.Closed > event.Time(metric.Minute.Span()) {
			continue
		}
		misses := r.Misses(v.Now)
		count := func(j *verdict.Judged, known bool, which Misses) {
			if known && j.Target > 0 {
				j.All++
				if misses.Has(which) {
					j.Missed++
				}
			}
		}
		count(&e.ITLs, r.ITL.Count > 0, MissedITL)
		count(&e.E2ELs, r.E2EL.OK() && !r.Cold, MissedE2EL)
	}
}

// queueWait returns the ns that a request waited in the queue: as reported, or in an engine that reports no queue, while
// others held all slots.
func (v *Snapshot) queueWait(r *Request) (ns int64, known bool) {
	if ns := r.part(event.StageQueue); ns > 0 {
		return int64(ns), true
	}
	began := r.Began(v.Engine.Caps)
	if v.Engine.Caps.Has(event.CapQueue) || began == 0 {
		return 0, false
	}
	for i := range r.Waits {
		if w := &r.Waits[i]; w.Cause != verdict.Unknown && w.Cause != verdict.ModelLoad && w.From < began {
			ns += w.NS
		}
	}
	return ns, true
}

// PartName returns the display name of a TTFT component.
func PartName(stage event.Stage) string {
	switch stage {
	case event.StageNone:
		return "other"
	case event.StageLoad:
		return "model load"
	case event.StagePacedByOthers:
		return "paced by others"
	case event.StageFirst:
		return "first token"
	case event.StageHostToDevice:
		return "host to device"
	case event.StageDeviceToHost:
		return "device to host"
	}
	return stage.String()
}

// expertEvidence adds the most imbalanced layer of the last minute of decoding.
func (v *Snapshot) expertEvidence(e *verdict.Evidence) {
	if v.Experts == nil {
		return
	}
	h := v.Experts.Hits(metric.Minute, metric.Decode)
	e.Experts = v.Experts.Experts
	for i, l := range h.Layers {
		if l.MaxMean > e.MaxMean {
			e.Layer, e.MaxMean, e.Hot, e.LayerPicks = i, l.MaxMean, l.Hot, l.Total
		}
	}
	if e.Layer < 0 {
		return
	}
	var hot uint64
	for _, x := range e.Hot {
		hot += h.Counts[e.Layer*e.Experts+x]
	}
	e.HotShare = float64(hot) / float64(max(e.LayerPicks, 1))
}

// WaitsOf divides what a request has waited so far. Parts do not overlap.
func (s *Snapshot) WaitsOf(r *Request) []Wait {
	if r.First != 0 || r.State.Final() {
		return r.Waits
	}
	return waits(r, slices.Values(s.Requests), s.Load, &s.Engine, s.Now)
}
