package model

import (
	"github.com/llmtop/llmtop/runtime/engine/native/tensor"
)

// route adds the output of attention to each token's hidden state, normalises it, and picks its experts.
func (r *Runner) route(w *tensor.Worker, l *lane, i int) {
	p, width := &r.layers[i], r.Width
	lo, hi := r.rows(w)
	for row := lo; row < hi; row++ {
		x, norm := l.x[row*width:(row+1)*width], l.norm[row*width:(row+1)*width]
		tensor.AddTo(x, r.proj[row*width:(row+1)*width])
		tensor.RMSNorm(norm, x, p.ffnNorm, r.Eps)
		l.in.Quantize(row, norm, p.inForm)
		if !r.Dense() {
			prob := l.prob[row*r.Experts : (row+1)*r.Experts]
			tensor.MatVec(prob, &p.router, 0, r.Experts, &l.in, row)
			choose(l.picks[row*r.Used:(row+1)*r.Used], l.share[row*r.Used:(row+1)*r.Used], prob)
		}
	}
	r.syncLane(w)
	if w.ID() == 0 {
		r.count(l, i)
	}
	if r.small || w.ID() == 0 {
		r.list(l, i == r.Layers-1)
	}
	r.syncLane(w)
}

// choose picks the likeliest experts, likeliest first, the lower index at a tie, and scales their probabilities to a
// sum of 1: softmax over all experts, top-k, renormalised, as llama.cpp's build_moe_ffn computes it for these
// architectures.
func choose(picks []int32, share, prob []float32) {
	tensor.Softmax(prob, 1)
	var sum float32
	for rank := range picks {
		best := 0
		for e, p := range prob {
			if p > prob[best] {
				best = e
			}
		}
		picks[rank], share[rank] = int32(best), prob[best]
		sum += prob[best]
		prob[best] = -1
	}
	for rank := range share {
		share[rank] /= sum
	}
}

// list groups the picks by expert. In the last layer it includes only rows that request logits.
func (r *Runner) list(l *lane, last bool) {
	used, begin := r.used(), l.lists.begin
	clear(begin)
	rows := r.n
	if last {
		rows = len(r.wanted)
	}
	row := func(j int) int {
		if last {
			return int(r.wanted[j])
		}
		return j
	}
	for j := range rows {
		for _, e := range l.picks[row(j)*used : (row(j)+1)*used] {
			begin[e+1]++
		}
	}
	for e := 1; e < len(begin); e++ {
		begin[e] += begin[e-1]
	}
	for j := range rows {
		for rank, e := range l.picks[row(j)*used : (row(j)+1)*used] {
			at := begin[e]
			begin[e]++
			l.lists.rows[at], l.lists.slots[at] = int32(row(j)), int32(row(j)*used+rank)
		}
	}
	copy(begin[1:], begin[:len(begin)-1])
	begin[0] = 0
}

// feedForward computes each token's experts and adds the weighted sum to its hidden state.
func (r *Runner) feedForward(w *tensor.Worker, l *lane, i int) {
	p, ffn, width := &r.layers[i], r.FeedForward, r.Width
	for e := range len(l.lists.begin) - 1 {
		if rows, slots := l.lists.forExpert(e); len(rows) > 0 {
			r.openExpert(w, p, l, e, rows, slots)
		}
	}
	w.Barrier()
	slots := l.lists.slots[:l.lists.begin[len(l.lists.begin)-1]]
	lo, hi := 0, len(slots)
	if !r.small {
		lo, hi = w.Split(len(slots), 1)
	}
	for _, s := range slots[lo:hi] {
		l.mid.Quantize(int(s), r.gate[int(s)*ffn:(int(s)+1)*ffn], p.downForm)
	}
	r.syncLane(w)
	for e := range len(l.lists.begin) - 1 {
		if _, slots := l.lists.forExpert(e); len(slots) > 0 {
			down := p.down.Expert(e, width)
			if lo, hi := w.Split(width, tensor.RowTile); lo < hi {
				tensor.MatMulGather(r.down, width, &down, lo, hi, &l.mid, slots, slots)
			}
		}
	}
	w.Barrier()
	r.sum(w, l, i)
}

// openExpert computes silu(gate)*up for this worker's part of an expert's intermediate values, for the tokens that
// picked it.
func (r *Runner) openExpert(w *tensor.Worker, p *layer, l *lane, e int, rows, slots []int32) {
	ffn := r.FeedForward
	lo, hi := w.Split(ffn, tensor.RowTile)
	if lo == hi {
		return
	}
	gate, up := p.gate.Expert(e, ffn), p.up.Expert(e, ffn)
	tensor.MatMulGather(r.gate, ffn, &gate, lo, hi, &l.in, rows, slots)
	tensor.MatMulGather(r.up, ffn, &up, lo, hi, &l.in, rows, slots)
	for _, s := range slots {
		at := int(s) * ffn
		tensor.SwiGLU(r.gate[at+lo:at+hi], r.gate[at+lo:at+hi], r.up[at+lo:at+hi])
	}
}

// sum adds the experts' results to the hidden states, in order of rank, so that the sum does not depend on the batch.
func (r *Runner) sum(w *tensor.Worker, l *lane, i int) {
	used, width := r.used(), r.Width
	add := func(row int) {
		x := l.x[row*width : (row+1)*width]
		for rank := range used {
			slot := row*used + rank
			tensor.Axpy(x, l.share[slot], r.down[slot*width:(slot+1)*width])
		}
	}
	if i == r.Layers-1 { // only rows that request logits
		lo, hi := 0, len(r.wanted)
		if !r.small {
			lo, hi = w.Split(len(r.wanted), 1)
		}
		for _, row := range r.wanted[lo:hi] {
			add(int(row))
		}
		return
	}
	for row, hi := r.rows(w); row < hi; row++ {
		add(row)
	}
}

// output computes the logits of the rows that request them.
func (r *Runner) output(w *tensor.Worker, l *lane) {
	if len(r.wanted) == 0 {
		return
	}
	width, form := r.Width, r.head.Type.Form()
	lo, hi := 0, len(r.wanted)
	if !r.small {
		lo, hi = w.Split(len(r.wanted), 1)
	}
	for i := lo; i < hi; i++ {
		row := int(r.wanted[i])
		norm := l.norm[row*width : (row+1)*width]
		tensor.RMSNorm(norm, l.x[row*width:(row+1)*width], r.outNorm, r.Eps)
		l.in.Quantize(i, norm, form)
	}
	r.syncLane(w)
	product(w, r.logits, &r.head, &l.in, len(r.wanted), r.Vocab)
	w.Barrier()
}
