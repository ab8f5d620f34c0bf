package event

import (
	"slices"
	"strings"
)

// Device describes what the engine computes on.
type Device struct {
	Name    string // "CPU", "NVIDIA H200"
	Kernels string // instruction set or backend in use, for example "avx512-vnni"
	Host    bool   // the engine computes on the host: transfers read "no device"
	Threads int    // worker threads; 0 unknown
}

// EngineInfo identifies a source. Its capabilities say what it can report; everything else reads "not reported".
type EngineInfo struct {
	Name string // "native"
	// Provider is the program that runs the model if Name is something in front of it, such as a proxy; "": Name, or
	// unknown.
	Provider string
	Version  string
	PID      int
	Epoch    int64 // wall clock at Time 0, Unix ns
	Device   Device
	Caps     Caps
	Slots    int     // requests that it can decode together; 0 unknown
	Pace     float64 // tokens/s that the engine is limited to; 0: unlimited
	State    EngineState
	Reason   string // why it failed, or why this engine was chosen

	Remote Remote // connection to an engine in another process
}

// Remote is the connection to an engine in another process. The zero value means that the engine runs in this process.
type Remote struct {
	Address   string
	Link      Link
	Since     Time   // when Link last changed
	Reason    string // why the engine is not connected
	Restarts  int    // how often another run of the engine has answered at the address
	Missed    int64  // events neither received nor counted as dropped; negative if more arrived than were sent
	Malformed uint64 // malformed lines
}

// Update sets the link and its reason, and reports whether either has changed. Since changes only with the link.
func (r *Remote) Update(link Link, why string, since Time) bool {
	if r.Link == link && r.Reason == why && r.Since != 0 {
		return false
	}
	if r.Link != link || r.Since == 0 {
		r.Since = since
	}
	r.Link, r.Reason = link, why
	return true
}

// Link is the state of a connection.
type Link uint8

// The states of a connection.
const (
	LinkNone         Link = iota // the engine is part of this process
	LinkConnected                // events arrive
	LinkStale                    // no events for longer than the engine may be silent
	LinkDisconnected             // reconnecting
	LinkRefused                  // not retried
)

// Down reports whether nothing can arrive.
func (l Link) Down() bool { return l == LinkDisconnected || l == LinkRefused }

var linkNames = [...]string{"none", "connected", "stale", "disconnected", "refused"}

// String is the state's name on the screen.
func (l Link) String() string {
	if int(l) < len(linkNames) {
		return linkNames[l]
	}
	return "unknown"
}

// EngineState is the state of the engine as a whole.
type EngineState uint8

// The states of an engine.
const (
	EngineStarting EngineState = iota
	EngineLoading
	EngineReady
	EngineFailed
	EngineStopped
	EnginePaused
)

var engineStateNames = [...]string{"starting", "loading", "ready", "failed", "stopped", "paused"}

// String is the state's name on the screen.
func (s EngineState) String() string {
	if int(s) < len(engineStateNames) {
		return engineStateNames[s]
	}
	return "unknown"
}

// Caps is a set of capabilities of an engine.
type Caps uint32

// The capability bits.
const (
	CapStages     Caps = 1 << iota // stamps stages
	CapTokens                      // stamps single tokens
	CapText                        // sends text
	CapExperts                     // counts router picks
	CapPicks                       // reports picks of single tokens
	CapKV                          // reports KV cells
	CapSteps                       // reports forward passes
	CapQueue                       // distinguishes queued from dispatched
	CapPrompt                      // accepts prompts
	CapDevice                      // has a separate device and stamps transfers
	CapHost                        // samples the machine
	CapCounters                    // reports counters of its own
	CapCancel                      // accepts cancellations
	CapPause                       // can be paused
	CapHooks                       // lets readers choose what it measures
	CapSample                      // can count router picks in 1 step of N
	CapAggregates                  // reports aggregate metrics
	CapOps                         // can time the operations of forward passes
)

// Has reports whether all bits of want are set.
func (c Caps) Has(want Caps) bool { return c&want == want }

// Model is the loaded model. 0 means unknown in every number; Experts 0 with a known architecture is a dense model.
type Model struct {
	Name         string
	Path         string // "(built in)" for the embedded model
	Architecture string
	Quantisation string // type of most weights, for example "Q8_0"
	Parameters   int64
	Active       int64 // parameters touched per token
	Bytes        int64 // size of all weights
	Layers       int
	Width        int
	Heads        int
	KVHeads      int
	HeadDim      int
	Vocab        int
	Experts      int
	ExpertsUsed  int
	FeedForward  int // width of one expert, or of the dense feed-forward
	Context      int // tokens that a request may use, as configured
	TrainContext int
	KVBytes      int64 // bytes of KV cache per token, all layers
	WeightBytes  int64 // bytes of weights read per decoded token at batch size 1
}

// Request is the data of a queued request.
type Request struct {
	Group         string // LoRA adapter or tenant; "" is the default group
	Label         string // prompt kind, for example "scripture"
	Name          string // the engine's own id, if it is not a number
	Model         string // requested model; "": the loaded one
	Chat          bool   // sent to an interface for chats
	Prompt        string // text, only if the source is configured to send text
	MaxTokens     int
	Cold          bool // first request since the model load began
	ColdLater     bool // whether it is cold is reported at its end
	Probe         bool // sent by llmtop
	Retrospective bool // reported after its end: stamps are what the engine reports
}

