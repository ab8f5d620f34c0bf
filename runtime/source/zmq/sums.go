package zmq

import (
	"time"

	"github.com/llmtop/llmtop/profiler/event"
)

// sums are totals since the last call of Numbers.
type sums struct {
	blocks          bool // block events were received, ever
	stored, removed int
	cleared         int
	tokens          int // of the stored blocks
	passes          int
	took            time.Duration
	malformed       int // messages
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

// numbers returns the sums, ascending by name.
func (s *sums) numbers(passes bool) (out []event.NamedReading) {
	put := func(name string, v float64, from event.Origin) {
		out = append(out, event.NamedReading{Name: name, Reading: event.Reading{V: v, Origin: from}})
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
	if s.malformed > 0 {
		put("zmq_garbage", float64(s.malformed), event.Measured)
	}
	return out
}
