package emit

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Columns emits a step for each whole group of columns, as many as lanes, of the argument cols. at is the first column;
// it returns that of the columns that are left. The zero flag reports whether none are. Groups are unrolled by the given
// number of steps, a power of two, and fetch emits code that runs once for as many.
func Columns(name string, lanes, steps int, fetch, step func(at reg.GPVirtual)) (at reg.GPVirtual) {
	at, left := GP64(), Arg("cols")
	XORQ(at, at)
	for ; steps > 0; steps /= 2 {
		loop, end := fmt.Sprint("steps", steps, "of", name), fmt.Sprint("after", steps, "of", name)
		Label(loop)
		SUBQ(Imm(steps*lanes), left)
		JLT(operand.LabelRef(end))
		fetch(at)
		for range steps {
			step(at)
			ADDQ(operand.Imm(uint64(lanes)), at)
		}
		JMP(operand.LabelRef(loop))
		Label(end)
		ADDQ(Imm(steps*lanes), left)
	}
	return at
}
