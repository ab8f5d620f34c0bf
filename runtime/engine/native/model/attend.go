package model

import "github.com/llmtop/llmtop/runtime/engine/native/tensor"

// attendChunk is the number of prompt tokens that one worker takes at a time: few, so that the workers finish together
// although later tokens take longer.
const attendChunk = 32

// attend computes attention from q, k and v to attn, and stores keys and values.
func (r *Runner) attend(w *tensor.Worker, p *layer, i int) {
	if r.small {
		for _, run := range r.runs {
			for head := range r.KVHeads {
				if (run.slot*r.KVHeads+head)%w.Threads() == w.ID() { // one worker for all runs of a sequence, in order
					for t := range run.n {
						r.place(p, i, run, t, head)
					}
					r.attendRun(w, i, run, 0, run.n, head)
				}
			}
		}
		return
	}
	for _, run := range r.runs {
		lo, hi := w.Split(run.n, 1)
		for t := lo; t < hi; t++ {
			for head := range r.KVHeads {
				r.place(p, i, run, t, head)
			}
		}
	}
	w.Barrier()
	next, item := w.Take(), 0
	for _, run := range r.runs {
		for t := 0; t < run.n; t += attendChunk {
			for head := range r.KVHeads {
				if item == next {
					r.attendRun(w, i, run, t, min(attendChunk, run.n-t), head)
					next = w.Take()
				}
				item++
			}
		}
	}
}

// place prepares the key, the value and the queries of one KV head of token t of a run, and stores key and value.
func (r *Runner) place(p *layer, i int, run run, t, head int) {
	dim, row, pos := r.HeadDim, run.row+t, run.pos+t
	at := (row*r.KVHeads + head) * dim
	k, v := r.k[at:at+dim], r.v[at:at+dim]
	addBias(k, p.bk, head*dim)
	addBias(v, p.bv, head*dim)
	r.normRotate(k, p.kNorm, pos)
	r.cache(run.slot, i, head).Store(pos, k, v)
	group := r.Heads / r.KVHeads
	for h := head * group; h < (head+1)*group; h++ {
		q := r.q[(row*r.Heads+h)*dim:][:dim]
		addBias(q, p.bq, h*dim)
		r.normRotate(q, p.qNorm, pos)
	}
}

func addBias(x, bias []float32, at int) {
	if bias != nil {
		tensor.AddTo(x, bias[at:at+len(x)])
	}
}

// normRotate normalises a head, if the architecture does, and rotates it for its position.
func (r *Runner) normRotate(x, norm []float32, pos int) {
	if norm != nil {
		tensor.RMSNorm(x, x, norm, r.Eps)
	}
	if r.kind.neox {
		r.rotary.Neox(x, pos)
	} else {
		r.rotary.Norm(x, pos)
	}
}

// attendRun computes attention of n tokens of a run from t on, for the query heads that share a KV head.
func (r *Runner) attendRun(w *tensor.Worker, i int, run run, t, n, head int) {
	dim, heads, group := r.HeadDim, r.Heads*r.HeadDim, r.Heads/r.KVHeads
	at := (run.row+t)*heads + head*group*dim
	tensor.Attend(r.attn[at:], heads, r.q[at:], heads, group, n, run.pos+t,
		r.cache(run.slot, i, head), r.scale, &r.scratch[w.ID()])
}

// cache returns the KV cache of one head.
func (r *Runner) cache(slot, layer, head int) *tensor.KV {
	return r.kv[(slot*r.Layers+layer)*r.KVHeads+head]
}
