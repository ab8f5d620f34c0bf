// Package store keeps what sources emit in bounded rings and histograms and hands out immutable snapshots of it.
package store

import (
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/profiler/verdict"
)

// Snapshot is everything the panes and reports draw from: one moment, never written again, safe to keep.
// All Times are on the source's clock; Now is the moment of the snapshot on the same clock.
type Snapshot struct {
	Version uint64 // grows whenever anything but Now has changed
	Now     event.Time
	Wall    time.Time
	Started event.Time // earliest event of the session

	Engine event.Engine
	Model  event.Model // Architecture "" until one is loaded
	Load   []Span      // model load, stage by stage, in order; a waterfall

	Requests []*Request // newest first, at most MaxRequests; finished ones are shared between snapshots
	Past     []*Request // ended ones that have left Requests, oldest first, at most MaxPast; see Request.Slim
	Current  *Request   // the request to look at: newest running one, else newest finished; nil if none
	Counts   Counts

	Latency    Latency
	Throughput Throughput
	KV         KV
	Experts    *Experts        // nil if the engine does not report router picks or the model is dense
	Picks      *Picks          // nil if no token has told what the router picked for it
	Ops        *event.Ops      // nil until operations have been timed
	Counters   *event.Counters // the engine's own, as it told them last; nil: it has not
	Host       Host
	Reported   *Reported // nil if the engine tells nothing of itself in sum
	Log        []LogLine // newest last
	Lost       event.Lost
	Verdicts   []verdict.Verdict // most severe first
}

// Span is one stage with its place on the time axis.
type Span struct {
	Stage      event.Stage
	Name       string // as the engine calls it, raw; "" unless it does, which it does of a stage that is StageNone
	Layer      int    // -1: not of one layer
	Start, End event.Time
	Tokens     int
}

// Label is the name of the stage, that of the engine's own where it has one.
func (s Span) Label() string {
	if s.Name != "" {
		return s.Name
	}
	return s.Stage.String()
}

// Dur is the length of the span.
func (s Span) Dur() time.Duration { return time.Duration(s.End - s.Start) }

// Counts are totals over the session; they do not shrink when old requests leave the ring.
type Counts struct {
	Queued, Running                          int // now
	Finished, Cancelled, Failed              uint64
	Polled                                   uint64 // requests that were seen in slots and have ended, among others that nobody saw
	PromptTokens, CachedTokens, PadTokens    uint64
	GeneratedTokens                          uint64
	Steps                                    uint64
	Groups                                   []Group // TPS per group, sorted by name
	MoreGroups, MoreRequests, MoreLogDropped uint64  // beyond the bounds of the store: counted, not kept
}

// Group is one LoRA adapter or tenant.
type Group struct {
	Name      string
	Requests  uint64
	Generated uint64
	TPS       event.Reading // generated tokens / summed latency of its requests
}

// Request is one request with all its metrics. Readings are in seconds or per second, as docs/metrics.md defines them.
type Request struct {
	ID     event.RequestID
	State  event.State
	Reason string
	Group  string
	Label  string
	Cold   bool
	Probe  bool
	Slot   int
	Told   bool // all of it was told after its end, and its times are what the engine reports
	Polled bool // seen in a slot when somebody looked: no moment of it was stamped
	Late   bool // its beginning was not seen: Enqueued is when it was first seen

	Enqueued, Dispatched, First, Last, Closed event.Time // 0 if it did not happen yet

	PromptTokens, CachedTokens, PadTokens, Generated, MaxTokens int

	PromptDone int // of a polled request: tokens of its prompt that were in the cache

	TTFT, STIL, Prefill, Decode, E2EL, TPOT event.Reading // s
	PrefillRate, DecodeRate, TPS, Overall   event.Reading // tokens/s
	Paced                                   event.Reading // s spent pacing, excluded from TPOT, decode rate and stalls

	Parts    []Part // TTFT components in drawing order, those that were stamped, "other" last; they add up to TTFT
	Dominant Part   // the largest part; Share 0 if TTFT is not known
	Layers   []LayerPart
	Spans    []Span // stages in the order in which they were told, those of single layers and pacing left out, at most MaxSpans

	Gaps      []int64 // ns between consecutive tokens (pacing excluded), newest last, at most MaxGaps
	FirstGap  int     // index of Gaps[0] among all gaps of the request
	Stalls    []Stall
	ITL       metric.Summary
	Tokens    []Token // the last MaxTokens tokens
	Text      string  // the last MaxText bytes of generated text, raw
	TextCut   bool    // Text does not begin at the beginning
	Prompt    string
	HitTarget bool // TTFT met its target
	Targets   Targets

	Slim bool // Layers, Gaps, Tokens, Text and Prompt are no longer kept
}

// Part is one TTFT component.
type Part struct {
	Stage    event.Stage // StageNone is "other"
	Dur      time.Duration
	Share    float64 // of TTFT, 0..1
	PerToken float64 // ns per computed prompt token; 0 if there are none, and of the model load
}

// LayerPart is the prompt processing of one layer.
type LayerPart struct{ Attention, Router, Experts time.Duration }

