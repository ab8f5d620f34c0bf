// Package tensor holds the kernels of the native engine: quantised matrix products, vector
// helpers, attention over a half-precision KV cache, and the persistent workers that share them.
//
// # Shapes
//
// A [Matrix] is row-major as GGUF stores it: a row is one output feature, Cols is ne[0], and the
// bytes are used where they lie (memory-mapped or embedded, of any alignment). A batch of n
// vectors is a []float32 with a leading dimension: vector i is x[i*ld : i*ld+cols].
//
// # Products
//
// The input of a product is quantised once into [Activations] and then used by every matrix that
// reads it. Which forms are needed follows from the weights' types:
//
//	forms := wq.Type.Form() | wk.Type.Form() | wv.Type.Form() // once, when the model is loaded
//	a.Resize(n, width, forms)                                 // grows its buffers, never shrinks them
//	a.Quantize(i, x[i*width:(i+1)*width], forms)              // for each vector i; any worker, any order
//	tensor.MatVec(q, &wq, lo, hi, a, i)                       // q[lo:hi] = rows lo..hi · vector i
//	tensor.MatMul(q, ldq, &wq, lo, hi, a, i0, i1)             // q[i*ldq+lo : i*ldq+hi] for i in i0..i1
//
// Rows are absolute: MatVec writes dst[lo:hi], so that workers with disjoint ranges share one dst.
// Ranges that start at a multiple of [RowTile] are fastest; [Worker.Split] makes such ranges.
//
// Experts are views into the three-dimensional tensor, and their tokens are lists of indices:
//
//	gate := gateExps.Expert(e, ffn)                                   // rows e*ffn .. (e+1)*ffn
//	tensor.MatMulGather(g, ffn, &gate, lo, hi, a, tokens, nil)        // g row j   = expert · a row tokens[j]
//	tensor.MatMulGather(y, width, &down, lo, hi, h, nil, slots)       // y row slots[j] = expert · h row j
//
// Quantising 192 values costs less than a barrier: when one token is decoded, let each worker
// quantise its own copy of the whole vector instead of sharing one behind a barrier.
//
// # The same bits for the same token
//
// Within one instruction set a result depends only on the matrix row and on the vector. Neither
// the number of threads, nor the row range, nor the other vectors of a batch, nor the choice of
// MatVec, MatMul or MatMulGather changes a bit of it, and the same holds for [Attend]. Different
// instruction sets differ in the last bits of a float32, because they sum in another order.
//
// # Numerics
//
// Activations are rounded as ggml does on x86: for Q8_0 and Q4_0 weights to blocks of 32 with scale
// amax/127 kept as a half float (block_q8_0), for K-quants to blocks of 256 with a float32 scale
// (block_q8_K). Products of integers are exact; a block's contribution is added with one fused
// multiply-add. F32, F16 and BF16 weights meet the activations in float32. Inputs are taken to be finite.
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
// Split its work over workers by KV head, and by runs of tokens when there are many.
//
// # Vectors
//
// [RMSNorm], [SwiGLU], [Softmax], [AddTo], [Axpy] and [Dot] take slices of any length. Where there is a dst, it may be
// one of the inputs. A [Rotary] holds the cosines and sines of all positions and turns one head in place, in
// either layout. Exponentials follow Cephes' expf: 2 units in the last place.
//
// # Workers
//
// A [Pool] keeps its goroutines between jobs, on Linux each on a thread of its own that tools can tell from
// the rest of the program by its name, llmtop-worker-N. One [Pool.Run] should cover a whole forward pass: in
// it every worker calls the same code and meets the others at [Worker.Barrier], which costs well
// under a microsecond while the workers are awake. [Worker.Split] divides rows evenly, [Worker.Take]
// hands out pieces of uneven size; Take's counter starts again after each barrier.
//
//	func (f *forward) Do(w *tensor.Worker) {   // the task is a pointer that the caller keeps: no allocation
//		lo, hi := w.Split(rows, tensor.RowTile)
//		tensor.MatVec(f.q, f.wq, lo, hi, f.act[w.ID()], 0)
//		w.Barrier()
//		for h := w.Take(); h < heads; h = w.Take() { ... }
//		w.Barrier()
//	}
//
// Workers that wait spin for some microseconds and then sleep: an idle pool uses no processor time.
//
// # Instruction sets
//
// [Features] names the set of kernels in use, chosen at start from what the processor offers:
// "avx512-vnni", "avx2" or "portable". The environment variable LLMTOP_CPU (portable, avx2 or avx512)
// asks for a smaller set, for tests and diagnosis. The assembly is written with avo in the folder
// asm, a module of its own, and committed; `go generate` makes it again.
package tensor
