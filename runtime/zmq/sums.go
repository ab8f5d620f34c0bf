package zmq

import (
	"time"

	"github.com/llmtop/llmtop/profiler/event"
)

// sums are what has come since the last look.
type sums struct {
	blocks          bool // events of blocks have come, ever
	stored, removed int
	cleared         int
	tokens          int // of the blocks that were stored
	passes          int
	took            time.Duration
	garbage         int // ever
}

func (s *sums) add(p *published) {
	if p.pass == nil {
		s.blocks = true
	} else if p.pass.took > 0 {
		s.passes++
		s.took += p.pass.took
	}
	s.stored, s.removed, s.cleared, s.tokens = s.stored+p.stored, s.removed+p.removed, s.cleared+p.cleared, s.tokens+p.tokens
}

// numbers are the sums by name, ascending.
func (s *sums) numbers(passes bool) (out []event.Number) {
	put := func(name string, v float64, from event.Origin) {
		out = append(out, event.Number{Name: name, Reading: event.Reading{V: v, Origin: from}})
	}
	if s.blocks {
		put("kv_blocks_removed", float64(s.removed), event.Reported)
		put("kv_blocks_stored", float64(s.stored), event.Reported)
		put("kv_cache_cleared", float64(s.cleared), event.Reported)
		put("kv_tokens_stored", float64(s.tokens), event.Reported)
	}
	if passes {
		if s.passes > 0 {
			put("pass_mean_s", s.took.Seconds()/float64(s.passes), event.Derived)
		}
		put("passes", float64(s.passes), event.Reported)
	}
	if s.garbage > 0 {
		put("zmq_garbage", float64(s.garbage), event.Measured)
	}
	return out
}
