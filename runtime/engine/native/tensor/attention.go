package tensor

import "fmt"

// keyTile is the number of positions whose keys are interleaved in a KV.
const keyTile = 16

// queryRows is the number of query vectors that Attend processes together.
const queryRows = 8

// KV is the cache of one KV head (of one layer and one sequence) in half floats. Different KVs may be used by different
// goroutines; one KV must not be written while it is read.
type KV struct {
	dim    int
	keys   []uint16 // [position/16][dim][position%16]
	values []uint16 // [position][dim]
}

// KVBytes returns the size of a KV for heads of dim values and up to positions positions.
func KVBytes(dim, positions int) int { return 2 * kvElems(dim, positions) }

func kvElems(dim, positions int) int {
	return (roundUp(positions, keyTile) + positions) * dim
}

// NewKV returns an empty cache for heads of dim values and up to positions positions.
func NewKV(dim, positions int) *KV {
	keys := roundUp(positions, keyTile) * dim
	mem := make([]uint16, kvElems(dim, positions))
	return &KV{dim: dim, keys: mem[:keys:keys], values: mem[keys:]}
}

// Positions returns the capacity of the cache in positions.
func (c *KV) Positions() int { return len(c.values) / c.dim }

// Store writes the key and the value of one position, rounded to half floats. It replaces previous values: shortening a
// sequence needs no call.
func (c *KV) Store(pos int, key, value []float32) {
	if pos < 0 || pos >= c.Positions() {
		panic(fmt.Sprintf("tensor: position %d outside a cache of %d", pos, c.Positions()))
	}
	tile := c.keys[pos/keyTile*keyTile*c.dim:][:keyTile*c.dim]
	storeKey(tile[pos%keyTile:], key[:c.dim])
	sets[active].floatsToHalves(c.values[pos*c.dim:(pos+1)*c.dim], value[:c.dim])
}

// AttnScratch is the working memory of Attend; each worker needs its own. The zero value is ready to use.
type AttnScratch struct {
	q, out []float32 // [queryRows][dim]
	scores []float32 // [queryRows][positions rounded up]
	// inverse is 1/Σ of each row's exponentials: results are divided by the sum of the weights at the end.
	inverse [queryRows]float32
}

// Attend computes causal attention for tokens at positions pos0 .. pos0+tokens, each with the query
// heads 0..group that share the cache kv. The query of token t and head g is q[t*ldq+g*dim:][:dim] and its
// result goes to dst[t*ldd+g*dim:][:dim]. It is softmax(scale * q·K) · V over the positions 0 .. pos0+t, which
// must have been stored. It allocates only when the scratch has to grow.
func Attend(dst []float32, ldd int, q []float32, ldq, group, tokens, pos0 int, kv *KV, scale float32, s *AttnScratch) {
	dim, rows := kv.dim, tokens*group
	if pos0 < 0 || pos0+tokens > kv.Positions() {
		panic(fmt.Sprintf("tensor: attention to positions %d..%d of a cache of %d", pos0, pos0+tokens, kv.Positions()))
	}
	s.resize(dim, pos0+tokens)
	for r0 := 0; r0 < rows; r0 += queryRows {
		n := min(queryRows, rows-r0)
		for r := range n {
			t, g := (r0+r)/group, (r0+r)%group
			sets[active].scaleTo(s.q[r*dim:(r+1)*dim], q[t*ldq+g*dim:][:dim], scale)
		}
		s.attend(kv, r0, n, group, pos0)
		for r := range n {
			t, g := (r0+r)/group, (r0+r)%group
			sets[active].scaleTo(dst[t*ldd+g*dim:][:dim], s.out[r*dim:(r+1)*dim], s.inverse[r])
		}
	}
}

func (s *AttnScratch) resize(dim, positions int) {
	s.q, s.out = grown(s.q, queryRows*dim), grown(s.out, queryRows*dim)
	if n := queryRows * roundUp(positions, keyTile); cap(s.scores) < n {
		s.scores = make([]float32, 2*n)
	}
}

// attend computes the n query rows from r0 on, which are in s.q, and stores the results in s.out.
func (s *AttnScratch) attend(kv *KV, r0, n, group, pos0 int) {
	last := pos0 + (r0+n-1)/group + 1 // number of positions visible to the last row
	stride := roundUp(last, keyTile)
	scores := s.scores[:n*stride]
	attnScores(scores, stride, s.q, n, kv.keys, kv.dim)
	for r := range n {
		row := scores[r*stride : r*stride+last]
		seen := pos0 + (r0+r)/group + 1
		s.inverse[r] = 1 / sets[active].expSum(row[:seen], 1)
		clear(row[seen:])
	}
	attnMix(s.out, scores, stride, n, kv.values, kv.dim, last)
}

func roundUp(n, unit int) int { return (n + unit - 1) / unit * unit }

func storeKey(tile []uint16, key []float32) {
	for i, v := range key {
		tile[i*keyTile] = FloatToHalf(v)
	}
}

func attnScores(scores []float32, stride int, q []float32, rows int, keys []uint16, dim int) {
	kernel := sets[active].attnScores
	if kernel == nil {
		attnScoresGo(scores, stride, q, rows, keys, dim)
		return
	}
	for r := 0; r < rows; {
		n := rowsAtOnce(rows - r)
		kernel(&scores[r*stride], stride, &q[r*dim], n, &keys[0], dim, stride)
		r += n
	}
}

func attnMix(out, weights []float32, stride, rows int, values []uint16, dim, n int) {
	kernel := sets[active].attnMix
	if kernel == nil || dim%16 != 0 {
		attnMixGo(out, weights, stride, rows, values, dim, n)
		return
	}
	for r := 0; r < rows; {
		k := rowsAtOnce(rows - r)
		kernel(&out[r*dim], &weights[r*stride], stride, k, &values[0], dim, n)
		r += k
	}
}

// rowsAtOnce returns how many of the remaining rows the attention kernels process in one call.
func rowsAtOnce(left int) int {
	if left >= queryRows && active == avx512 {
		return queryRows
	}
	return min(left, 4)
}

// attnScoresGo computes scores[r*stride+p] = q row r · key p for all p < stride, a multiple of keyTile.
func attnScoresGo(scores []float32, stride int, q []float32, rows int, keys []uint16, dim int) {
	var key [keyTile]float32
	for p := 0; p < stride; p += keyTile {
		for r := range rows {
			clear(scores[r*stride+p:][:keyTile])
		}
		for d := range dim {
			halvesToFloatsGo(key[:], keys[p*dim+d*keyTile:][:keyTile])
			for r := range rows {
				x, acc := q[r*dim+d], (*[keyTile]float32)(scores[r*stride+p:])
				for i, k := range key {
					acc[i] += x * k
				}
			}
		}
	}
}

// attnMixGo computes out row r = Σ weights[r*stride+p] * value p over p < n.
func attnMixGo(out, weights []float32, stride, rows int, values []uint16, dim, n int) {
	var value [keyTile]float32
	clear(out[:rows*dim])
	for p := range n {
		for d := 0; d < dim; d += keyTile {
			part := value[:min(keyTile, dim-d)]
			halvesToFloatsGo(part, values[p*dim+d:][:len(part)])
			for r := range rows {
				axpyGo(out[r*dim+d:][:len(part)], weights[r*stride+p], part)
			}
		}
	}
}
