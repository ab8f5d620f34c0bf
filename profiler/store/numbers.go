package store

import (
	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
)

// Number is all that is known of a single number of a snapshot: the row of the catalogue that exports, alerts, the
// screen's help and docs/metrics.md share.
type Number struct {
	Name   string // in documents
	Title  string // in the screen's help; "" for numbers that need no explanation there
	JSON   string // path in the report; "": in no report
	Metric string // OpenTelemetry name
	Label  string // of the metric, besides the engine
	Alert  string // measure of alert rules
	Unit   event.Unit
	Sum    bool // counts up: exported as a counter
	Help   string

	Of func(*Snapshot, metric.Window) event.Reading // nil: exported by event, kind or outcome
}

// Rates is the catalogue of the rates and shares of all requests, in display order.
var Rates = []Number{
	{
		Name: "prefill", Title: "prefill", JSON: "throughput.prefill_tokens_per_s", Metric: "llmtop.prefill.tokens", Alert: "prefill", Unit: "{token}/s",
		Help: "prefill throughput: prompt tokens of the last 10 s / time of the forward passes with prompt tokens",
		Of:   func(s *Snapshot, _ metric.Window) event.Reading { return s.Throughput.Prefill },
	},
	{
		Name: "decode", Title: "decode", JSON: "throughput.decode_tokens_per_s", Metric: "llmtop.decode.tokens", Alert: "decode", Unit: "{token}/s",
		Help: "decode throughput: generated tokens of the last 10 s / time of the forward passes without prompt tokens",
		Of:   func(s *Snapshot, _ metric.Window) event.Reading { return s.Throughput.Decode },
	},
	{
		Name: "TTPS, total TPS", Title: "TTPS", JSON: "throughput.ttps", Metric: "llmtop.generated.tokens", Alert: "ttps", Unit: "{token}/s",
		Help: "total throughput: generated tokens of all requests / wall-clock time, last 10 s",
		Of:   func(s *Snapshot, _ metric.Window) event.Reading { return s.Throughput.TTPS },
	},
	{
		Name: "TTPS of the session", JSON: "throughput.session_ttps", Metric: "llmtop.session.generated.tokens", Alert: "session_ttps", Unit: "{token}/s",
		Help: "generated tokens of all requests / duration of the session",
		Of:   func(s *Snapshot, _ metric.Window) event.Reading { return s.Throughput.SessionTTPS },
	},
	{
		Name: "requests/s", JSON: "throughput.requests_per_s", Metric: "llmtop.finished.requests", Alert: "requests_per_s", Unit: "{request}/s",
		Help: "finished requests / wall-clock time, last 10 s",
		Of:   func(s *Snapshot, _ metric.Window) event.Reading { return s.Throughput.Requests },
	},
	{
		Name: "goodput", Title: "goodput", JSON: "throughput.goodput_requests_per_s", Metric: "llmtop.goodput.requests", Alert: "goodput", Unit: "{request}/s",
		Help: "finished requests per second that met every target, in the last minute",
		Of:   func(s *Snapshot, _ metric.Window) event.Reading { return s.Latency.Goodput },
	},
	{
		Name: "busy", Title: "busy", JSON: "throughput.busy_share", Metric: "llmtop.engine.busy", Alert: "busy", Unit: "1",
		Help: "share of the last 10 s in which a forward pass was running",
		Of:   func(s *Snapshot, _ metric.Window) event.Reading { return s.Throughput.BusyShare },
	},
	{
		Name: "memory, achieved bandwidth", Title: "bandwidth", JSON: "throughput.bandwidth_bytes_per_s", Metric: "llmtop.memory.bandwidth", Alert: "bandwidth", Unit: "By/s",
		Help: "decode bandwidth: bytes of weights and KV cache read per token x decode rate; compared with the machine's read bandwidth",
		Of:   func(s *Snapshot, _ metric.Window) event.Reading { return s.Throughput.Bandwidth },
	},
	{
		Name: "experts per pass", Title: "experts a pass", JSON: "throughput.experts_per_pass", Metric: "llmtop.experts.pass", Alert: "pass_experts", Unit: "{expert}",
		Help: "experts that a decode pass reads, of all layers: each one once, however many tokens of the batch picked it",
		Of:   func(s *Snapshot, _ metric.Window) event.Reading { return s.Throughput.PassExperts },
	},
	{
		Name: "launches per token", Title: "launches", JSON: "throughput.launches_per_token", Metric: "llmtop.launches.token", Alert: "token_launches", Unit: "{call}",
		Help: "kernels launched on the GPU per generated token, of the decode passes of the last 10 s",
		Of:   func(s *Snapshot, _ metric.Window) event.Reading { return s.Throughput.Calls.Launches },
	},
	{
		Name: "graphs per token", Title: "graphs", JSON: "throughput.graphs_per_token", Metric: "llmtop.graphs.token", Alert: "token_graphs", Unit: "{call}",
		Help: "CUDA graphs launched per generated token; 0: a launch for each kernel",
		Of:   func(s *Snapshot, _ metric.Window) event.Reading { return s.Throughput.Calls.Graphs },
	},
	{
		Name: "copies to the GPU per token", Title: "H2D", JSON: "throughput.copied_to_gpu_bytes_per_token", Metric: "llmtop.copied_to_gpu.token", Alert: "token_copied_to_gpu", Unit: "By",
		Help: "bytes copied from memory to the GPU per generated token",
		Of:   func(s *Snapshot, _ metric.Window) event.Reading { return s.Throughput.Calls.To },
	},
	{
		Name: "copies from the GPU per token", Title: "D2H", JSON: "throughput.copied_from_gpu_bytes_per_token", Metric: "llmtop.copied_from_gpu.token", Alert: "token_copied_from_gpu", Unit: "By",
		Help: "bytes copied from the GPU to memory per generated token",
		Of:   func(s *Snapshot, _ metric.Window) event.Reading { return s.Throughput.Calls.From },
	},
	{
		Name: "copying in a pass", Title: "copying", JSON: "throughput.pass_copy_share", Metric: "llmtop.pass.copying", Alert: "pass_copying", Unit: "1",
		Help: "time in copies between memory and the GPU / time of the decode passes",
		Of:   func(s *Snapshot, _ metric.Window) event.Reading { return s.Throughput.Calls.Copying },
	},
	{
		Name: "CPU waiting for the GPU", Title: "CPU waits", JSON: "throughput.pass_gpu_wait_share", Metric: "llmtop.pass.gpu_wait", Alert: "pass_gpu_wait", Unit: "1",
		Help: "time that the CPU waited for what the GPU computes / time of the decode passes",
		Of:   func(s *Snapshot, _ metric.Window) event.Reading { return s.Throughput.Calls.Wait },
	},
	{
		Name: "GPU waiting for the CPU", Title: "GPU waits", JSON: "throughput.pass_launch_gap_share", Metric: "llmtop.pass.launch_gap", Alert: "pass_launch_gap", Unit: "1",
		Help: "time from the end of a wait for the GPU to the next launch / time of the decode passes",
		Of:   func(s *Snapshot, _ metric.Window) event.Reading { return s.Throughput.Calls.Gap },
	},
	{
		Name: "read bandwidth", JSON: "throughput.read_bandwidth_bytes_per_s", Metric: "llmtop.memory.read_bandwidth", Unit: "By/s",
		Help: "bytes/s that as many threads as the engine has read from memory",
		Of:   func(s *Snapshot, _ metric.Window) event.Reading { return s.Throughput.ReadBandwidth },
	},
	{
		Name: "share of read bandwidth", Title: "of read bandwidth", JSON: "throughput.read_share", Metric: "llmtop.memory.read_share", Alert: "read_share", Unit: "1",
		Help: "decode bandwidth / read bandwidth: how near decoding is to the limit of memory",
		Of:   func(s *Snapshot, _ metric.Window) event.Reading { return s.Throughput.ReadShare },
	},
	{
		Name: "KV usage", Title: "KV cache", JSON: "kv.usage", Metric: "llmtop.kv_cache.usage", Alert: "kv", Unit: "1",
		Help: "use of the key-value cache: used / total cells; one cell holds one token of one sequence",
		Of:   func(s *Snapshot, _ metric.Window) event.Reading { return s.KV.Usage },
	},
	{
		Name: "KV cells in use", JSON: "kv.used_cells", Metric: "llmtop.kv_cache.used_cells", Alert: "kv_used", Unit: "{cell}",
		Help: "cells of the KV cache in use",
		Of:   func(s *Snapshot, _ metric.Window) event.Reading { return s.KV.cells(s.KV.Used) },
	},
	{
		Name: "KV cells", JSON: "kv.total_cells", Metric: "llmtop.kv_cache.cells", Alert: "kv_cells", Unit: "{cell}",
		Help: "cells of the KV cache",
		Of:   func(s *Snapshot, _ metric.Window) event.Reading { return s.KV.cells(s.KV.Total) },
	},
	{
		Name: "accepted drafts", Title: "drafts", JSON: "speculation.accepted_share", Metric: "llmtop.speculation.accepted", Alert: "accepted_drafts", Unit: "1",
		Help: "speculative decoding: accepted / drafted tokens of the session",
		Of:   func(s *Snapshot, _ metric.Window) event.Reading { return profitOf(s).Accepted },
	},
	{
		Name: "gain of speculation", Title: "gain", JSON: "speculation.gain_ratio", Metric: "llmtop.speculation.gain", Alert: "speculation_gain",
		Help: "speed with drafts / without, of the session; below 1 speculation costs speed",
		Of:   func(s *Snapshot, _ metric.Window) event.Reading { return profitOf(s).Gain },
	},
	{
		Name: "imbalance of expert ranks", Title: "rank imbalance", JSON: "reported.expert_ranks.imbalance", Metric: "llmtop.expert.rank_imbalance", Alert: "rank_imbalance",
		Help: "picks of the busiest rank of each layer, summed over layers / the mean picks of a rank; 1 is balanced",
		Of: func(s *Snapshot, _ metric.Window) event.Reading {
			load := s.Aggregates.RankLoad
			if load == nil {
				return event.Absent(event.NotReported)
			}
			return load.Imbalance(load.Recent)
		},
	},
	{
		Name: "expert imbalance", Title: "imbalance", JSON: "experts.imbalance", Metric: "llmtop.expert.imbalance", Alert: "imbalance",
		Help: "max/mean of the most imbalanced layer while decoding; 1 is balanced",
		Of:   func(s *Snapshot, w metric.Window) event.Reading { _, v := Imbalance(s, w); return v },
	},
}

