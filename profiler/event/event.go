// Package event is the vocabulary between whatever runs a model and whatever looks at it: small typed
// facts, each stamped where it happened, passed by value through a Sink that never blocks.
//
// Everything an Event refers to (strings, slices, payload structs) is immutable once emitted: a producer
// hands over memory that it will not write again, so sinks may keep it without copying.
package event

// Time is nanoseconds on the source's monotonic clock, counted from an epoch of the source's choosing.
// Engine.Epoch ties it to the wall clock.
type Time int64

// RequestID names a request within one source. 0 means "no request": the event is about the engine.
type RequestID uint64

// Kind says what an Event is about, and which of its fields mean something.
type Kind uint8

// The kinds of events. The comment names the fields that the kind uses besides Kind and At.
const (
	KindEngine   Kind = iota // Data *Engine: who speaks, what it can tell; first event of a source, again when it changes
	KindModel                // Data *Model: what is loaded; Dur how long the load took
	KindRequest              // Req, State; Data *Request when queued, *Outcome when finished, cancelled or failed
	KindStage                // Stage, Req (0: the engine's own), Layer (-1: not per layer), Dur, N tokens it covered; Text names a stage that is StageNone
	KindToken                // Req, ID, Index, N tokens sharing this stamp, Step, Text, LogProb, Top, Picks
	KindExperts              // Data *Experts: cumulative picks per layer and expert
	KindKV                   // Data *KV: cells used and total, pins
	KindStep                 // Step, Dur, N decode tokens, Prompt prompt tokens, Split: one forward pass; Data *Pass if more is known
	KindHost                 // Data *Host: a sample of the machine and the engine's process
	KindLog                  // Text: one line of the engine's log
	KindLost                 // Data *Lost: cumulative counts of what a source could not deliver
	KindCounters             // Data *Counters: the engine's own cumulative counts and ratios
	KindReport               // Data *Report: what an engine tells of itself in sum
	KindOps                  // Data *Ops: cumulative times of the operations of forward passes
	NumKinds
)

var kindNames = [NumKinds]string{
	"engine", "model", "request", "stage", "token", "experts", "kv", "step", "host", "log", "lost",
	"counters", "report", "ops",
}

// String is the kind's name as it appears in reports and drop counts.
func (k Kind) String() string {
	if k < NumKinds {
		return kindNames[k]
	}
	return "unknown"
}

// Event is one fact. It is a flat value so that emitting allocates nothing; see Kind for the fields in use.
type Event struct {
	Kind  Kind
	State State
	Stage Stage
	Layer int16 // KindStage: 0-based layer, or -1
	ID    int32 // KindToken: token id; -1 where the engine does not tell ids

	At     Time  // when it happened; for anything with a duration, when it ended
	Dur    int64 // ns; start = At - Dur
	Req    RequestID
	Step   uint64  // number of the forward pass that made a token, from 1; 0 unknown
	N      int32   // tokens covered
	Prompt int32   // KindStep: prompt tokens in the batch
	Index  int32   // KindToken: position of the first of the N tokens in the generated text, from 0
	LogP   float32 // KindToken: natural log of the sampled token's probability; 0 if HasLogP is false

	HasLogP bool
	Split   Split
	Text    string    // raw bytes as generated: not sanitised, may end inside a UTF-8 sequence
	Top     []TopProb // KindToken: alternatives, if asked for
	Picks   []uint16  // KindToken: experts picked, layer by layer, ExpertsUsed each; if asked for
	Data    any       // a pointer to the payload named at the kind
}

// TopProb is one candidate of the next token with the natural log of its probability.
type TopProb struct {
	ID   int32
	LogP float32
	Text string
}

// State is where a request stands.
type State uint8

// The states of a request, in the order they are passed through; the last three are final.
const (
	StateNone State = iota
	StateQueued
	StateDispatched // the scheduler has begun work on it
	StateFinished
	StateCancelled
	StateFailed
	NumStates
)

var stateNames = [NumStates]string{"unknown", "queued", "running", "finished", "cancelled", "failed"}

// String is the state's name in reports and on the screen.
func (s State) String() string {
	if s < NumStates {
		return stateNames[s]
	}
	return stateNames[0]
}

// Final reports whether a request in this state will change no more.
func (s State) Final() bool { return s >= StateFinished }

// Sink takes events. Emit never blocks and is safe from many goroutines; what a sink cannot take it
// drops and counts per kind.
type Sink interface {
	Emit(Event)
}

// Discard is the Sink of a run that nobody looks at.
type Discard struct{}

// Emit drops the event.
func (Discard) Emit(Event) {}
