package store

import (
	"fmt"
	"slices"
	"strings"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/profiler/verdict"
)

// evidence gathers what verdicts rest on from a snapshot.
func (v *Snapshot) evidence() *verdict.Evidence {
	e := &verdict.Evidence{
		Now: v.Now, Target: v.Latency.Targets.TTFT, ITL: v.Latency.ITL[metric.Minute],
		Decode: v.Throughput.Decode, Running: v.Throughput.Running, Pace: v.Engine.Pace,
		Bandwidth: v.Throughput.Bandwidth, Copy: v.Throughput.CopyBandwidth, BusyShare: v.Throughput.BusyShare,
		MemUsed: v.Host.MemUsed, MemTotal: v.Host.MemTotal, KV: v.KV.Usage, Layer: -1, Lost: v.Lost.Total(),
	}
	if v.Engine.State == event.EngineFailed {
		e.Failed = v.Engine.Reason
	}
	if cpu, n := v.Host.Engine.CPU, len(v.Host.Cores); cpu.OK() && n > 0 {
		e.CPU = event.From(cpu.V / float64(n))
	}
	v.ttftEvidence(e)
	v.stallEvidence(e)
	v.expertEvidence(e)
	e.Served = v.servedEvidence()
	var kinds []string
	for k, n := range v.Lost {
		if n > 0 {
			kinds = append(kinds, fmt.Sprintf("%v %d", event.Kind(k), n))
		}
	}
	e.LostKinds = strings.Join(kinds, ", ")
	return e
}

func (v *Snapshot) ttftEvidence(e *verdict.Evidence) {
	i := slices.IndexFunc(v.Requests, func(r *Request) bool { return r.TTFT.OK() && !v.Aside(r) })
	if i < 0 {
		return
	}
	r := v.Requests[i]
	e.Request, e.TTFT, e.Cold, e.Prompt = r.ID, r.TTFT, r.Cold, r.PromptTokens
	e.Dominant, e.DomShare, e.DomPerTok = PartName(r.Dominant.Stage), r.Dominant.Share, r.Dominant.PerToken
}

// PartName is a TTFT component in words.
func PartName(stage event.Stage) string {
	switch stage {
	case event.StageNone:
		return "other"
	case event.StageLoad:
		return "model load"
	case event.StageFirst:
		return "first token"
	case event.StageHostToDevice:
		return "host to device"
	case event.StageDeviceToHost:
		return "device to host"
	}
	return stage.String()
}

func (v *Snapshot) stallEvidence(e *verdict.Evidence) {
	for _, s := range v.Latency.Stalls {
		if v.Now-s.At > event.Time(metric.Minute.Span()) {
			continue
		}
		i := slices.IndexFunc(e.Stalls, func(c verdict.Cause) bool { return c.Text == s.Cause })
		if i < 0 {
			e.Stalls = append(e.Stalls, verdict.Cause{Text: s.Cause})
			i = len(e.Stalls) - 1
		}
		e.Stalls[i].N++
	}
	slices.SortStableFunc(e.Stalls, func(a, b verdict.Cause) int { return b.N - a.N })
}

// expertEvidence finds the most lopsided layer of the last ten seconds of decoding.
func (v *Snapshot) expertEvidence(e *verdict.Evidence) {
	if v.Experts == nil {
		return
	}
	h := v.Experts.Hits[metric.TenSeconds][metric.Decode]
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
