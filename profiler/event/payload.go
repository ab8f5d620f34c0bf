package event

import (
	"slices"
	"strings"
)

// Device describes what the engine computes on.
type Device struct {
	Name    string `wire:"name"`    // "CPU", "NVIDIA H200"
	Kernels string `wire:"kernels"` // instruction set or backend in use, for example "avx512-vnni"
	Host    bool   `wire:"host"`    // the engine computes on the host: transfers read "no device"
	Threads int    `wire:"threads"` // worker threads; 0 unknown
	// HostExperts is set if options of the process put experts on the CPU, while another device computes the rest.
	HostExperts bool `wire:"host_experts"`
}

// EngineInfo identifies a source. Its capabilities say what it can report; everything else reads "not reported".
type EngineInfo struct {
	Name string `wire:"name,always"` // "native"
	// Provider is the program that runs the model if Name is something in front of it, such as a proxy; "": Name, or
	// unknown.
	Provider string      `wire:"provider"`
	Version  string      `wire:"version"`
	SDK      string      `wire:"sdk"` // language of the SDK that sends the events: "python", "c", "rust"; "": unknown
	PID      int         `wire:"pid"`
	Epoch    int64       `wire:"wall,time"` // wall clock at Time 0, Unix ns
	Device   Device      `wire:"device"`
	Caps     Caps        `wire:"caps"`
	Slots    int         `wire:"slots"` // requests that it can decode together; 0 unknown
	Pace     float64     `wire:"pace"`  // tokens/s that the engine is limited to; 0: unlimited
	State    EngineState `wire:"state"`
	Reason   string      `wire:"why"` // why it failed, or why this engine was chosen

	Remote Remote `wire:"remote"` // connection to an engine in another process
}

// Remote is the connection to an engine in another process. The zero value means that the engine runs in this process.
type Remote struct {
	Address   string `wire:"address"`
	Link      Link   `wire:"link"`
	Since     Time   `wire:"since"`          // when Link last changed
	Reason    string `wire:"why"`            // why the engine is not connected
	Restarts  int    `wire:"restarts"`       // how often another run of the engine has answered at the address
	Missed    int64  `wire:"missing,signed"` // events neither received nor counted as dropped; negative if more arrived than were sent
	Malformed uint64 `wire:"garbage"`        // malformed lines
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
	LinkWaiting                  // an engine of this machine has not started yet
)

// Down reports whether nothing can arrive.
func (l Link) Down() bool { return l >= LinkDisconnected }

var linkNames = [...]string{"none", "connected", "stale", "disconnected", "refused", "waiting"}

// String is the state's name on the screen.
func (l Link) String() string { return nameOf(linkNames[:], l) }

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
func (s EngineState) String() string { return nameOf(engineStateNames[:], s) }

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
	Name         string `wire:"name"`
	Path         string `wire:"path"` // "(built in)" for the embedded model
	Architecture string `wire:"architecture"`
	Quantisation string `wire:"quantisation"` // type of most weights, for example "Q8_0"
	Parameters   int64  `wire:"parameters"`
	Active       int64  `wire:"active_parameters"` // parameters touched per token
	Bytes        int64  `wire:"bytes"`             // size of all weights
	Layers       int    `wire:"layers"`
	Width        int    `wire:"width"`
	Heads        int    `wire:"heads"`
	KVHeads      int    `wire:"kv_heads"`
	HeadDim      int    `wire:"head_dim"`
	Vocab        int    `wire:"vocabulary"`
	Experts      int    `wire:"experts"`
	ExpertsUsed  int    `wire:"experts_used"`
	FeedForward  int    `wire:"feed_forward"` // width of one expert, or of the dense feed-forward
	Context      int    `wire:"context"`      // tokens that a request may use, as configured
	TrainContext int    `wire:"trained_context"`
	KVBytes      int64  `wire:"kv_bytes"`     // bytes of KV cache per token, all layers
	WeightBytes  int64  `wire:"weight_bytes"` // bytes of weights read per decoded token at batch size 1
}

