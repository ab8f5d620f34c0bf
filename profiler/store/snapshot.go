// Package store keeps events in bounded rings and histograms and returns immutable snapshots of them.
package store

import (
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/expertcache"
	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/profiler/verdict"
)

// Snapshot is all data that panes and reports show, at one moment. It is immutable and may be kept. All times except
// Wall are on the source's clock. AggregateOnly says which data it carries.
type Snapshot struct {
	Version uint64     // grows when anything but Now changes
	Now     event.Time // time of the snapshot
	Wall    time.Time  // the same, on the wall clock
	Started event.Time // earliest event of the session

	Engine event.EngineInfo
	Model  event.Model // Architecture is "" until a model is loaded
	Load   []StageSpan // stages of the last model load, in order

	// Requests are the open requests, up to MaxOpen, and the MaxRequests that ended last, newest first. Snapshots share
	// a request until it changes.
	Requests []*Request
	Earlier  []*Request // requests that ended earlier, first to end first, at most MaxEarlier; all are Slim
	Current  *Request   // the request to show: the newest running one, else the newest ended one; nil without requests
	Counts   Counts

	Latency     Latency
	Throughput  Throughput
	KV          KV
	Experts     *Experts           // nil if the engine does not report router picks or the model is dense
	Picks       *Picks             // nil if no token had picks
	Ops         *event.Ops         // nil until operations have been timed
	Speculation *event.Speculation // nil: none
	Counters    *event.Counters    // the engine's own counters; nil: not reported
	Host        Host
	Aggregates  Aggregates // of a server; zero without a report of them
	Log         []LogLine  // newest last
	Drops       event.Drops
	Losses      *LossView         // nil: no time of requests was observed
	Verdicts    []verdict.Verdict // most severe first
	Health      verdict.Health    // by Verdicts

	// LastActive is the snapshot with the windows as they were at its Now, the end of the second in which something last
	// ran; nil unless the engine has been idle for IdleAfter.
	LastActive *Snapshot

	Recent *verdict.Interval // what the engine's threads did in the last seconds; nil in the first one

	HeatmapsDropped bool // of the past: Experts and Picks are no longer kept
}

// Empty returns the snapshot of a session without events: the zero Snapshot lacks LatencySummaries and event.Host.
func Empty() *Snapshot {
	return &Snapshot{Latency: Latency{Of: new(LatencySummaries)}, Host: Host{Host: new(event.Host)}}
}

// StageSpan is one stage on the time axis.
type StageSpan struct {
	Stage      event.Stage
	Name       string // raw name, if the engine names the stage; StageNone always has one
	Layer      int    // -1: not specific to a layer
	Start, End event.Time
	Tokens     int
}

// Label returns the engine's name of the stage, or else its standard name.
func (s StageSpan) Label() string {
	if s.Name != "" {
		return s.Name
	}
	return s.Stage.String()
}

// Dur returns the length of the span.
func (s StageSpan) Dur() time.Duration { return time.Duration(s.End - s.Start) }

// Counts are totals of the session. They do not shrink when requests leave the ring.
type Counts struct {
	Queued, Running                                 int    // requests, now
	AnyQueued                                       bool   // any part of Queued may run: the engine reports no queue
	Derived                                         bool   // Queued and Running are derived from requests and slots
	Ends                                                   // of requests
	Polled, PolledCut                               uint64 // ended requests seen in polled slots, and those of them that were cancelled
	PromptTokens, CachedTokens, PadTokens           uint64 // of ended requests, and of reports
	AnyPrompt, AnyCached                            uint64 // ended requests whose prompt tokens, cached tokens are unknown
	GeneratedTokens                                 uint64
	StampedTokens                                   uint64  // of them, those that were reported one by one
	AtLeast                                         bool    // GeneratedTokens is a lower bound, see event.Aggregates
	Covered                                         int64   // ns that the counts of reports cover; 0: none
	Steps                                           uint64  // forward passes
	Groups                                          []Group // ascending by name
	OmittedGroups, OmittedRequests, OmittedLogLines uint64  // beyond the bounds of the store: counted, not kept
	Unmeasured                                      uint64  // requests that arrived above MaxOpen, in no distribution
	UnmeasuredOpen                                  int     // those of them that have not ended
}

