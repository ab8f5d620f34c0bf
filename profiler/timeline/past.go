package timeline

import (
	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/profiler/store"
)

// Snapshots adds the kept snapshots of a session, oldest first: requests with their tokens, samples of the machine,
// reports of a server and router picks. Forward passes are not kept.
func (e *Engine) Snapshots(snapshots []*store.Snapshot) {
	var before store.Snapshot
	for _, s := range snapshots {
		if s.Host.At > before.Host.At {
			e.Emit(event.Event{Kind: event.KindHost, At: s.Host.At, Data: s.Host.Host})
		}
		if a := &s.Aggregates; a.At > before.Aggregates.At {
			e.Emit(event.Event{Kind: event.KindAggregates, At: a.At, Data: &a.Aggregates})
		}
		if s.KV.Total > 0 && s.KV != before.KV {
			e.Emit(event.Event{Kind: event.KindKV, At: s.Now, Data: &event.KV{Used: s.KV.Used, Total: s.KV.Total}})
		}
		if x := s.Experts; x != nil && x != before.Experts {
			decode, prompt := x.Hits(metric.Session, metric.Decode), x.Hits(metric.Session, metric.Prompt)
			e.Emit(event.Event{Kind: event.KindExperts, At: s.Now, Data: &event.Experts{
				Layers: x.Layers, Experts: x.Experts, Used: x.Used, EveryN: x.EveryN,
				Decode: decode.Counts, Prompt: prompt.Counts, DecodeTokens: decode.Tokens, PromptTokens: prompt.Tokens,
			}})
		}
		e.Snapshot(s)
		before = *s
	}
	for _, p := range before.Throughput.Series.Points(nil) {
		if p.Generated > 0 {
			e.generated[p.At/1e9] = int(p.Generated)
		}
	}
}
