package event

import "strings"

// Aggregates holds an engine's aggregate metrics for one interval, as polled servers report them: the current state,
// and what happened over Interval. Metrics that the engine does not report are absent.
type Aggregates struct {
	Interval int64 `wire:"interval"` // ns since the previous report; 0: first report, without counts and rates
	Void     bool  `wire:"void"`     // the counts of all earlier reports are wrong: they are of several processes

	Running Reading `wire:"running"` // requests
	Waiting Reading `wire:"waiting"` // requests
	Decode  Reading `wire:"decode"`  // generated tokens/s over Interval
	Prefill Reading `wire:"prefill"` // computed prompt tokens/s over Interval

	KVUsage   Reading `wire:"kv_usage"`   // 0..1
	KVUsed    Reading `wire:"kv_used"`    // cells
	KVTotal   Reading `wire:"kv_total"`   // cells
	CacheHits Reading `wire:"cache_hits"` // share of the prompt tokens over Interval that came from a cache, 0..1

	Finished  Reading `wire:"finished"`  // requests over Interval
	Failed    Reading `wire:"failed"`    // requests over Interval
	Cancelled Reading `wire:"cancelled"` // requests over Interval that their client ended
	Prompt    Reading `wire:"in"`        // tokens over Interval, cached ones included
	Cached    Reading `wire:"cached"`    // tokens over Interval
	Generated Reading `wire:"out"`       // tokens over Interval
	AtLeast   bool    `wire:"at_least"`  // Generated is a lower bound: it misses tokens from after the last poll of a request

	Histograms []Histogram    `wire:"times"`
	Slots      []Slot         `wire:"slots,many"`     // requests that were seen when polling
	Models     []LoadedModel  `wire:"models"`         // models in memory, if the engine loads and unloads them by itself
	More       []NamedReading `wire:"more"`           // the engine's other current values, ascending by name
	Counts     []NamedReading `wire:"counts"`         // what else it counted over Interval, ascending by name
	Ratios     []Ratio        `wire:"ratios"`         // shares and means over Interval, ascending by name
	Adapters   []string       `wire:"adapters,named"` // LoRA adapters of running and waiting requests
	Ranks      []Rank         `wire:"ranks"`          // state of each data-parallel rank, if there are several
	ByModel    []Rank         `wire:"by_model"`       // state of each model that runs, if there are several
	Earlier    *Earlier       `wire:"earlier"`        // of the first report only

	ExpertRanks []LayerRanks `wire:"expert_ranks"` // picks of experts over Interval, if the engine spreads experts over ranks

	Endpoints []Endpoint `wire:"sources"` // where the metrics come from, and endpoints that could not be read
}

// Ratio is a quotient whose parts add up over intervals: a share, or a mean.
type Ratio struct {
	Name  string  `wire:"name,always"` // as of a NamedReading
	Part  Reading `wire:"part,bare"`
	Whole Reading `wire:"whole,bare"`
}

// Rank is the state of a part of an engine: of one data-parallel rank, or of one model.
type Rank struct {
	Name    string  `wire:"name,always" json:"rank"`
	Running Reading `wire:"running" json:"running"` // as in Aggregates
	Waiting Reading `wire:"waiting" json:"waiting"`
	KVUsage Reading `wire:"kv_usage" json:"kv_usage_share"`
	Decode  Reading `wire:"decode" json:"decode_tokens_per_s"`
}

// LayerRanks are the picks of a layer's experts by the rank that computed them.
type LayerRanks struct {
	Layer int      `wire:"layer,always"`
	Picks []uint64 `wire:"picks"` // by rank
}

// Earlier is what an engine had counted from its start to the first report.
type Earlier struct {
	Finished   Reading        `wire:"finished"` // requests
	Failed     Reading        `wire:"failed"`
	Prompt     Reading        `wire:"in"` // tokens
	Cached     Reading        `wire:"cached"`
	Generated  Reading        `wire:"out"`
	Counts     []NamedReading `wire:"counts"`
	Histograms []Histogram    `wire:"times"`
}