// Group sums the requests of one LoRA adapter or tenant.
type Group struct {
	Name      string
	Requests  uint64
	Generated uint64
	TPS       event.Reading // generated tokens / sum of E2EL

	TTFT, TPOT metric.Summary // of finished requests; TTFT without cold ones
	RTT        metric.Summary // of all requests: round trips of the network, see Request.RTT
	Met        event.Reading  // share of finished requests that met every target
}

// Request is one request with all its metrics. Readings are in seconds or per second, as docs/metrics.md defines them.
type Request struct {
	ID            event.RequestID
	State         event.State
	AnyQueue      bool   // while it is queued: its engine reports no queue, so it may be computed already
	Reason        string // why it ended
	Group         string // LoRA adapter or tenant
	Label         string // prompt kind
	Model         string // requested model; "": the loaded one
	Chat          bool   // sent to an interface for chats
	AnyCached     bool   // CachedTokens is unknown: any part of the prompt may come from a cache
	Cold          bool   // first request since the model load began
	DeviceStart   bool   // Cold: the first request since the process started to compute on its device
	ColdLater     bool   // Cold is known at its end only
	Probe         bool   // sent by llmtop
	Retrospective bool   // reported after its end: its times are the engine's
	Polled        bool   // seen in a polled slot: it has no exact stamps
	MissedStart   bool   // its start was not received: Enqueued is when it was first seen
	Torn          bool   // parts of its answer were not received: some tokens have no stamp
	AtLeast       bool   // Generated may be too low
	AnyEnd        bool   // when and how it ended is unknown
	TextCut       bool   // the beginning of Text is missing
	HitTarget     bool   // TTFT met its target
	Slim          bool   // Gaps, Text and Prompt are no longer kept, nor Layers and Tokens unless Options.Keep has room
	idle          bool   // it came to an idle engine, which began with it at once
	Choices       int    // answers that were generated together; 0 and 1: one
	Slot          int    // of a polled request; else -1

	Enqueued, Dispatched, First, Last, Closed event.Time // 0: has not happened yet

	Stamped  int     // of Generated, reported one by one
	Gaps     []int64 // ns between consecutive tokens without pacing, newest last, at most MaxGaps
	FirstGap int     // index of Gaps[0] among all gaps of the request

	Answered event.Time    // when the first token that is no reasoning came; 0: none has
	RTT      event.Reading // s of a round trip between client and server, as their connection began
	Asked    event.Time    // when a connection to the server was asked for, before Enqueued; 0: not known
	Counted  event.Time    // when its TTFT entered the distributions; 0: it is in none

	Generated, PromptTokens, CachedTokens, PadTokens, MaxTokens int

	Drafted, Accepted int32 // tokens of drafts for it, as a server counts them; 0: not reported

	Computed int // prompt tokens that were computed: not cached; 0: unknown

	PromptDone int // of a polled request: prompt tokens that are in the cache

	TTFT, STIL, Prefill, Decode, E2EL, TPOT event.Reading // s
	PrefillRate, DecodeRate, TPS, Overall   event.Reading // tokens/s
	Answer, Thinking, AnswerTPOT            event.Reading // s: until the first token of the answer, reasoning, per token of the answer
	Reasoning, ReasoningRate                event.Reading // tokens, tokens/s
	Paced                                   event.Reading // s of pacing, excluded from TPOT, decode rate and stalls

	Parts    []Part     // stamped TTFT components in drawing order, "other" last; they add up to TTFT
	Dominant Part       // the largest part; Share is 0 if TTFT is unknown
	handed   event.Time // when it got the slot of another, see handedOver; 0: unknown
	Waits    []Wait     // what held it up before its first token, the longest first; see Snapshot.WaitsOf
	Reuse    event.Reuse
	Calls    *event.Calls // what the passes of its prompt called of CUDA; nil: not known
	Layers   []LayerPart
	Spans    []StageSpan // stages in order of arrival, without those of layers and pacing; at most MaxSpans
	Stages   []StageSum  // all stages that have a number, in order of their first arrival

	Stalls  []Stall              // by index, the longest MaxStalls
	Late    []int32              // numbers of the late tokens of all stalls, as found, at most MaxGaps; see Token.Nth
	Slow    *verdict.Explanation // why TTFT is over its target; nil if it is not
	ITL     metric.Summary
	Tokens  []Token // the last ones, at most MaxTokens; all while Options.Keep has room
	Text    string  // raw generated text, the last MaxText bytes
	Prompt  string
	Targets Targets

	// Omitted is what the lists omit; they shrink when more than MaxRequests are open. For Gaps, Tokens and Text see
	// FirstGap, Token.Nth and TextCut.
	Omitted struct {
		Spans, Stalls  int  // number of omitted entries
		Layers, Prompt bool // all layers, and the end of the prompt
		Detail         bool // text, alternatives and picks of the oldest tokens
	}
}

