// Package engine defines engines that compute, the scheduler that runs requests on them, and the interface of sources
// that observe engines in other processes.
package engine

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/llmtop/llmtop/profiler/event"
)

// Source produces events until ctx ends or no more can come. It never blocks on a slow reader. It returns nil if it
// ended normally or because of ctx.
type Source interface {
	Run(ctx context.Context, sink event.Sink) error
}

// Engine computes forward passes. It handles sequences and tokens, not requests, queues or wall clocks. One goroutine
// drives it; only Encode, Piece, IsEOG, Info, Model, Slots, Context, MaxBatch and Threads may be called concurrently by others.
type Engine interface {
	// Info describes the engine; Model describes the loaded model.
	Info() event.EngineInfo
	Model() event.Model

	// Encode appends the token ids of text to dst, with the tokens that the model requires in front (BOS).
	// If special is set, control tokens spelled out in text become their ids.
	Encode(dst []int32, text string, special bool) []int32
	// Piece returns the raw bytes of a token; they may be part of a UTF-8 sequence.
	Piece(id int32) string
	// IsEOG reports whether the token ends a generation.
	IsEOG(id int32) bool

	// Slots is the number of sequences that fit at the same time, Context the maximum number of tokens of each.
	Slots() int
	Context() int
	// MaxBatch is the maximum number of rows in one Forward.
	MaxBatch() int

	// Forward computes one batch and fills b.Logits and b.Time. The caller handles cancellation, between batches.
	Forward(b *Batch) error
	// Release drops the sequence in a slot.
	Release(slot int)
	// Keep truncates the sequence in a slot to its first n tokens; the sequence continues at position n. It returns the
	// number of tokens kept: n, or fewer where the model's state cannot be cut there. Until Release, a slot holds what
	// was computed in it.
	Keep(slot, n int) int

	// SetHooks turns measurements on and off between batches. The zero Hooks has no cost.
	SetHooks(h Hooks)
	// Router returns a copy of the picks counted since load, nil for a dense model.
	Router() *event.Experts
	// Ops returns a copy of the operation times measured since load (Hooks.Ops), nil if nothing was timed. Info has
	// CapOps if the engine can time them.
	Ops() *event.Ops

	// Threads returns the thread ids that compute for the engine, without the thread that calls Forward. Nil means that
	// they are not available, an empty slice that there are no others. It may be called from any goroutine.
	Threads() []int

	Close() error
}

// Hooks selects what an Engine measures.
type Hooks struct {
	Split   bool // time each part and layer, into Batch.Time
	Experts bool // count router picks per layer and expert
	Picks   bool // return the picks of every token, in Batch.Picks
	Ops     bool // time every operation, in engines with CapOps; adds overhead

	// Every is the sampling interval: Split and Experts are measured in one of every Every forward passes, in engines
	// where measuring adds overhead. Passes with prompt rows and passes that only decode are counted separately. 0: the
	// engine chooses. Experts.EveryN reports the interval in use.
	Every int
}

// NoPick marks a missing pick in Batch.Picks: the layer has no experts, or was not computed for the row.
const NoPick = math.MaxUint16

// NewPicks returns the counts of picks of a model's router before the first pass.
func NewPicks(layers, experts, used int) *event.Experts {
	n := layers * experts
	return &event.Experts{Layers: layers, Experts: experts, Used: used, Prompt: make([]uint64, n), Decode: make([]uint64, n)}
}

// CopyPicks returns a copy of counts, which are nil for a dense model.
func CopyPicks(of *event.Experts) *event.Experts {
	if of == nil {
		return nil
	}
	c := *of
	c.Prompt, c.Decode = slices.Clone(of.Prompt), slices.Clone(of.Decode)
	return &c
}

// Batch is the input and output of one forward pass: rows of tokens from any number of sequences. The rows of a
// sequence are in ascending position and continue where its slot ended.
type Batch struct {
	Rows []Row
	// Logits holds Vocab values for each row that requested them, in order of the rows; owned by the engine, valid
	// until the next Forward.
	Logits [][]float32
	// Picks holds, for each row, layers x used experts (see Hooks.Picks); owned by the engine like Logits.
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

// Check returns an error if a batch has more rows than most, or none, or a row that is out of the ranges of an engine.
func (b *Batch) Check(most, vocab, context, slots int) error {
	if len(b.Rows) == 0 || len(b.Rows) > most {
		return fmt.Errorf("compute batch: %d rows, must be 1 to %d", len(b.Rows), most)
	}
	for i, row := range b.Rows {
		if row.Token < 0 || int(row.Token) >= vocab || row.Pos < 0 || int(row.Pos) >= context || row.Slot < 0 || int(row.Slot) >= slots {
			return fmt.Errorf("compute batch: row %d has token %d at position %d of slot %d: out of range", i, row.Token, row.Pos, row.Slot)
		}
	}
	return nil
}

// BatchTime is where a forward pass spent its time, in ns of wall clock on the thread that led it.
type BatchTime struct {
	Embed, Head int64
	Layers      []LayerTime // per layer; empty with Hooks.Split off
}

// LayerTime is one layer's share of BatchTime, in ns.
type LayerTime struct {
	Attention, Router, Experts int64
}
