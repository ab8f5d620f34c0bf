package metric

import (
	"math"
	"testing"

	"github.com/llmtop/llmtop/profiler/event"
)

const millisecond = int64(1e6)

// A pass takes 10 ms and 1 ms for each further row; drafts take 2 ms each. Without drafts, a token takes 10 ms.
func shapes(list ...event.PassShape) *event.Speculation {
	s := &event.Speculation{Drafted: make([]uint64, 4), Accepted: make([]uint64, 4), Shapes: list}
	for i := range list {
		p := &list[i]
		p.Dur = int64(p.Passes) * (10 + int64(p.Rows-p.Requests)) * millisecond
		if p.Drafting = p.Drafting || p.Verifies(); p.Drafting {
			s.DraftTime += int64(p.Passes) * 2 * millisecond
			for k := range (p.Rows - p.Requests) / p.Requests {
				s.Drafted[k] += p.Passes * uint64(p.Requests)
			}
			s.Accepted[0] += p.Tokens - p.Passes*uint64(p.Requests)
		}
	}
	return s
}

func TestProfit(t *testing.T) {
	for name, c := range map[string]struct {
		s        *event.Speculation
		gain     float64 // 0: unknown
		plain    uint64
		perPass  float64
		accepted float64
		missing  string
	}{
		// 100 passes of 4 rows: 13 + 2 ms for 3 tokens, which take 30 ms without drafts
		"gain":      {shapes(event.PassShape{Requests: 1, Rows: 4, Passes: 100, Tokens: 300}, event.PassShape{Requests: 1, Rows: 1, Passes: 30, Tokens: 30}), 30. / 15, 30, 3, 2. / 3, ""},
		"loss":      {shapes(event.PassShape{Requests: 1, Rows: 4, Passes: 100, Tokens: 110}, event.PassShape{Requests: 1, Rows: 1, Passes: 30, Tokens: 30}), 11. / 15, 30, 1.1, 1. / 30, ""},
		"modelled":  {shapes(event.PassShape{Requests: 1, Rows: 4, Passes: 100, Tokens: 300}, event.PassShape{Requests: 1, Rows: 3, Passes: 50, Tokens: 100}), 4000. / (1500 + 700), 0, 400. / 150, 250. / 400, ""},
		"two":       {shapes(event.PassShape{Requests: 2, Rows: 8, Passes: 100, Tokens: 600}, event.PassShape{Requests: 2, Rows: 2, Passes: 20, Tokens: 40}), 30. / 18, 20, 3, 2. / 3, ""},
		"of others": {shapes(event.PassShape{Requests: 2, Rows: 8, Passes: 100, Tokens: 600}, event.PassShape{Requests: 1, Rows: 1, Passes: 90, Tokens: 90}), 0, 0, 3, 2. / 3, "no passes without drafts to compare with"},
		// 100 further passes whose drafts came out empty: 12 ms for a token that takes 10
		"empty": {shapes(
			event.PassShape{Requests: 1, Rows: 4, Passes: 100, Tokens: 300}, event.PassShape{Drafting: true, Requests: 1, Rows: 1, Passes: 100, Tokens: 100},
		), 40. / 27, 100, 3, 2. / 3, ""},
		"few": {shapes(event.PassShape{Requests: 1, Rows: 4, Passes: 49, Tokens: 98}, event.PassShape{Requests: 1, Rows: 1, Passes: 30, Tokens: 30}), 0, 30, 2, 1. / 3, "too few passes with drafts"},
	} {
		got := ProfitOf(c.s)
		if c.gain == 0 != !got.Gain.OK() || math.Abs(got.Gain.V-c.gain) > 1e-9 || got.Plain != c.plain || got.Missing != c.missing ||
			math.Abs(got.PerPass.V-c.perPass) > 1e-9 || math.Abs(got.Accepted.V-c.accepted) > 1e-9 {
			t.Errorf("%s: %+v, want gain %v of %d passes, %v per pass, %v accepted, %q", name, got, c.gain, c.plain, c.perPass, c.accepted, c.missing)
		}
	}
	if got := ProfitOf(shapes(event.PassShape{Requests: 1, Rows: 4, Passes: 100, Tokens: 300})); math.Abs(got.DraftShare.V-2./15) > 1e-9 || got.Verify != 1300*millisecond || got.Gain.OK() {
		t.Errorf("without a pass to compare with: %+v", got)
	}
}

// Without passes nothing is known, and nothing is 0.
func TestProfitOfNothing(t *testing.T) {
	got := ProfitOf(new(event.Speculation))
	for name, r := range map[string]event.Reading{"accepted": got.Accepted, "tokens": got.PerPass, "drafts": got.DraftShare, "gain": got.Gain} {
		if r.OK() {
			t.Errorf("%s is %v", name, r)
		}
	}
}
