package model

import (
	"github.com/llmtop/llmtop/runtime"
	"github.com/llmtop/llmtop/runtime/native/tensor"
)

// Forward computes a batch; see runtime.Engine. Results depend on the tokens of their own sequence only, bit for bit: neither on
// the number of threads nor on what else is in the batch.
func (r *Runner) Forward(b *runtime.Batch) error {
	if err := r.accept(b); err != nil {
		return err
	}
	b.Time = runtime.BatchTime{}
	if r.hooks.Split {
		r.watch.start()
	}
	r.pool.Run(r)
	b.Logits = b.Logits[:0]
	for i := range r.wanted {
		b.Logits = append(b.Logits, r.logits[i*r.Vocab:(i+1)*r.Vocab])
	}
	b.Picks = b.Picks[:0]
	if r.hooks.Picks && !r.Dense() {
		per := r.Layers * r.Used
		for i := range r.n {
			b.Picks = append(b.Picks, r.chosen[i*per:(i+1)*per])
		}
	}
	if r.hooks.Split {
		b.Time.Layers = r.times
		r.watch.stop(&b.Time)
	}
	return nil
}

// part books the time since the last border, if times are wanted and this is the worker that keeps them.
func (r *Runner) part(w *tensor.Worker, to *int64) {
	if r.hooks.Split && w.ID() == 0 {
		*to = r.watch.lap()
	}
}

// Do computes the batch in progress; it is one worker's part of it.
func (r *Runner) Do(w *tensor.Worker) {
	l := r.lane(w)
	width := r.Width
	lo, hi := r.rows(w)
	for i := lo; i < hi; i++ {
		r.embed.Dequantize(l.x[i*width:(i+1)*width], int(r.batch.Rows[i].Token))
	}
	r.part(w, &r.batch.Time.Embed)
	for i := range r.times {
		t := &r.times[i]
		r.attention(w, l, i)
		r.part(w, &t.Attention)
		r.route(w, l, i)
		r.part(w, &t.Router)
		r.feedForward(w, l, i)
		r.part(w, &t.Experts)
	}
	r.output(w, l)
	r.part(w, &r.batch.Time.Head)
}

// lane is where this worker does its row-by-row work.
func (r *Runner) lane(w *tensor.Worker) *lane {
	if r.small {
		return r.own[w.ID()]
	}
	return r.shared
}

// rows are those that this worker works on by itself: all of a small batch, its share of a large one.
func (r *Runner) rows(w *tensor.Worker) (lo, hi int) {
	if r.small {
		return 0, r.n
	}
	return w.Split(r.n, 1)
}

// meet lets the others see this worker's rows, where they share a lane.
func (r *Runner) meet(w *tensor.Worker) {
	if !r.small {
		w.Barrier()
	}
}

// attention lets each token look at those before it in its sequence, and leaves in proj what that adds to its state.
func (r *Runner) attention(w *tensor.Worker, l *lane, i int) {
	p, width := &r.layers[i], r.Width
	heads, kvHeads := r.Heads*r.HeadDim, r.KVHeads*r.HeadDim
	lo, hi := r.rows(w)
	for row := lo; row < hi; row++ {
		norm := l.norm[row*width : (row+1)*width]
		tensor.RMSNorm(norm, l.x[row*width:(row+1)*width], p.attnNorm, r.Eps)
		l.in.Quantize(row, norm, p.attnForm)
	}
	r.meet(w)
	product(w, r.q, &p.q, &l.in, r.n, heads)
	product(w, r.k, &p.k, &l.in, r.n, kvHeads)
	product(w, r.v, &p.v, &l.in, r.n, kvHeads)
	w.Barrier()
	r.attend(w, p, i)
	w.Barrier()
	for row := lo; row < hi; row++ {
		l.heads.Quantize(row, r.attn[row*heads:(row+1)*heads], p.outForm)
	}
	r.meet(w)
	product(w, r.proj, &p.o, &l.heads, r.n, width)
	w.Barrier()
}

// product computes dst[row][:] = m · vector row, for all rows; each worker a range of m's rows.
func product(w *tensor.Worker, dst []float32, m *tensor.Matrix, a *tensor.Activations, n, ldd int) {
	if lo, hi := w.Split(m.Rows, tensor.RowTile); lo < hi {
		tensor.MatMul(dst, ldd, m, lo, hi, a, 0, n)
	}
}