// StallCount returns the number of stalls of the request, omitted ones included.
func (r *Request) StallCount() int { return len(r.Stalls) + r.Omitted.Stalls }

// Waiting is the state of a request without a token whose engine reports no queue.
const Waiting = "waiting"

// Status returns the name of the state: Waiting for a request of which it is unknown whether it is queued.
func (r *Request) Status() string {
	if r.State == event.StateQueued && r.AnyQueue {
		return Waiting
	}
	return r.State.String()
}

// GeneratedAtLeast reports whether Generated is a lower bound: what a slot generated after its last poll is unknown, and what
// was in a part of the answer that was not received.
func (r *Request) GeneratedAtLeast() bool { return r.Polled && r.State.Final() || r.AtLeast }

// Part is one TTFT component.
type Part struct {
	Stage    event.Stage // StageNone is "other"
	Dur      time.Duration
	Share    float64 // of TTFT, 0..1
	PerToken float64 // ns per computed prompt token; 0 if there are none, and for stages that do not work on the prompt
	Count    uint64  // of a mean that a server counts: its requests; else 0
}

// LayerPart is the prompt processing time of one layer.
type LayerPart struct{ Attention, Router, Experts time.Duration }

// StageSum is one stage of a request, over all its layers and repetitions.
type StageSum struct {
	Stage event.Stage
	Dur   time.Duration
	End   event.Time // of the last one
}

// Stall is a gap far above the request's median gap, with its likely cause.
type Stall struct {
	Request event.RequestID
	Index   int // of the late token, see Token.Nth
	At      event.Time
	Gap     time.Duration
	*verdict.Explanation
}

// LatencyPoint is one second of ITL. Count 0 means no tokens: a gap in the chart.
type LatencyPoint struct {
	At       event.Time
	Count    uint64
	P50, P99 int64   // ns
	Spread   *Spread // nil without tokens

	Running, KVUsed, Stalls int // as of a RatePoint; gaps
}

// Throughput holds the rates over the last ten seconds, the current one included, and their trend.
type Throughput struct {
	Prefill, Decode event.Reading // tokens/s of forward passes with prompt tokens, and of those without
	TTPS            event.Reading // generated tokens / wall clock
	SessionTTPS     event.Reading // the same since the session started
	Requests        event.Reading // finished requests / wall clock, in 1/s
	Running, Queued int           // requests
	Slots           int           // requests that the engine decodes together at most; 0 unknown
	BusyShare       event.Reading // share of the wall clock with a forward pass running, 0..1
	Derived         bool          // Prefill, Decode and BusyShare are derived from the stamps of requests and tokens
	Bandwidth       event.Reading // B/s: bytes of weights and KV read per decode pass x decode passes/s
	PassExperts     event.Reading // experts that a decode pass reads, of all layers
	ReadBandwidth   event.Reading // B/s that as many threads as the engine has read from memory; NotReported if it computes elsewhere
	ReadShare       event.Reading // Bandwidth / ReadBandwidth: 1 is the wall
	Calls           CallRates
	Series          Trend
}

