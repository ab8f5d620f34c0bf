// Package runtime is where events come from: engines that compute, the scheduler that runs requests on them,
// and sources that observe engines elsewhere.
package runtime

import (
	"context"
	"math"

	"github.com/llmtop/llmtop/profiler/event"
)

// Source produces events until ctx ends or the source does. It never blocks on a slow reader. A nil error
// means that the source ended by itself or by ctx.
type Source interface {
	Run(ctx context.Context, sink event.Sink) error
}

// Engine computes: it knows sequences and tokens, and nothing of requests, queues or clocks on a wall. One goroutine drives it;
// only Encode, Piece, IsEOG and the descriptions may be called from others meanwhile.
type Engine interface {
	// Info describes the engine, Model what it has loaded.
	Info() event.Engine
	Model() event.Model

	// Encode appends the ids of text to dst, with the tokens that the model wants in front (BOS).
	// With special set, control tokens spelled out in text become their ids.
	Encode(dst []int32, text string, special bool) []int32
	// Piece is the raw bytes of a token; it may be a part of a UTF-8 sequence.
	Piece(id int32) string
	// IsEOG reports whether the token ends a generation.
	IsEOG(id int32) bool

	// Slots is how many sequences fit side by side, Context how many tokens each may hold.
	Slots() int
	Context() int
	// MaxBatch is the most tokens that one Forward takes.
	MaxBatch() int

	// Forward computes one batch and fills b.Logits and b.Time. Cancelling is the caller's business, between batches.
	Forward(b *Batch) error
	// Release forgets the sequence in a slot.
	Release(slot int)

	// SetHooks turns measuring on and off between batches; the zero Hooks costs nothing.
	SetHooks(h Hooks)
	// Router is the picks counted since load, nil for a dense model. The caller may keep the result, it is a copy.
	Router() *event.Experts

	Close() error
}

// Threaded is an Engine that knows on which threads it computes.
type Threaded interface {
	// Threads are the operating system's ids of the threads that compute for the engine beside the one that calls Forward. Nil
	// means that they are not known, empty that there are none. It may be called from any goroutine.
	Threads() []int
}

// Keeper is an Engine that can go on from a part of what a slot holds.
type Keeper interface {
	// Keep cuts the sequence in a slot to its first n tokens, to be continued at position n, and returns how many it could keep: n,
	// or fewer where the model's state cannot be cut there. Without Release before it, a slot holds what was computed in it.
	Keep(slot, n int) int
}

// Profiled is an Engine that can time the operations of which a forward pass is made; see Hooks.Ops.
type Profiled interface {
	// Ops is what has been timed since load, nil if nothing was. The caller may keep the result, it is a copy.
	Ops() *event.Ops
}

// Hooks says what an Engine measures on the way.
type Hooks struct {
	Split   bool // time by part and layer, into Batch.Time
	Experts bool // count router picks per layer and expert
	Picks   bool // hand out the picks of every token, in Batch.Picks
	Ops     bool // time every operation, in engines that are Profiled; it costs

	// Every is in one of how many forward passes Split and Experts are measured, in engines where they cost; those that carry prompts
	// and those that only decode are counted by themselves. 0 leaves it to the engine. Experts.EveryN tells what it became.
	Every int
}

// NoPick stands in Batch.Picks for a pick that is not known: of a layer without experts, or one that was not computed for the row.
const NoPick = math.MaxUint16

// Batch is the input and output of one forward pass: rows of tokens from any number of sequences. A sequence's
// rows stand in ascending position, continuing where its slot ended.
type Batch struct {
	Rows []Row
	// Logits holds Vocab values for each row that wanted them, in order of the rows; owned by the engine, valid until
	// the next Forward.
	Logits [][]float32
	// Picks holds, for each row, layers x used experts (see Hooks.Picks); owned like Logits.
	Picks [][]uint16
	Time  BatchTime
}

// Row is one token of one sequence.
type Row struct {
	Token  int32
	Pos    int32 // position in the sequence, from 0
	Slot   int32
	Prompt bool // the token is part of a prompt (for the router counts)
	Logits bool // the caller wants the logits after this token
}

// BatchTime says where a forward pass spent its time, in ns of wall clock on the thread that led it.
type BatchTime struct {
	Embed, Head int64
	Layers      []LayerTime // per layer; empty with Hooks.Split off
}

// LayerTime is one layer's share of BatchTime, in ns.
type LayerTime struct {
	Attention, Router, Experts int64
}
