package engine

import (
	"context"
	"slices"
	"strconv"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime/source/scrape/fetch"
	"github.com/llmtop/llmtop/runtime/source/scrape/gather"
)

// Engine is what llmtop knows of an inference engine. The file of an engine has all of it.
type Engine struct {
	Kind     Kind
	Metrics  *gather.Table // nil: it has no Prometheus metrics, or llmtop does not know them
	Programs []Program     // that run it
	// Settings maps the words of remedies for a setting, such as --parallel, to the engine's own name of it.
	Settings   map[string]string
	LinksLlama bool // its processes link llama.cpp

	server      string                                             // header Server of its answers; "": none of its own
	owners      []string                                           // of models in its list
	hints       []string                                           // owners of models in its list, and in those of others
	listed      func(server string, list *ModelList) bool          // whether a list without a known owner is its own; nil: no
	answers     func(ctx context.Context, p *identification) bool  // to what only this engine answers; nil: nothing
	list        func(ctx context.Context, p *identification) error // reads its models; nil: as others
	versionPath string
	metricsPath string                                                                            // "": details finds it, or it has none
	details     func(ctx context.Context, p *identification)                                      // reads what only this engine reports; nil: nothing
	collector   func(s *Poller, m *metrics) collector                                             // m is nil without metrics; nil: of metrics, or else of the list of models
	Load        func(ctx context.Context, c *fetch.Client, info *Info) (Load, map[string]float64) // nil: its metrics have it
}

// Kind is the name of an engine.
type Kind string

// The engines. OpenAI is any other server that lists its models in OpenAI's format. A metrics exporter without the
// engine itself, for example on a separate port, has the kind of its metrics.
const (
	Unknown   Kind = ""
	Llama     Kind = "llama.cpp"
	Ollama    Kind = "Ollama"
	VLLM      Kind = "vLLM"
	SGLang    Kind = "SGLang"
	TGI       Kind = "TGI"
	TensorRT  Kind = "TensorRT-LLM"
	LMDeploy  Kind = "LMDeploy"
	LMStudio  Kind = "LM Studio"
	MLX       Kind = "mlx-lm"
	Triton    Kind = "Triton"
	Dynamo    Kind = "Dynamo"
	LlamaSwap Kind = "llama-swap"
	Lemonade  Kind = "Lemonade"
	RapidMLX  Kind = "Rapid-MLX"
	OpenAI    Kind = "OpenAI-compatible"
)

// Engines are the known engines, in the order in which a server is asked whether it is one: of those whose metrics a
// server may have together, the one that generates comes first.
var Engines []*Engine

func init() { // not a composite value: the engines' functions use Engines
	Engines = []*Engine{
		&lemonadeEngine, &vllmEngine, &ollamaEngine, &lmStudioEngine, &tgiEngine, &llamaEngine, &sglangEngine, &tensorRTEngine, &lmdeployEngine, &tritonEngine,
		&dynamoEngine, &llamaSwapEngine, &mlxEngine, &rapidMLXEngine, &koboldEngine, &llamaPythonEngine, &ramalamaEngine, &llmtopEngine,
	}
	for _, e := range Engines {
		for i := range e.Programs {
			p := &e.Programs[i]
			if p.Kind = e.Kind; p.portBy == nil {
				p.portBy = portFlag
			}
			if p.modelBy == nil {
				p.modelBy = modelFlag
			}
		}
	}
}

// Of returns the engine of a kind; one that llmtop knows nothing of if there is none.
func Of(k Kind) *Engine {
	if e := first(func(e *Engine) bool { return e.Kind == k }); e != nil {
		return e
	}
	return &Engine{Kind: k}
}

// WithMetric returns the engine that has a sample's name, and its metrics as they are named there; nil: none.
func WithMetric(name string) (e *Engine, as *gather.Table) {
	return withMetrics(func(t *gather.Table) *gather.Table { return t.As(name) })
}

// withMetrics returns the first engine whose metrics as finds, and these; nil: none.
func withMetrics(as func(*gather.Table) *gather.Table) (e *Engine, found *gather.Table) {
	e = first(func(e *Engine) bool {
		if e.Metrics != nil {
			found = as(e.Metrics)
		}
		return found != nil
	})
	return e, found
}

// first returns the first engine for which is holds; nil: none.
func first(is func(*Engine) bool) *Engine {
	if i := slices.IndexFunc(Engines, is); i >= 0 {
		return Engines[i]
	}
	return nil
}

// Load is the current load of an engine, as far as cheap requests report it.
type Load struct {
	Running event.Reading // requests
	Waiting event.Reading // requests
	Decode  event.Reading // tokens/s
}

// The names of metrics that engines share.
var (
	latencies = []gather.Alias{
		{Metric: "e2e_request_latency_seconds", Histogram: "e2el"},
		{Metric: "request_queue_time_seconds", Histogram: "queue"},
		{Metric: "request_prefill_time_seconds", Histogram: "prefill"},
		{Metric: "request_decode_time_seconds", Histogram: "decode"},
		{Metric: "request_inference_time_seconds", Histogram: "inference"},
	}
	acceptedDrafts = gather.Alias{
		Metric: "spec_decode_num_accepted_tokens", Role: gather.Ratio, Name: event.RatioAccepted, Of: "spec_decode_num_draft_tokens",
	}
)

// tierAliases are the shares of prompt tokens that came from each tier of a cache, which a label of metric names. Tiers
// that never had any may not be there.
func tierAliases(metric, label string) (out []gather.Alias) {
	for _, t := range [...][2]string{
		{"gpu", "device|gpu|local_cache_hit"},
		{"cpu", "host|cpu"},
		{"disk", "disk|storage_file"},
		{"remote", "remote|p2p|shared_*|!storage_file|storage_*"},
		{"external", "external_*"},
	} {
		out = append(out, gather.Alias{Metric: metric, Label: label, Values: t[1], Role: gather.Ratio, Name: t[0] + "_tier_hits_share", Of: "prompt_tokens", MayLack: true})
	}
	return out
}

// draftPositions is the number of positions of a draft that are counted separately.
const draftPositions = 8

// draftAliases are the metrics of speculation that vLLM and llama.cpp have.
func draftAliases() []gather.Alias {
	const drafts = "spec_decode_num_drafts"
	out := []gather.Alias{acceptedDrafts, {Metric: acceptedDrafts.Metric, Role: gather.Ratio, Name: "accepted_draft_length", Of: drafts}}
	for i := range draftPositions {
		at := strconv.Itoa(i)
		out = append(out, gather.Alias{
			Metric: acceptedDrafts.Metric + "_per_pos", Label: "position", Values: at,
			Role: gather.Ratio, Name: "accepted_draft_" + strconv.Itoa(i+1) + "_share", Of: drafts,
		})
	}
	return out
}