// Endpoint is one address of an engine that reports metrics.
type Endpoint struct {
	Name   string `wire:"name,always" json:"name"` // for example "/metrics"
	Reason string `wire:"why" json:"why"`          // why it is not read; "" if it is
}

// LoadedModel is a model in the memory of an engine.
type LoadedModel struct {
	Name    string `wire:"name,always"`
	Bytes   int64  `wire:"bytes"`   // memory in use; 0 unknown
	GPU     int64  `wire:"gpu"`     // of Bytes, in the memory of GPUs
	Context int    `wire:"context"` // tokens that a request may use; 0 unknown
	Until   Time   `wire:"until"`   // when the engine unloads it unless it is used; 0: unknown, or Stays
	Stays   bool   `wire:"stays"`   // the engine does not unload it
}

// GPUShare returns the share of the model's memory that GPUs hold, 0..1.
func (m *LoadedModel) GPUShare() Reading {
	if m.Bytes <= 0 {
		return Reading{}
	}
	return DerivedValue(min(float64(m.GPU)/float64(m.Bytes), 1))
}

// Histogram is a distribution of durations over the interval of a report, in the engine's own buckets.
type Histogram struct {
	Name   string   `wire:"name,always"` // one of the names in docs/event-protocol.md, or the engine's own
	Count  uint64   `wire:"n,always"`
	Sum    int64    `wire:"sum"` // ns
	Bounds []int64  `wire:"le"`  // ns, ascending: upper bounds of all buckets but the last, which is unbounded
	Counts []uint64 `wire:"c"`   // per bucket, one more than Bounds; nil if only Count and Sum are known
}

// Slot is a place for one request in an engine, as it was when polled. The start and the end of the request have no
// stamps.
type Slot struct {
	Slot      int       `wire:"slot"`
	Request   RequestID `wire:"r"`      // 0: idle
	Model     string    `wire:"model"`  // "": the only one
	Prompt    int       `wire:"in"`     // prompt tokens; 0 unknown
	Processed int       `wire:"done"`   // of Prompt, processed so far
	Cached    int       `wire:"cached"` // of Processed, taken from a cache
	Generated int       `wire:"out"`
	Max       int       `wire:"max"`       // limit of generated tokens; 0 unknown
	Used      int       `wire:"used"`      // KV cache cells in use
	End       State     `wire:"end,final"` // if Request has left the slot since the last poll and the server shows how; else StateNone
	Context   int       `wire:"context"`   // KV cache cells that it may use
}

// NamedReading is a reading with a name. The suffix of the name is the unit, as in reports: "_share", "_bytes",
// "_per_s", "_s"; without one it is a count.
type NamedReading struct {
	Name string
	Reading
}

// IsShare reports whether the number with a name is a share, 0..1.
func IsShare(name string) bool { return strings.HasSuffix(name, "_share") }

// The names of Ratios and Counts that more than one package knows.
const (
	RatioCacheHits   = "cache_hits_share"     // prompt tokens found in the prefix cache / those looked up
	RatioAccepted    = "accepted_draft_share" // drafted tokens that were accepted / all
	CountPreemptions = "preemptions"          // requests
)

// The names of Histograms that mean the same for all engines.
const (
	HistogramTTFT      = "ttft"      // arrival to first token
	HistogramITL       = "itl"       // between tokens; some engines count a step with several tokens once
	HistogramTPOT      = "tpot"      // per request: decode time / (tokens - 1)
	HistogramE2EL      = "e2el"      // arrival to last token
	HistogramQueue     = "queue"     // arrival to the first work on the prompt
	HistogramPrefill   = "prefill"   // first work on the prompt to first token
	HistogramDecode    = "decode"    // first to last token
	HistogramInference = "inference" // first work on the prompt to last token
	HistogramPerToken  = "per_token" // decode time of ended requests / their tokens: a mean over tokens
)
