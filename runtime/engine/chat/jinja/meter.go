package jinja

import (
	"context"
	"fmt"
)

// meter counts the work of a template and its nesting, and ends it at the limits. What computes with values needs
// nothing else of the machine.
type meter struct {
	ctx   context.Context
	left  int // remaining work
	beat  int // work since ctx was last checked
	depth int
}

// checkEvery is the work after which ctx is checked again: well below 1 ms.
const checkEvery = 1 << 14

// work counts the work of the template, in bytes created.
func (m *meter) work(n int) {
	if n < 0 || n > m.left {
		panic(failure{fmt.Errorf("%w: it makes more than %d bytes or takes more than %d steps", ErrTooMuch, maxWork, maxWork/stepWork)})
	}
	m.left -= n
	if m.beat += n; m.beat >= checkEvery {
		m.beat = 0
		if m.ctx.Err() != nil {
			panic(failure{context.Cause(m.ctx)})
		}
	}
}

// down enters a nesting level, which up leaves.
func (m *meter) down() {
	if m.depth++; m.depth > maxDepth {
		panic(failure{fmt.Errorf("%w: it goes more than %d levels deep", ErrTooMuch, maxDepth)})
	}
}

func (m *meter) up() { m.depth-- }
