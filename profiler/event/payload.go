package event

import (
	"slices"
	"strings"
)

// Device says what the engine computes on.
type Device struct {
	Name    string // "CPU", "NVIDIA H200"
	Kernels string // instruction set or backend in use, for example "avx512-vnni"
	Host    bool   // true: there is no device apart from the host, so transfers read "no device"
	Threads int    // worker threads; 0 unknown
}

// Engine introduces a source. Capability bits say what it can tell, so that absence reads "not reported".
type Engine struct {
	Name    string // "native"
	Version string
	PID     int
	Epoch   int64 // wall clock at Time 0, Unix ns
	Device  Device
	Caps    Caps
	Slots   int     // requests decoded together at most; 0 unknown
	Pace    float64 // tokens/s the engine holds itself to; 0 is flat out
	State   EngineState
	Reason  string // why it failed, or why this engine was chosen

	Remote Remote // how an engine in another process is connected
}

// Remote is the connection to an engine in another process; its zero value means that there is none to speak of.
type Remote struct {
	Address  string
	Link     Link
	Since    Time   // when Link became what it is
	Why      string // why the engine is not connected
	Restarts int    // times that another run of the engine has answered at the address
	Missing  int64  // events that neither came nor were counted as lost by the engine; below 0 where more came than were sent
	Garbage  uint64 // lines that could not be understood
}

// Turn takes in how the connection stands since a time, and why, and reports whether that is news. Since stays what it was where the link is
// the same.
func (r *Remote) Turn(link Link, why string, since Time) bool {
	if r.Link == link && r.Why == why && r.Since != 0 {
		return false
	}
	if r.Link != link || r.Since == 0 {
		r.Since = since
	}
	r.Link, r.Why = link, why
	return true
}

// Link is the state of a connection.
type Link uint8

// The states of a connection.
const (
	LinkNone         Link = iota // the engine is part of this process
	LinkConnected                // events come
	LinkStale                    // nothing has come for longer than the engine may be silent
	LinkDisconnected             // and tried anew
	LinkRefused                  // and not tried any more
)

var linkNames = [...]string{"none", "connected", "stale", "disconnected", "refused"}

// String is the state's name on the screen.
func (l Link) String() string {
	if int(l) < len(linkNames) {
		return linkNames[l]
	}
	return "unknown"
}

// EngineState is what the engine as a whole is doing.
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

// Caps are the things an engine is able to report.
type Caps uint32

// The capability bits.
const (
	CapStages   Caps = 1 << iota // stamps stages
	CapTokens                    // stamps single tokens
	CapText                      // sends text
	CapExperts                   // counts router picks
	CapPicks                     // hands out picks of single tokens
	CapKV                        // reports KV cells
	CapSteps                     // reports forward passes
	CapQueue                     // tells enqueued from dispatched
	CapPrompt                    // takes prompts
	CapDevice                    // has a device apart from the host and stamps transfers
	CapHost                      // samples the machine
	CapCounters                  // has counters of its own
	CapCancel                    // takes cancellations
	CapPause                     // can be paused
	CapHooks                     // what it measures can be chosen
	CapSample                    // can count router picks in 1 step of N
	CapReports                   // tells of itself in sum
	CapOps                       // can time the operations of forward passes
)

// Has reports whether all bits of want are set.
func (c Caps) Has(want Caps) bool { return c&want == want }

// Model is what is loaded. Zero means unknown in every number; Experts 0 with a known architecture is a dense model.
type Model struct {
	Name         string
	Path         string // "(built in)" for the embedded model
	Architecture string
	Quantisation string // the type most weights have, for example "Q8_0"
	Parameters   int64
	Active       int64 // parameters touched per token
	Bytes        int64 // size of the weights
	Layers       int
	Width        int
	Heads        int
	KVHeads      int
	HeadDim      int
	Vocab        int
	Experts      int
	ExpertsUsed  int
	FeedForward  int // width of one expert, or of the dense feed-forward
	Context      int // tokens a request may hold, as configured
	TrainContext int
	KVBytes      int64 // bytes of KV cache per token, all layers
	WeightBytes  int64 // bytes of weights read to decode one token, alone in its batch
}

