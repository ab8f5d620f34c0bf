package emit

import (
	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Gemv is a kernel that multiplies whole tiles of rows by one vector.
type Gemv struct {
	Name    string
	Lanes   int                   // rows of a tile, one for each lane of a register
	Sum     func() reg.VecVirtual // new register of that width
	Size    int                   // bytes of a block of weights
	Acts    int                   // blocks of 32 activations that it is multiplied by
	Collect bool                  // blocks start with their scale, which is collected ahead
	Before  func(Rows)            // emits code before the first tile; nil: none
	Many    int                   // without Collect: blocks that DoMany multiplies at once; 0: none
	DoMany  func(Step)            // emits the products of Many blocks
}

// Step is what one iteration of a Gemv multiplies: one block of each row of a tile.
type Step struct {
	Rows   Rows
	Act    reg.GPVirtual
	Sum    reg.VecVirtual
	Scales operand.Mem // with Collect: the half floats of the rows
	Next   *Ahead
}

// Emit emits the kernel; do emits the products of a step.
func (g Gemv) Emit(do func(Step)) {
	Kernel(g.Name, GemvSignature, GemvAbout)
	s := Step{Rows: RowsAt("base", "stride", g.Lanes, 0), Act: GP64(), Sum: g.Sum()}
	var scales operand.Mem
	if g.Collect {
		scales = AllocLocal(2 * g.Lanes * Collected)
	}
	dst, tiles, left := Arg("dst"), Arg("tiles"), GP64()
	s.Next = AheadOf(s.Rows.base[0], s.Rows.Stride, g.Lanes, g.Size)
	if g.Before != nil {
		g.Before(s.Rows)
	}
	Label("tile")
	Load(Param("blocks"), left)
	Load(Param("act"), s.Act)
	VXORPS(s.Sum, s.Sum, s.Sum)
	var n, at reg.GPVirtual
	if g.Collect {
		Label("chunk")
		n, at = s.Rows.CollectScales(left, g.Size, scales)
		s.Scales = Mem(at, 0)
	}
	if g.Many > 0 {
		Label("many")
		CMPQ(left, Imm(g.Many))
		JLT(operand.LabelRef("few"))
		g.step(s, g.Many, g.DoMany)
		SUBQ(Imm(g.Many), left)
		JMP(operand.LabelRef("many"))
		Label("few")
		TESTQ(left, left)
		JZ(operand.LabelRef("done"))
	}
	Label("block")
	g.step(s, 1, do)
	DECQ(left)
	if g.Collect {
		ADDQ(Imm(2*g.Lanes), at)
		DECQ(n)
		JNZ(operand.LabelRef("block"))
		TESTQ(left, left)
		JNZ(operand.LabelRef("chunk"))
	} else {
		JNZ(operand.LabelRef("block"))
	}
	Label("done")
	VMOVUPS(s.Sum, Mem(dst, 0))
	ADDQ(Imm(4*g.Lanes), dst)
	skip := GP64() // the row pointers are at the row ends: continue from the last row of this tile
	IMUL3Q(operand.I8(g.Lanes-1), s.Rows.Stride, skip)
	s.Rows.Advance(skip)
	DECQ(tiles)
	JNZ(operand.LabelRef("tile"))
	VZEROUPPER()
	RET()
}

// step emits the products of some blocks of each row, and advances.
func (g Gemv) step(s Step, blocks int, do func(Step)) {
	s.Next = &Ahead{at: s.Next.at, bytes: blocks * s.Next.bytes}
	do(s)
	s.Rows.Advance(Imm(blocks * g.Size))
	s.Next.Advance()
	ADDQ(Imm(blocks*g.Acts*ActSize), s.Act)
}

// CacheLine is the unit of prefetching, in bytes.
const CacheLine = 64

// StreamAhead is how far ahead of their use weights are prefetched that are read in the order of memory, in bytes: two
// pages, since the processor's own prefetchers stop at the end of one.
const StreamAhead = 8192

// Ahead prefetches the next tile of rows, in the order of memory, while a tile is computed. The processor's own
// prefetchers do not foresee the accesses to a tile, which jump from row to row.
type Ahead struct {
	at    reg.GPVirtual
	bytes int // of a step
	lines int // fetched in this step
}

// moreAhead is how much further ahead than the next tile weights are prefetched at most, in bytes: with two large tiles, it
// fits in the second-level cache. The first columns of a tile are spread over it, so that in the order of memory the last
// of them would come too late.
const moreAhead = 128 << 10

// AheadOf returns the tile after the next one of some rows from base on, or the bytes moreAhead behind the next one if that
// is nearer. Each step reads size bytes per row.
func AheadOf(base, stride reg.GPVirtual, rows, size int) *Ahead {
	a := &Ahead{at: GP64(), bytes: rows * size}
	more := GP64()
	IMUL3Q(operand.I8(rows), stride, a.at)
	MOVQ(operand.U32(moreAhead), more)
	CMPQ(a.at, more)
	CMOVQLT(a.at, more)
	ADDQ(base, a.at)
	ADDQ(more, a.at)
	return a
}

// Fetch prefetches up to the given part of a step. Spread over a step, the requests find room in the processor's queue.
func (a *Ahead) Fetch(part, parts int) {
	for ; a.lines*CacheLine*parts < a.bytes*part; a.lines++ {
		PREFETCHT1(Mem(a.at, a.lines*CacheLine))
	}
}

// Advance ends a step.
func (a *Ahead) Advance() {
	ADDQ(Imm(a.bytes), a.at)
	a.lines = 0
}