// Request is the data of a queued request.
type Request struct {
	Group         string `wire:"group"`       // LoRA adapter or tenant; "" is the default group
	Label         string `wire:"label"`       // prompt kind, for example "scripture"
	Name          string `wire:"name"`        // the engine's own id, if it is not a number
	Model         string `wire:"model"`       // requested model; "": the loaded one
	Chat          bool   `wire:"chat"`        // sent to an interface for chats
	Prompt        string `wire:"prompt,text"` // text, only if the source is configured to send text
	PromptTokens  int    `wire:"in"`          // 0 unknown: reported at the end
	MaxTokens     int    `wire:"max"`
	Cold          bool   `wire:"cold"`         // first request since the model load began
	DeviceStart   bool   `wire:"device_start"` // cold: first request since the process started to compute on its device
	ColdLater     bool   `wire:"cold_later"`   // whether it is cold is reported at its end
	Probe         bool   `wire:"probe"`        // sent by llmtop
	Retrospective bool   `wire:"told"`         // reported after its end: stamps are what the engine reports
	RTT           int64  `wire:"rtt"`          // ns of a round trip between client and server, as their connection began; 0 unknown
}

// Outcome is the data of an ended request. Counts are totals and do not depend on the events received.
type Outcome struct {
	Reason    string `wire:"why"`             // "stop", "length", "cancelled", or the error
	Prompt    int    `wire:"in,always"`       // prompt tokens, cached ones included; 0 unknown
	Cached    int    `wire:"cached,optional"` // of Prompt, taken from a cache
	AnyCached bool   // Cached is unknown: any part of Prompt may come from a cache
	Padding   int    `wire:"pad"`
	Generated int    `wire:"out,always"`
	Later     int    `wire:"later"`     // of Generated, streamed after the first message of each choice; 0: as the token events say
	AnyLater  bool   `wire:"any_later"` // Later is unknown: Generated counts tokens that were not streamed
	Reasoning int    `wire:"reasoning"` // of Generated, reasoning; 0: as the token events say
	Answered  int    `wire:"answered"`  // of the answer without reasoning, streamed after its first message; 0: as the token events say
	// AnyReasoning means that Reasoning and Answered are unknown: messages hold more tokens than the token events say.
	AnyReasoning bool  `wire:"any_reasoning"`
	Drafted      int   `wire:"drafted"`  // tokens drafted for it; 0 unknown
	Accepted     int   `wire:"accepted"` // of Drafted
	Cold         bool  `wire:"was_cold"` // of a request with ColdLater
	Decode       int64 `wire:"decode"`   // ns from first to last token if tokens are not reported one by one; 0 unknown
	Asked        Time  `wire:"asked"`    // when a connection to the server was asked for; 0: unknown, or not over HTTP
	Reuse        Reuse `wire:"reuse"`
	Torn         bool  `wire:"torn"`     // parts of the answer were not received: some tokens have no event
	AtLeast      bool  `wire:"at_least"` // there may be more tokens than Generated: the total was not received
	AnyEnd       bool  `wire:"any_end"`  // when and how it ended is unknown: its end was not received
}

// Reuse is where and why a prompt stops to be the same as an earlier one: what a prefix cache can reuse ends there. The
// zero value means that no earlier prompt that begins like it is known. Sizes are in bytes of text, or in tokens where the
// text is unknown.
type Reuse struct {
	With   RequestID `wire:"with"`   // the earlier request
	Kind   BreakKind `wire:"why"`    // why
	Place  string    `wire:"place"`  // in the request, for example "messages[3].content"; "" if nothing differs
	At     int       `wire:"at"`     // character there, from 0; of BreakTokens the token
	Common int       `wire:"common"` // same before the break
	Same   int       `wire:"same"`   // same after the break
	Bytes  int       `wire:"bytes"`  // the whole prompt
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
	Layers       int      `wire:"layers"`
	Experts      int      `wire:"experts"`
	Used         int      `wire:"used"`
	Prompt       []uint64 `wire:"p"`
	Decode       []uint64 `wire:"d"`
	PromptTokens uint64   `wire:"pt,always"` // tokens counted in Prompt, per layer
	DecodeTokens uint64   `wire:"dt,always"` // tokens counted in Decode, per layer
	EveryN       int      `wire:"every"`     // picks are counted in 1 step of N; 0 and 1 mean all
}