// Request is what is known when a request is queued.
type Request struct {
	Group     string // LoRA adapter or tenant; "" is the default group
	Label     string // what kind of prompt, for example "scripture"
	Name      string // the engine's own id, where that is not a number
	Prompt    string // text, only where the source is told to send text
	MaxTokens int
	Cold      bool // first request since the model load began
	Probe     bool // llmtop's own traffic
	Told      bool // all that is known of it was told after its end: the stamps of its events are what the engine reports
}

// Outcome is what is known when a request ends. Counts are totals and do not depend on events seen.
type Outcome struct {
	Reason    string // "stop", "length", "cancelled", or what failed
	Prompt    int    // prompt tokens, cached ones included
	Cached    int    // of Prompt, taken from a cache
	Padding   int
	Generated int
	Decode    int64   // ns from the first token to the last, where tokens are not told one by one; 0 unknown
	Answer    *Answer // nil: not known, or it did not come over HTTP
}

// Experts are cumulative router picks since the model was loaded, so that a lost event never corrupts a total.
// Counts are indexed [layer*Experts+expert]. All picks of a layer = tokens x experts used.
type Experts struct {
	Layers, Experts, Used int
	Prompt, Decode        []uint64
	PromptTokens          uint64 // tokens whose picks are counted in Prompt, per layer
	DecodeTokens          uint64
	EveryN                int // picks are counted in 1 step of N; 0 and 1 mean all
}

// Ops are the cumulative times of the operations that forward passes are made of, in the passes that were watched for that, and what
// watching them cost.
type Ops struct {
	Passes   int64    // forward passes in Times
	Slowdown Reading  // time of a pass that is watched / of one that is not, both of one token; NotYet until both were seen
	Times    []OpTime // the longest first; each kind once in each layer
}

// OpTime is the time of one kind of operation in one layer, summed over the passes.
type OpTime struct {
	Op    string // the engine's word for it, for example "MUL_MAT"
	Layer int    // from 0; -1 outside all layers
	Calls int64
	Dur   int64 // ns
}

// KV is the state of the KV cache in cells (one cell holds one token of one sequence, all layers).
type KV struct {
	Used, Total int64
	Freed       int64 // cells of the pin that ended with this event; 0 if none did
	Residency   int64 // ns that they were pinned: freed - allocated
	Page        int64 // cells that are allocated together; 0 unknown
	Pinned      Time  // since when the cells that are used the longest have been; 0 unknown
}

// Counters are numbers that the engine keeps by itself, by name. Those named in docs/event-protocol.md mean the same for all engines.
type Counters struct {
	Values []Counter // ascending by name, each name once
}

// Counter is one of Counters.
type Counter struct {
	Name  string
	Value float64
}

// Get is the counter of the given name, absent if the engine does not tell it.
func (c *Counters) Get(name string) Reading {
	i, ok := slices.BinarySearchFunc(c.Values, name, func(v Counter, name string) int { return strings.Compare(v.Name, name) })
	if !ok {
		return Absent(NotReported)
	}
	return Reading{c.Values[i].Value, Reported}
}

// Pass are the forward-pass metrics that SGLang and Dynamo publish; what is not told is absent.
type Pass struct {
	Worker            string
	Rank              Reading // of data parallelism
	Counter           Reading // number of the pass on this worker
	Wall              Reading // s, by the device's timer
	Scheduled, Queued PassLoad
}

// PassLoad are the requests in a forward pass, or those that wait for one.
type PassLoad struct {
	Prefills, PrefillTokens, PrefillVariance, PrefillKV Reading // requests, tokens, variance of prompt lengths, tokens in the cache
	Decodes, DecodeKV, DecodeVariance                   Reading // requests, tokens in the cache, their variance
}

// Lost are cumulative counts of events that a source dropped, per kind.
type Lost [NumKinds]uint64

// Total is the sum over all kinds.
func (l *Lost) Total() (n uint64) {
	for _, c := range l {
		n += c
	}
	return n
}