// Token is one generated token.
type Token struct {
	ID    int32
	N     int // tokens that share this stamp, at least 1
	Nth   int // tokens of the request that had come before, as in Stall.Index; Index is what the engine says
	Index int
	At    event.Time
	Gap   int64 // ns since the token before (pacing excluded); 0 for the first, -1 where it is not known
	Step  uint64
	Split event.Split
	Text  string
	LogP  float32
	HasLP bool
	Top   []event.TopProb
	Picks []uint16
}

// Stall is a gap far above the median with the cause that the evidence supports.
type Stall struct {
	Request event.RequestID
	Index   int // of the token that came late
	At      event.Time
	Gap     time.Duration
	Cause   string // "while #42's prompt was processed", "llmtop's garbage collection", "waiting for a core", "unknown"
}

// Latency holds the distributions over each window, and their course.
type Latency struct {
	TTFT, ColdTTFT, ITL, STIL, E2EL, TPOT [metric.NumWindows]metric.Summary
	Whole                                 Whole
	Series                                []LatencyPoint // one a second, oldest first, at most SeriesLen
	Stalls                                []Stall        // newest last
	StallCount                            [metric.NumWindows]uint64
	Targets                               Targets
	Goodput                               event.Reading // requests that met every target, per second over the last minute
}

// Whole are distributions over the session, from which what came since an earlier snapshot can be told; see Snapshot.Since.
type Whole struct{ TTFT, ITL, TPOT *metric.Packed }

// LatencyPoint is one second of ITL; Count 0 means that no token came, a gap in the chart.
type LatencyPoint struct {
	At       event.Time
	Count    uint64
	P50, P99 int64   // ns
	Spread   *Spread // nil if no token came
}

// Throughput holds rates of the current second and the nine before it, and their course.
type Throughput struct {
	Prefill, Decode event.Reading // tokens/s of the forward passes with prompt tokens, and of those without
	TTPS            event.Reading // generated tokens / wall clock
	SessionTTPS     event.Reading
	Running, Queued int
	Slots           int
	BusyShare       event.Reading // share of the wall clock in which a forward pass ran
	Bandwidth       event.Reading // B/s: bytes of weights and KV touched per pass x decode passes/s
	CopyBandwidth   event.Reading // B/s: what this machine copies, measured at start; NotYet until then
	Series          []RatePoint
}

// RatePoint is one second of tokens.
type RatePoint struct {
	At                      event.Time
	Prefill, Decode         float64 // tokens/s
	Generated               uint64
	Running, Queued, KVUsed int     // of an engine that is known in sum the most requests that were seen
	KVShare                 float64 // of the KV cache in use, 0..1; NaN where that is not known
	Silent                  bool    // the engine, which reports, has not: what is 0 is not known
}

// KV is the KV cache.
type KV struct {
	Used, Total int64
	Usage       event.Reading // 0..1
	Residency   metric.Summary
}

// Experts holds router picks per window and phase.
type Experts struct {
	Layers, Experts, Used int
	EveryN                int
	Hits                  [metric.NumWindows][metric.NumPhases]*Hits
	Request               *RequestPicks // since the newest request was dispatched; nil before the first
}

// Picks is what single tokens tell of the router: those that were generated, with the picks of the pass that made them, since the model
// was loaded. Of large models it may be a second old.
type Picks struct {
	Layers, Experts, Used int
	All                   *Hits
	Kinds, Groups         []PicksOf // by label and by group of the request, by name; that without a name is the last
	MoreKinds, MoreGroups uint64    // tokens of kinds and groups beyond MaxKinds, which are not among them
	Paired                uint64    // tokens that Pairs rest on: fewer than all where many come of a large model
	Pairs                 [][]Pair  // of each layer, the most frequent first, at most TopPairs; nil if there are too many to count
}

// PicksOf are the picks of one kind or group.
type PicksOf struct {
	Name string
	Hits *Hits
}

// Pair are two experts of a layer that tokens picked together.
type Pair struct {
	A, B   int
	Tokens uint64
	Lift   float64 // how many times as many as if the two were picked independently: their share of the tokens / (share of tokens that picked A x share that picked B)
}

// Hits are the picks of one window and phase: Counts[layer*Experts+expert].
type Hits struct {
	Counts []uint64
	Tokens uint64
	Layers []LayerHits
	Max    float64 // the largest share of any expert in any layer, the top of the scale
}

// LayerHits describes the balance within one layer.
type LayerHits struct {
	Total     uint64
	MaxMean   float64 // largest / mean
	CV        float64 // coefficient of variation
	Entropy   float64 // normalised: 1 is even
	Hot, Cold []int   // expert indices, the three most and least picked
	Dead      int     // experts never picked
}

// Host is the last sample of the machine with its course.
type Host struct {
	event.Host
	At     event.Time
	Known  bool        // a sample has come
	Series []HostPoint // oldest first, at most SeriesLen
	Looked Looked
}

// Looked is what is not in every sample, since it costs more: the last that was told of it, and when. A moment of 0 means never.
type Looked struct {
	PSS                     event.Reading // bytes, of the engine
	ModelBytes, ModelCached event.Reading // size of the model's file, and how much of it was in the page cache
	PSSAt, ModelAt          event.Time
}

// LogLine is one line of the engine's log, raw.
type LogLine struct {
	At   event.Time
	Text string
}