// Totalled is the catalogue of the counts of requests, tokens and events, in display order.
var Totalled = []Number{
	{
		Name: "running", Title: "running", JSON: "totals.running", Metric: "llmtop.requests.running", Alert: "running", Unit: "{request}",
		Help: "requests that are running; where no queue is reported, those with a token",
		Of:   func(s *Snapshot, _ metric.Window) event.Reading { return s.Totals().Running },
	},
	{
		Name: "queued", Title: "queued", JSON: "totals.queued", Metric: "llmtop.requests.queued", Alert: "queued", Unit: "{request}",
		Help: "requests that wait in the queue",
		Of:   func(s *Snapshot, _ metric.Window) event.Reading { return s.Totals().Queued },
	},
	{
		Name: "finished", JSON: "totals.finished", Metric: "llmtop.requests", Label: "outcome", Alert: "finished", Unit: "{request}", Sum: true,
		Help: "requests that have ended",
		Of:   func(s *Snapshot, _ metric.Window) event.Reading { return s.Totals().Finished },
	},
	{
		Name: "failed", JSON: "totals.failed", Alert: "failed", Unit: "{request}", Sum: true,
		Help: "failed requests of the session",
		Of:   func(s *Snapshot, _ metric.Window) event.Reading { return s.Totals().Failed },
	},
	{
		Name: "cancelled", JSON: "totals.cancelled", Alert: "cancelled", Unit: "{request}", Sum: true,
		Help: "cancelled requests of the session",
		Of:   func(s *Snapshot, _ metric.Window) event.Reading { return s.Totals().Cancelled },
	},
	{
		Name: "unseen ends", JSON: "totals.unseen", Alert: "unseen", Unit: "{request}", Sum: true,
		Help: "requests whose ends were not received",
		Of:   func(s *Snapshot, _ metric.Window) event.Reading { return s.Totals().Unseen },
	},
	{
		Name: "unmeasured", JSON: "cut.unmeasured", Metric: "llmtop.requests.unmeasured", Unit: "{request}", Sum: true,
		Help: "requests that began while 10,000 were running: counted, but in no latency metric",
	},
	{
		Name: "prompt tokens", JSON: "totals.prompt_tokens", Metric: "llmtop.prompt_tokens", Unit: "{token}", Sum: true,
		Help: "prompt tokens of requests that have their first token or have ended, cached ones included",
	},
	{
		Name: "cached tokens", JSON: "totals.cached_tokens", Metric: "llmtop.cached_tokens", Unit: "{token}", Sum: true,
		Help: "prompt tokens of ended requests that came from the prefix cache",
		Of:   func(s *Snapshot, _ metric.Window) event.Reading { return s.Totals().Cached },
	},
	{
		Name: "padding tokens", JSON: "totals.padding_tokens", Metric: "llmtop.padding_tokens", Unit: "{token}", Sum: true,
		Help: "padding tokens of ended requests",
	},
	{
		Name: "generated tokens", JSON: "totals.generated_tokens", Metric: "llmtop.generated_tokens", Unit: "{token}", Sum: true,
		Help: "generated tokens of all requests",
	},
	{
		Name: "forward passes", JSON: "totals.steps", Metric: "llmtop.forward_passes", Unit: "{pass}", Sum: true,
		Help: "forward passes of the model",
	},
	{
		Name: "stalls", Title: "stalls", JSON: "totals.stalls", Metric: "llmtop.stalls", Alert: "stalls", Unit: "{stall}", Sum: true,
		Help: "gaps between tokens of at least 3 times the request's median; with the cause where the data shows one",
		Of: func(s *Snapshot, w metric.Window) event.Reading {
			if n := s.Totals().Stalls; !n.OK() {
				return n
			}
			return countReading(s.Latency.StallCount[w])
		},
	},
	{
		Name: "dropped", Title: "dropped", JSON: "lost", Metric: "llmtop.lost_events", Label: "kind", Alert: "lost", Unit: "{event}", Sum: true,
		Help: "events that could not be delivered or stored; above 0: numbers are incomplete",
		Of:   func(s *Snapshot, _ metric.Window) event.Reading { return countReading(s.Drops.Total()) },
	},
}

// cells returns a number of cells, absent if the engine reports only the share in use.
func (k *KV) cells(n int64) event.Reading {
	if k.Total <= 0 && (n == 0 || !k.Derived) {
		return event.Absent(event.NotReported)
	}
	return event.DerivedValue(float64(n))
}

func countReading(n uint64) event.Reading { return event.DerivedValue(float64(n)) }

// profitOf returns what speculative decoding brings, absent without it.
func profitOf(s *Snapshot) metric.Profit {
	if s.Speculation == nil {
		absent := event.Absent(event.NotReported)
		return metric.Profit{Accepted: absent, Gain: absent}
	}
	return metric.ProfitOf(s.Speculation)
}