// Outcome is the data of an ended request. Counts are totals and do not depend on the events received.
type Outcome struct {
	Reason    string // "stop", "length", "cancelled", or the error
	Prompt    int    // prompt tokens, cached ones included; 0 unknown
	Cached    int    // of Prompt, taken from a cache
	AnyCached bool   // Cached is unknown: any part of Prompt may come from a cache
	Padding   int
	Generated int
	Later     int   // of Generated, streamed after the first message of each choice; 0: as the token events say
	AnyLater  bool  // Later is unknown: Generated counts tokens that were not streamed
	Cold      bool  // of a request with ColdLater
	Decode    int64 // ns from first to last token if tokens are not reported one by one; 0 unknown
	Asked     Time  // when a connection to the server was asked for; 0: unknown, or not over HTTP
	Reuse     Reuse
}

// Reuse is where and why a prompt stops to be the same as an earlier one: what a prefix cache can reuse ends there. The
// zero value means that no earlier prompt that begins like it is known. Sizes are in bytes of text, or in tokens where the
// text is unknown.
type Reuse struct {
	With   RequestID // the earlier request
	Kind   BreakKind // why
	Place  string    // in the request, for example "messages[3].content"; "" if nothing differs
	At     int       // character there, from 0; of BreakTokens the token
	Common int       // same before the break
	Same   int       // same after the break
	Bytes  int       // the whole prompt
}

// BreakKind is why a prompt is not the same as an earlier one from some place on.
type BreakKind uint8

// The kinds of breaks.
const (
	BreakNone         BreakKind = iota // one of the prompts is the beginning of the other
	BreakTimestamp                     // another time or date
	BreakIdentifier                    // another UUID, hash or long number
	BreakNumber                        // another number
	BreakToolOrder                     // the same tools in another order
	BreakTools                         // other tools
	BreakInstructions                  // other instructions
	BreakAnswer                        // an earlier answer is written differently
	BreakTrimmed                       // earlier messages are missing
	BreakMessage                       // a message of the user is another one
	BreakText                          // a prompt without messages is another one
	BreakTokens                        // another token, of a prompt whose text is unknown
	NumBreaks
)

var breakNames = [NumBreaks]string{
	"none", "timestamp", "identifier", "number", "tool_order", "tools", "instructions", "answer", "trimmed", "message", "text", "tokens",
}

// String is the kind's name in event lines and reports.
func (k BreakKind) String() string { return breakNames[min(k, NumBreaks-1)] }

// Experts are cumulative router picks since the model was loaded: a dropped event corrupts no total. Counts are indexed
// [layer*Experts+expert]. All picks of a layer = tokens x experts used.
type Experts struct {
	Layers, Experts, Used int
	Prompt, Decode        []uint64
	PromptTokens          uint64 // tokens counted in Prompt, per layer
	DecodeTokens          uint64 // tokens counted in Decode, per layer
	EveryN                int    // picks are counted in 1 step of N; 0 and 1 mean all
}

// Ops are cumulative times of the operations of forward passes, over the passes with operation timing, and its
// overhead.
type Ops struct {
	Passes   int64    // forward passes in Times
	Slowdown Reading  // time of a timed pass / of an untimed one, one token each; NotYet without both
	Times    []OpTime // longest first; each operation once per layer
}

// OpTime is the time of one kind of operation in one layer, summed over the passes.
type OpTime struct {
	Op    string // the engine's name, for example "MUL_MAT"
	Layer int    // from 0; -1 outside all layers
	Calls int64
	Dur   int64 // ns
}

// KV is the state of the KV cache in cells. One cell holds one token of one sequence, all layers.
type KV struct {
	Used, Total int64
	Freed       int64 // cells of the pin that ended with this event; 0 if none
	Residency   int64 // ns that these cells were pinned: freed - allocated
	Page        int64 // cells that are allocated together; 0 unknown
	Pinned      Time  // start of the oldest pin; 0 unknown
}

// Counters are the engine's own numbers by name. The names in docs/event-protocol.md mean the same for all engines.
type Counters struct {
	Values []Counter // ascending by name, each name once
}

// Counter is one of Counters.
type Counter struct {
	Name  string
	Value float64
}

// Get returns the counter of the given name, absent if the engine does not report it.
func (c *Counters) Get(name string) Reading {
	i, ok := slices.BinarySearchFunc(c.Values, name, func(v Counter, name string) int { return strings.Compare(v.Name, name) })
	if !ok {
		return Absent(NotReported)
	}
	return Reading{c.Values[i].Value, Reported}
}

// Pass is the forward-pass metrics that SGLang and Dynamo publish. Metrics that are not reported are absent.
type Pass struct {
	Worker            string
	Rank              Reading // data-parallel rank
	Counter           Reading // number of the pass on this worker
	Wall              Reading // s, by the device's timer
	Scheduled, Queued PassLoad
}

// PassLoad describes the requests of a forward pass, or those that wait for one.
type PassLoad struct {
	// Requests, their tokens, the variance of prompt lengths, tokens in the cache.
	Prefills, PrefillTokens, PrefillVariance, PrefillKV Reading
	// Requests, tokens in the cache, their variance.
	Decodes, DecodeKV, DecodeVariance Reading
}

// Drops are cumulative counts of events that a source dropped, per kind.
type Drops [NumKinds]uint64

// Total returns the sum over all kinds.
func (l *Drops) Total() (n uint64) {
	for _, c := range l {
		n += c
	}
	return n
}
