// Package event defines the vocabulary between sources, which run or watch a model, and consumers: small typed events,
// stamped where they happen, passed by value through a Sink that never blocks.
//
// Everything an Event refers to (strings, slices, payload structs) is immutable once emitted: a producer hands over
// memory that it will not write again, so sinks may keep it without copying.
package event

// Time is nanoseconds on the source's monotonic clock, counted from an epoch of the source's choice. EngineInfo.Epoch
// maps it to the wall clock.
type Time int64

// RequestID identifies a request within one source. 0 means no request: the event is about the engine.
type RequestID uint64

// Kind is the type of an Event. It determines which fields are used.
type Kind uint8

// The kinds of events. Each comment names the fields that the kind uses besides Kind and At.
const (
	KindEngine      Kind = iota // Data *EngineInfo: first event of a source, repeated when it changes
	KindModel                   // Data *Model: the loaded model; Dur: load time
	KindRequest                 // Req, State; Data: *Request when queued, *Outcome when it is final
	KindStage                   // Stage (StageNone: Text is its name), Req (0: engine), Layer (-1: none), Dur, N tokens; Data *Calls or nil
	KindToken                   // Req, ID, Index, Choice, N tokens sharing the stamp, Reasoning, Lost, Handover, Step, Text, LogP, Top, Picks, Split
	KindExperts                 // Data *Experts: cumulative router picks per layer and expert
	KindKV                      // Data *KV: cells used and total, pins
	KindStep                    // one forward pass: Step, Dur, N decode tokens, Prompt tokens, Split; Data *Pass, *Calls or nil
	KindHost                    // Data *Host: sample of the machine and the engine process
	KindLog                     // Text: one line of the engine's log
	KindDrops                   // Data *Drops: cumulative counts of events that a source dropped
	KindCounters                // Data *Counters: the engine's own cumulative counters and ratios
	KindAggregates              // Data *Aggregates: aggregate metrics of an engine over one interval
	KindOps                     // Data *Ops: cumulative times of the operations of forward passes
	KindUsage                   // Data *Usage: what the engine's threads did over a short interval
	KindSpeculation             // Data *Speculation: what drafts cost and bring, cumulative
	NumKinds
)

var kindNames = [NumKinds]string{
	"engine", "model", "request", "stage", "token", "experts", "kv", "step", "host", "log", "lost",
	"counters", "report", "ops", "usage", "speculation",
}

// String returns the kind's name in reports, event lines and drop counts.
func (k Kind) String() string { return nameOf(kindNames[:], k) }

// nameOf returns the name of a value of a list, "unknown" outside it.
func nameOf[T ~uint8](names []string, v T) string {
	if int(v) < len(names) {
		return names[v]
	}
	return "unknown"
}

// Event is one event. It is a flat value, so that emitting allocates nothing. See Kind for the fields in use.
type Event struct {
	Kind  Kind
	State State
	Stage Stage
	Layer int16 // KindStage: 0-based layer, or -1
	// Choice is the sequence of the request that a token belongs to, from 0. A request for n answers has n choices.
	Choice uint16
	ID     int32 // KindToken: token id; -1 if not reported
	// Handover is when the text of a token was handed over to whoever reads it: ns after At, at most 4.3 s; 0 unknown.
	Handover uint32

	At     Time  // when it happened; if it has a duration, when it ended
	Dur    int64 // ns; start is At - Dur
	Req    RequestID
	Step   uint64  // number of the forward pass that generated the token, from 1; 0 unknown
	N      int32   // tokens covered
	Prompt int32   // KindStep: prompt tokens in the batch
	Index  int32   // KindToken: position of the first of the N tokens in the generated text, from 0; -1 unknown
	LogP   float32 // KindToken: natural log of the sampled token's probability; 0 without HasLogP

	HasLogP bool
	// Lost means that tokens of its choice before it were not received: the time since the one before is no gap. KindToken only.
	Lost bool
	// Reasoning is how many of the N tokens are reasoning, the first ones; the others belong to the answer. KindToken only.
	Reasoning int32
	Split     Split
	Text      string    // raw bytes as generated: not sanitised, may end inside a UTF-8 sequence
	Top       []TopProb // KindToken: alternatives, if requested
	Picks     []uint16  // KindToken: experts picked, layer by layer, ExpertsUsed each, if requested
	Data      any       // pointer to the payload named at the kind
}

// TopProb is a candidate for the next token with the natural log of its probability.
type TopProb struct {
	ID   int32
	LogP float32
	Text string
}

// State is the state of a request.
type State uint8

// The states of a request, in order. The last four are final.
const (
	StateNone State = iota
	StateQueued
	StateDispatched // the scheduler has started work on it
	StateFinished
	StateCancelled
	StateFailed
	StateUnseen // it ended, or its connection is lost: how was not received
	NumStates
)

var stateNames = [NumStates]string{"unknown", "queued", "running", "finished", "cancelled", "failed", "unseen"}

// String returns the state's name in reports and on the screen.
func (s State) String() string { return nameOf(stateNames[:], s) }

// Final reports whether the state is the last one of a request.
func (s State) Final() bool { return s >= StateFinished }

// Sink receives events. Emit never blocks and is safe for concurrent use. A full sink drops events and counts them per
// kind.
type Sink interface {
	Emit(Event)
}

// SinkFunc is a function as a Sink.
type SinkFunc func(Event)

// Emit implements Sink.
func (f SinkFunc) Emit(e Event) { f(e) }
