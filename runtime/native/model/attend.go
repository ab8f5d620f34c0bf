package model

import "github.com/llmtop/llmtop/runtime/native/tensor"

// attendChunk is how many tokens of a prompt one worker takes at a time: few enough that the workers end together, since later tokens
// look at more.
const attendChunk = 32

// attend computes attention proper, from q, k and v to attn, and stores keys and values.
func (r *Runner) attend(w *tensor.Worker, p *layer, i int) {
	if r.small {
		for _, run := range r.runs {
			for head := range r.KVHeads {
				if (run.slot*r.KVHeads+head)%w.Threads() == w.ID() { // one worker for all runs of a sequence, in their order
					for t := range run.n {
						r.place(p, i, run, t, head)
					}
					r.look(w, i, run, 0, run.n, head)
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
					r.look(w, i, run, t, min(attendChunk, run.n-t), head)
					next = w.Take()
				}
				item++
			}
		}
	}
}

// place finishes the key, the value and the queries of one KV head of token t of a run, and stores key and value.
func (r *Runner) place(p *layer, i int, run run, t, head int) {
	dim, row, pos := r.HeadDim, run.row+t, run.pos+t
	at := (row*r.KVHeads + head) * dim
	k, v := r.k[at:at+dim], r.v[at:at+dim]
	addBias(k, p.bk, head*dim)
	addBias(v, p.bv, head*dim)
	r.turn(k, p.kNorm, pos)
	r.cache(run.slot, i, head).Store(pos, k, v)
	group := r.Heads / r.KVHeads
	for h := head * group; h < (head+1)*group; h++ {
		q := r.q[(row*r.Heads+h)*dim:][:dim]
		addBias(q, p.bq, h*dim)
		r.turn(q, p.qNorm, pos)
	}
}

func addBias(x, bias []float32, at int) {
	if bias != nil {
		tensor.AddTo(x, bias[at:at+len(x)])
	}
}

// turn normalises a head, where the architecture does, and rotates it to its position.
func (r *Runner) turn(x, norm []float32, pos int) {
	if norm != nil {
		tensor.RMSNorm(x, x, norm, r.Eps)
	}
	if r.neox {
		r.rotary.Neox(x, pos)
	} else {
		r.rotary.Norm(x, pos)
	}
}

// look computes attention of n tokens of a run from t on, for the query heads that share a KV head.
func (r *Runner) look(w *tensor.Worker, i int, run run, t, n, head int) {
	dim, heads, group := r.HeadDim, r.Heads*r.HeadDim, r.Heads/r.KVHeads
	at := (run.row+t)*heads + head*group*dim
	tensor.Attend(r.attn[at:], heads, r.q[at:], heads, group, n, run.pos+t,
		r.cache(run.slot, i, head), r.scale, &r.scratch[w.ID()])
}

// cache is the KV cache of one head.
func (r *Runner) cache(slot, layer, head int) *tensor.KV {
	return r.kv[(slot*r.Layers+layer)*r.KVHeads+head]
}
