//go:build !nollama && (linux || darwin || windows) && (amd64 || arm64)

package llama

import (
	"fmt"
	"time"
	"unsafe"

	"github.com/llmtop/llmtop/runtime/engine"
)

// batchRows holds the arrays of a batch, in the layout of struct llama_batch.
type batchRows struct {
	c         batch
	tokens    []int32
	positions []int32
	counts    []int32  // sequences per row: always 1
	sequences []*int32 // sequence of each row
	slots     []int32  // slot numbers, the targets of sequences
	logits    []int8
	wanted    []int32 // rows with logits
}

// prepare allocates n rows.
func (r *batchRows) prepare(n, slots int) {
	r.tokens, r.positions, r.counts = make([]int32, n), make([]int32, n), make([]int32, n)
	r.sequences, r.logits, r.slots = make([]*int32, n), make([]int8, n), make([]int32, slots)
	for i := range r.counts {
		r.counts[i] = 1
	}
	for i := range r.slots {
		r.slots[i] = int32(i)
	}
	address := func(p unsafe.Pointer) uintptr { return uintptr(p) }
	r.c = batch{
		token: address(unsafe.Pointer(&r.tokens[0])), pos: address(unsafe.Pointer(&r.positions[0])),
		nSeqID: address(unsafe.Pointer(&r.counts[0])), seqID: address(unsafe.Pointer(&r.sequences[0])),
		logits: address(unsafe.Pointer(&r.logits[0])),
	}
}

// fill copies the rows of a batch.
func (e *Engine) fill(rows []engine.Row) error {
	r := &e.rows
	r.wanted = r.wanted[:0]
	for i, row := range rows {
		r.tokens[i], r.positions[i], r.sequences[i], r.logits[i] = row.Token, row.Pos, &r.slots[row.Slot], 0
		if row.Logits {
			r.logits[i] = 1
			r.wanted = append(r.wanted, int32(i))
		}
	}
	if len(r.wanted) > e.opt.Logits {
		return fmt.Errorf("compute batch: %d rows request logits, the maximum is %d", len(r.wanted), e.opt.Logits)
	}
	r.c.n = int32(len(rows))
	return nil
}

// Forward implements engine.Engine.
func (e *Engine) Forward(b *engine.Batch) error {
	if err := b.Check(len(e.rows.tokens), e.modelInfo.Vocab, e.opt.Context, e.opt.Slots); err != nil {
		return err
	}
	if err := e.fill(b.Rows); err != nil {
		return err
	}
	b.Logits, b.Picks, b.Time = b.Logits[:0], b.Picks[:0], engine.BatchTime{}
	want, timed := e.dueHooks(b.Rows)
	watched := want.Split || want.Experts || want.Picks || want.Ops
	began := time.Now()
	if watched {
		e.trace.begin(b.Rows, e.rows.wanted, want)
		e.watch.enable(e.trace.prefixes())
	}
	code := e.lib.decode(e.context, e.rows.c)
	e.watch.disable()
	if code != 0 {
		return e.decodeError(code)
	}
	e.collect(b)
	if watched {
		e.trace.end(b)
	}
	took := time.Since(began)
	if timed {
		e.rate.took(len(b.Rows), float64(took))
	}
	if e.hooks.Ops {
		e.trace.ops.pass(len(b.Rows), want.Ops, took)
	}
	return nil
}

// decodeError converts a result of llama_decode to an error.
func (e *Engine) decodeError(code int32) error {
	switch code {
	case 1:
		return fmt.Errorf("compute batch: the KV cache of %d cells is full", e.opt.Slots*e.opt.Context)
	case 2:
		return fmt.Errorf("compute batch: aborted by the library")
	}
	return fmt.Errorf("compute batch: llama_decode returned %d: %s", code, log.complaints())
}

// collect reads the results. Logits are in the library's memory.
func (e *Engine) collect(b *engine.Batch) {
	if len(e.rows.wanted) == 0 {
		e.lib.synchronize(e.context)
	}
	for _, row := range e.rows.wanted {
		b.Logits = append(b.Logits, unsafe.Slice(e.lib.logits(e.context, row), e.modelInfo.Vocab))
	}
}

// every returns the sampling interval of the hooks.
func (e *Engine) every() int { return orElse(e.hooks.Every, e.rate.every) }

// dueHooks returns what to measure in a pass, and whether its time shows what measuring costs.
func (e *Engine) dueHooks(rows []engine.Row) (want engine.Hooks, timed bool) {
	if want = e.hooks; want == (engine.Hooks{}) {
		return want, false
	}
	prompts, slots := batchStats(rows)
	kind := 0
	if prompts > 0 {
		kind = 1
	}
	pass := e.passes[kind]
	e.passes[kind]++
	sampled, moe := pass%e.every() == 0, e.trace.count != nil
	auto := want.Every == 0 && (want.Split || want.Experts && moe)
	switch {
	case auto && kind == 0:
		sampled, timed = e.rate.due(), !want.Ops && !want.Picks // else every pass is observed
	case auto: // the next pass has another graph
		e.rate.disturb()
	}
	want.Split, want.Experts, want.Picks = want.Split && sampled, want.Experts && sampled && moe, want.Picks && moe
	if e.trace.reorders && slots > 1 { // the order of rows is not defined
		want.Experts, want.Picks = want.Experts && (prompts == 0 || prompts == len(rows)), false
	}
	want.Ops = want.Ops && e.trace.ops.begin(pass)
	return want, timed
}

// batchStats returns how many rows of a batch belong to prompts, and whether all belong to one slot: 1, or more than 1.
func batchStats(rows []engine.Row) (prompts, slots int) {
	slots = 1
	for i := range rows {
		if rows[i].Prompt {
			prompts++
		}
		if rows[i].Slot != rows[0].Slot {
			slots = 2
		}
	}
	return prompts, slots
}

// end completes an observed pass.
func (t *tracer) end(b *engine.Batch) {
	if t.measure.Experts {
		prompts, _ := batchStats(t.rows)
		t.count.PromptTokens += uint64(prompts)
		t.count.DecodeTokens += uint64(len(t.rows) - prompts)
	}
	if t.measure.Picks {
		per := t.info.Layers * t.info.ExpertsUsed
		for i := range b.Rows {
			b.Picks = append(b.Picks, t.chosen[i*per:(i+1)*per])
		}
	}
	if t.measure.Split {
		t.split.fill(&b.Time, time.Since(t.lap))
	}
}
