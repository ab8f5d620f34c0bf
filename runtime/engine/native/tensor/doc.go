// Package tensor holds the kernels of the native engine: quantised matrix products, vector helpers, attention with a
// half-precision KV cache, and the persistent workers that run them.
//
// # Shapes
//
// A [Matrix] is row-major as in GGUF: a row is one output feature, Cols is ne[0], and the data is used in place
// (memory-mapped or embedded, with any alignment). A batch of n vectors is a []float32 with a leading dimension: vector
// i is x[i*ld : i*ld+cols].
//
// # Products
//
// The input of a product is quantised once into [Activations] and then used by every matrix that reads it. The required
// forms follow from the types of the weights:
//
//	forms := wq.Type.Form() | wk.Type.Form() | wv.Type.Form() // once, when the model is loaded
//	a.Resize(n, width, forms)                                 // grows its buffers, never shrinks them
//	a.Quantize(i, x[i*width:(i+1)*width], forms)              // for each vector i; any worker, any order
//	tensor.MatVec(q, &wq, lo, hi, a, i)                       // q[lo:hi] = rows lo..hi · vector i
//	tensor.MatMul(q, ldq, &wq, lo, hi, a, i0, i1)             // q[i*ldq+lo : i*ldq+hi] for i in i0..i1
//
// Rows are absolute: MatVec writes dst[lo:hi], so workers with disjoint ranges can share one dst. Ranges that start at
// a multiple of [RowTile] are fastest; [Worker.Split] returns such ranges.
//
// Experts are views of the three-dimensional tensor, and their tokens are lists of indexes:
//
//	gate := gateExps.Expert(e, ffn)                                   // rows e*ffn .. (e+1)*ffn
//	tensor.MatMulGather(g, ffn, &gate, lo, hi, a, tokens, nil)        // g row j   = expert · a row tokens[j]
//	tensor.MatMulGather(y, width, &down, lo, hi, h, nil, slots)       // y row slots[j] = expert · h row j
//
// Quantising 192 values costs less than a barrier: to decode one token, let each worker quantise its own copy of the
// whole vector instead of sharing one behind a barrier.
//
// # Reproducibility
//
// Within one instruction set a result depends only on the matrix row and on the vector. The number of threads, the row
// range, the other vectors of a batch, and the choice of MatVec, MatMul or MatMulGather do not change any bit of it.
// The same holds for [Attend]. Results of different instruction sets differ in the last bits of a float32, because they
// sum in another order.
//
// # Numerics
//
// For quantised weights, activations are rounded to blocks of 32 with the scale amax/127 as a half float: ggml's
// block_q8_0 on x86. For K-quants ggml uses blocks of 256 (block_q8_K), which are less precise. Integer products are
// exact; the contribution of a block is added with one fused multiply-add. F32, F16 and BF16 weights are multiplied
// with activations in float32. Inputs must be finite.
//
// # Attention
//
// [KV] is the cache of one KV head in half floats: keys interleaved in groups of 16 positions,
// values position by position. [KV.Store] writes a position and [Attend] computes causal attention
// of consecutive tokens for the query heads that share that KV head:
//
//	kv.Store(pos, k, v)
//	tensor.Attend(out[h*dim:], width, q[h*dim:], width, group, n, pos0, kv, scale, scratch)
//
// Divide its work among workers by KV head, and by runs of tokens if there are many.
//
// # Vectors
//
// [RMSNorm], [SwiGLU], [Softmax], [AddTo], [Axpy] and [Dot] take slices of any length. dst may be one of the inputs. A
// [Rotary] holds the cosines and sines of all positions and rotates one head in place, in either layout. Exponentials
// follow Cephes' expf: within 2 units in the last place.
//
// # Workers
//
// A [Pool] keeps its goroutines between jobs, on Linux each on its own thread named llmtop-worker-N, so that tools can
// identify them. One [Pool.Run] should cover a whole forward pass: every worker runs the same code and waits for the
// others at [Worker.Barrier], which takes well under a microsecond while the workers are awake. [Worker.Split] divides
// rows evenly, [Worker.Take] assigns pieces of uneven size; Take's counter restarts after each barrier.
//
//	func (f *forward) Do(w *tensor.Worker) {   // the task is a pointer that the caller keeps: no allocation
//		lo, hi := w.Split(rows, tensor.RowTile)
//		tensor.MatVec(f.q, f.wq, lo, hi, f.act[w.ID()], 0)
//		w.Barrier()
//		for h := w.Take(); h < heads; h = w.Take() { ... }
//		w.Barrier()
//	}
//
// Waiting workers spin for some microseconds and then sleep: an idle pool uses no CPU time.
//
// # Instruction sets
//
// [Features] returns the set of kernels in use, selected at start from the features of the CPU: "avx512-vnni", "avx2"
// or "portable". The environment variable LLMTOP_CPU (portable, avx2 or avx512) selects a smaller set, for tests and
// diagnosis. The assembly and its declarations are generated with avo in the folder asm, a separate module, and
// committed; `go generate` regenerates them.
package tensor
