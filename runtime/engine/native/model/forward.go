package model

import (
	"github.com/llmtop/llmtop/runtime/engine"
	"github.com/llmtop/llmtop/runtime/engine/native/tensor"
)

// Forward computes a batch; see engine.Engine. Results depend only on the tokens of their own sequence, bit for bit,
// not on the number of threads or the rest of the batch.
func (r *Runner) Forward(b *engine.Batch) error {
	if err := r.accept(b); err != nil {
		return err
	}
	b.Time = engine.BatchTime{}
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

// part adds the time since the last border to a part, if times are measured and this is worker 0.
func (r *Runner) part(w *tensor.Worker, to *int64) {
	if r.hooks.Split && w.ID() == 0 {
		*to = r.watch.lap()
	}
}

// Do computes one worker's part of the current batch.
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

// lane returns the lane that this worker uses for row-by-row work.
func (r *Runner) lane(w *tensor.Worker) *lane {
	if r.small {
		return r.own[w.ID()]
	}
	return r.shared
}

// rows returns the range of rows for this worker's row-by-row work: all of a small batch, its share of a large one.
func (r *Runner) rows(w *tensor.Worker) (lo, hi int) {
	if r.small {
		return 0, r.n
	}
	return w.Split(r.n, 1)
}

// syncLane waits for the other workers if they share a lane, so that they see this worker's rows.
func (r *Runner) syncLane(w *tensor.Worker) {
	if !r.small {
		w.Barrier()
	}
}

// attention computes attention of all rows, and stores in proj what it adds to the hidden states.
func (r *Runner) attention(w *tensor.Worker, l *lane, i int) {
	p, width := &r.layers[i], r.Width
	heads, kvHeads := r.Heads*r.HeadDim, r.KVHeads*r.HeadDim
	lo, hi := r.rows(w)
	for row := lo; row < hi; row++ {
		norm := l.norm[row*width : (row+1)*width]
		tensor.RMSNorm(norm, l.x[row*width:(row+1)*width], p.attnNorm, r.Eps)
		l.in.Quantize(row, norm, p.attnForm)
	}
	r.syncLane(w)
	product(w, r.q, &p.q, &l.in, r.n, heads)
	product(w, r.k, &p.k, &l.in, r.n, kvHeads)
	product(w, r.v, &p.v, &l.in, r.n, kvHeads)
	w.Barrier()
	r.attend(w, p, i)
	w.Barrier()
	for row := lo; row < hi; row++ {
		l.heads.Quantize(row, r.attn[row*heads:(row+1)*heads], p.outForm)
	}
	r.syncLane(w)
	product(w, r.proj, &p.o, &l.heads, r.n, width)
	w.Barrier()
}

// product computes dst[row][:] = m · vector row for all rows; each worker computes a range of m's rows.
func product(w *tensor.Worker, dst []float32, m *tensor.Matrix, a *tensor.Activations, n, ldd int) {
	if lo, hi := w.Split(m.Rows, tensor.RowTile); lo < hi {
		tensor.MatMul(dst, ldd, m, lo, hi, a, 0, n)
	}
}