// RatePoint is the throughput of one second.
type RatePoint struct {
	At                      event.Time
	Prefill, Decode         float64 // tokens/s
	Generated               uint64
	Running, Queued, KVUsed int     // requests, requests (-1: unknown), cells; of aggregate-only engines the highest reported number
	KVShare                 float64 // used share of the KV cache, 0..1; NaN if unknown
	CacheHits, Accepted     float32 // share of prompt tokens from a cache and of drafted tokens, 0..1, as servers report them; NaN if not
	RankImbalance           float32 // see RankLoad.Imbalance, of the ten seconds before; NaN if not reported
	Preempted               float32 // requests/s, as servers report them; NaN if not
	ReadShare               float32 // see Throughput.ReadShare; NaN if unknown
	Silent                  bool    // the engine reports aggregates but sent none for this second: zeros mean unknown
}

// KV is the state of the KV cache.
type KV struct {
	Used, Total      int64          // cells
	Derived          bool           // Used is derived: prompt and generated tokens of the running requests
	Usage            event.Reading  // 0..1
	Residency        metric.Summary // ns that cells were pinned
	ResidencyDerived bool           // Residency is derived: the time of each request from when the engine began with it to its end
}

// Experts holds the router picks per window and phase.
type Experts struct {
	Layers, Experts, Used int
	EveryN                int            // picks are counted in 1 step of N
	Request               *RequestPicks  // since the newest request was dispatched; nil before the first
	Balance               []BalancePoint // one per second of the last minute, oldest first

	windows [metric.NumWindows]*pickSpan
	halves  [2]*pickSpan // the first half of the session, by metric.Decode and metric.Prompt; nil: only one total was received
}

// Hits returns the picks of a window and phase.
func (x *Experts) Hits(w metric.Window, p metric.Phase) *Hits { return x.windows[w].Hits(p) }

// Picks holds the router picks of generated tokens since the model was loaded: those of the pass that generated each
// token. For large models it may be one second old.
type Picks struct {
	Layers, Experts, Used       int
	All                         *Hits
	Kinds, Groups               []NamedPicks     // by label and by group, ascending by name, the unnamed one last
	OmittedKinds, OmittedGroups uint64           // tokens of kinds and groups beyond MaxKinds, which have no entry
	PairedTokens                uint64           // tokens that Pairs are based on: a sample if a large model generates many
	Pairs                       [][]Pair         // per layer, most frequent first, at most TopPairs; nil: too many
	Log                         *expertcache.Log // the newest tokens in their order
}

// NamedPicks are the picks of one prompt kind or group.
type NamedPicks struct {
	Name string
	Hits *Hits
}

// Pair is two experts of a layer that the same tokens picked.
type Pair struct {
	A, B   uint16
	Tokens uint32
	// Lift is the frequency relative to independent picks:
	// share of tokens that picked both / (share that picked A x share that picked B).
	Lift float64
}

// Hits are the picks of one window and phase. Counts is indexed [layer*Experts+expert].
type Hits struct {
	Counts []uint64
	Tokens uint64
	Layers []LayerHits
	Max    float64 // largest share of one expert in any layer: the top of the colour scale
}

// LayerHits describes the balance within one layer.
type LayerHits struct {
	metric.Balance
	Hot, Cold []int // indices of the three most and the three least picked experts
}

// Host is the last sample of the machine and the trend.
type Host struct {
	*event.Host // with the last readings of those that are too costly for every sample; shared until the next sample
	At          event.Time
	Sampled     bool        // a sample has arrived
	Series      []HostPoint // oldest first, at most SeriesLen
	Usage       *HostUsage  // over the session; nil without samples
	// When Engine.PSS, ModelBytes with ModelCached, and ExpertsCached were read; 0: never.
	PSSAt, ModelAt, ExpertsAt event.Time
}

// LogLine is one raw line of the engine's log.
type LogLine struct {
	At   event.Time
	Text string
}