// Ops are cumulative times of the operations of forward passes, over the passes with operation timing, and its
// overhead.
type Ops struct {
	Passes   int64    `wire:"passes"`   // forward passes in Times
	Slowdown Reading  `wire:"slowdown"` // time of a timed pass / of an untimed one, one token each; NotYet without both
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
	Used      int64 `wire:"used,optional"`
	Total     int64 `wire:"total,optional"`
	Freed     int64 `wire:"freed"`  // cells of the pin that ended with this event; 0 if none
	Residency int64 `wire:"held"`   // ns that these cells were pinned: freed - allocated
	Page      int64 `wire:"page"`   // cells that are allocated together; 0 unknown
	Pinned    Time  `wire:"pinned"` // start of the oldest pin; 0 unknown
}

// Counters are the engine's own numbers by name. The names in docs/event-protocol.md mean the same for all engines.
type Counters struct {
	Values []Counter `wire:"c,always"` // ascending by name, each name once
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
	Worker    string   `wire:"worker_id"`
	Rank      Reading  `wire:"dp_rank,bare"`    // data-parallel rank
	Counter   Reading  `wire:"counter_id,bare"` // number of the pass on this worker
	Wall      Reading  `wire:"wall_time,bare"`  // s, by the device's timer
	Scheduled PassLoad `wire:"scheduled_requests,always"`
	Queued    PassLoad `wire:"queued_requests,always"`
}

// PassLoad describes the requests of a forward pass, or those that wait for one.
type PassLoad struct {
	// Requests, their tokens, the variance of prompt lengths, tokens in the cache.
	Prefills        Reading `wire:"num_prefill_requests,bare"`
	PrefillTokens   Reading `wire:"sum_prefill_tokens,bare"`
	PrefillVariance Reading `wire:"var_prefill_length,bare"`
	PrefillKV       Reading `wire:"sum_prefill_kv_tokens,bare"`
	// Requests, tokens in the cache, their variance.
	Decodes        Reading `wire:"num_decode_requests,bare"`
	DecodeKV       Reading `wire:"sum_decode_kv_tokens,bare"`
	DecodeVariance Reading `wire:"var_decode_kv_tokens,bare"`
}

// Calls is what the thread of a forward pass called of CUDA meanwhile; of a stage, in all passes of the prompt. Times are ns.
type Calls struct {
	Launches Reading `wire:"launches"` // kernels
	Graphs   Reading `wire:"graphs"`
	To       Reading `wire:"to_bytes"`   // copied to the device
	From     Reading `wire:"from_bytes"` // copied to the host
	ToTime   Reading `wire:"to_time"`    // in copies to the device that did not wait for what it computes
	FromTime Reading `wire:"from_time"`  // the same to the host
	Wait     Reading `wire:"wait"`       // waiting for what the device computes
	Gap      Reading `wire:"gap"`        // from the end of a wait to the next launch, without copies
	Pass     Reading `wire:"pass"`       // length of the pass, or sum of the passes
}

// Readings returns its readings in the order of the fields.
func (c *Calls) Readings() [9]*Reading {
	return [...]*Reading{&c.Launches, &c.Graphs, &c.To, &c.From, &c.ToTime, &c.FromTime, &c.Wait, &c.Gap, &c.Pass}
}

// NoCalls returns the sum of no passes.
func NoCalls() (c Calls) {
	for _, r := range c.Readings() {
		*r = MeasuredValue(0)
	}
	return c
}

// Add adds what other passes have called. What is not known of all passes is not reported.
func (c *Calls) Add(o *Calls) {
	sum := c.Readings()
	for i, r := range o.Readings() {
		if sum[i].OK() && r.OK() && r.V >= 0 {
			sum[i].V += r.V
		} else {
			*sum[i] = Absent(NotReported)
		}
	}
}

// Drops are cumulative counts of events that a source dropped, per kind.
type Drops [NumKinds]uint64

// Count counts one dropped event. Kinds out of range are ignored; this program does not emit them.
func (l *Drops) Count(k Kind) {
	if k < NumKinds {
		l[k]++
	}
}

// Total returns the sum over all kinds.
func (l *Drops) Total() (n uint64) {
	for _, c := range l {
		n += c
	}
	return n
}
