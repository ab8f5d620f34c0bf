package tensor

import "unsafe"

// panelRows is the number of matrix rows in a panel with AVX-512, one for each 32-bit lane of a register. With AVX2 it
// is half of that.
const panelRows = 16

// panelBlocks is the number of blocks of 32 columns in a panel.
const panelBlocks = superElems / blockElems

// panel holds 16 rows by up to 256 columns of a matrix, unpacked and interleaved so that a register holds the same four
// columns of every row. One panel serves all vectors of a product. A block of 32 columns has 8 registers of weights+128
// as unsigned bytes; a register of scales, for the whole block or for its first half; one for its second half (Q6_K);
// one of minima (Q4_K and Q5_K) or of the factor of both scales (Q6_K). For AVX2 all of these are half as wide, and
// the weights are signed.
type panel [panelBlocks * (8 + 3) * 64]byte

// ascending replaces a missing list of indexes.
var ascending = func() (list [512]int32) {
	for i := range list {
		list[i] = int32(i)
	}
	return list
}()

// tileAt returns how many of the rows r..hi of m are computed next, at most lanes, and where they are: the row of the
// first lane, the bytes between lanes, and which lanes are stored. If fewer rows are left, the tile includes preceding
// rows, which are masked out. A matrix with fewer rows than lanes is processed row by row, repeated in every lane.
func tileAt(m *Matrix, r, hi, lanes int) (rows, first, stride int, mask uint16) {
	rows = min(hi-r, lanes)
	if first = min(r, m.Rows-lanes); first < 0 {
		return 1, r, 0, 1
	}
	return rows, first, m.Type.RowBytes(m.Cols), uint16((1<<rows - 1) << (r - first))
}

// tileRows returns the number of rows in a panel of the kernels in use.
func tileRows() int {
	if active == avx2 {
		return panelRows / 2
	}
	return panelRows
}

// runTiles computes the whole tiles of rows lo..hi of a product with one vector, and returns the next row.
func (p *product) runTiles(lo, hi int) int {
	rows, t := tileRows(), p.m.Type
	tiles := (hi - lo) / rows
	if tiles == 0 {
		return lo
	}
	stride := t.RowBytes(p.m.Cols)
	d, act := &p.dst[p.row(0)*p.ldd+lo], &p.a.q80[p.vector(0)*p.a.blocks]
	productsOf[active][t].gemv(d, &p.m.Data[lo*stride], stride, tiles, p.m.Cols/t.BlockElems(), (*byte)(unsafe.Pointer(act)))
	return lo + tiles*rows
}

// panels holds panels that are not in use, one for each core in use at most. As large objects, Go aligns them to cache
// lines: loading a register accesses one line, not two.
var panels = make(chan *panel, 256)

func takePanel() *panel {
	select {
	case p := <-panels:
		return p
	default:
		return new(panel)
	}
}

func (p *panel) giveBack() {
	select {
	case panels <- p:
	default:
	}
}

// nearBytes is the size of activations that stay in a core's second-level cache while panels are multiplied by them.
const nearBytes = 512 << 10

// runPanels computes rows lo..hi of the product from panels, for some of the vectors at a time: unpacking a panel again
// takes less than reading the activations from beyond the cache for each panel.
func (p *product) runPanels(lo, hi int) {
	if lo == hi {
		return
	}
	most := max(64, nearBytes/(p.a.blocks*int(unsafe.Sizeof(actBlock{}))))
	parts := (p.n + most - 1) / most
	for i := range parts {
		p.runPanelsOf(lo, hi, p.n*i/parts, p.n*(i+1)/parts)
	}
}

// runPanelsOf computes rows lo..hi of the product for the vectors from..to.
func (p *product) runPanelsOf(lo, hi, from, to int) {
	mem, lanes := takePanel(), tileRows()
	defer mem.giveBack()
	blocks, stride := p.m.Cols/blockElems, p.m.Type.RowBytes(p.m.Cols)
	span := superElems / p.m.Type.BlockElems() * p.m.Type.BlockBytes() // bytes of 256 columns
	for r := lo; r < hi; {
		rows, first, apart, mask := tileAt(&p.m, r, hi, lanes)
		for b := 0; b < blocks; b += panelBlocks {
			n := min(panelBlocks, blocks-b)
			at := b / panelBlocks * span
			// the next tile, in the order of memory: the processor does not foresee accesses that jump from row to row
			next := uintptr(unsafe.Pointer(&p.m.Data[first*stride])) + uintptr(lanes*(stride+at))
			productsOf[active][p.m.Type].pack(&mem[0], &p.m.Data[first*stride+at], apart, n, next)
			p.multiply(mem, first, mask, b, n, from, to)
		}
		r += rows
	}
}

// multiply multiplies a panel of the tile at row first, which holds the columns from block b on, by the vectors from..to.
func (p *product) multiply(mem *panel, first int, mask uint16, b, blocks, from, to int) {
	multiply, act, actStride := productsOf[active][p.m.Type].gemm, p.a.q80, p.a.blocks*int(unsafe.Sizeof(actBlock{}))
	for j := from; j < to; {
		in, firstIn := p.list(p.in, j)
		out, firstOut := p.list(p.out, j)
		n := min(to-j, len(in), len(out))
		a, d := &act[firstIn*p.a.blocks+b], &p.dst[firstOut*p.ldd+first]
		multiply(&mem[0], blocks, (*byte)(unsafe.Pointer(a)), actStride, d, 4*p.ldd, &in[0], &out[0], n, mask, b > 0)
		j += n
	}
}

// list returns the rest of a list from entry j on, and the offset to add to its entries.
func (p *product) list(given []int32, j int) ([]int32, int) {
	if given == nil {
		return ascending[:], p.first + j
	}
	return given[j:], 0
}
