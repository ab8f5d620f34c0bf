package store

import (
	"math"
	"testing"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
)

// TestThinking checks what reasoning adds to a request: tokens come with gaps in ms, "r" is reasoning, "a" the answer.
func TestThinking(t *testing.T) {
	type burst struct {
		gap     int64
		n, mark int32
	}
	answer := func(n int, gap int64) (out []burst) {
		for range n {
			out = append(out, burst{gap, 1, 0})
		}
		return out
	}
	reason := func(n int, gap int64) []burst {
		out := answer(n, gap)
		for i := range out {
			out[i].mark = 1
		}
		return out
	}
	join := func(all ...[]burst) (out []burst) {
		for _, a := range all {
			out = append(out, a...)
		}
		return out
	}
	const none = -1
	for name, c := range map[string]struct {
		tokens                              []burst
		end                                 event.Outcome
		answer, thinking, tpot, count, rate float64 // ms, tokens, tokens/s
	}{
		"reasoning, then the answer": {join(reason(10, 40), answer(6, 20)), event.Outcome{Generated: 16}, 420, 380, 20, 10, 10 / .38},
		"only reasoning":             {reason(10, 40), event.Outcome{Generated: 10}, none, 360, none, 10, none},
		"only an answer":             {answer(10, 40), event.Outcome{Generated: 10}, none, none, none, none, none},
		"reasoning that is hidden":   {answer(10, 40), event.Outcome{Generated: 110, Later: 9, Reasoning: 100}, 40, none, 40, 100, none},
		"the server counts more":     {join(reason(10, 40), answer(6, 20)), event.Outcome{Generated: 64, Reasoning: 40, Answered: 20}, 420, 380, 5, 40, 40 / .38},
		"nobody counts":              {join(reason(10, 40), answer(6, 20)), event.Outcome{Generated: 64, AnyReasoning: true}, 420, 380, none, none, none},
		"a summary of it":            {join(reason(10, 40), answer(6, 20)), event.Outcome{Generated: 506, Reasoning: 500, AnyReasoning: true}, 420, 380, none, 500, none},
		"twice":                      {join(reason(5, 40), answer(5, 10), reason(5, 40), answer(5, 10)), event.Outcome{Generated: 20}, 210, 5*40 - 30 + 4*40 + 10, 10, 10, 10 / .34},
		"in one read":                {[]burst{{50, 4, 4}, {40, 8, 4}, {30, 3, 0}}, event.Outcome{Generated: 15}, 90, 40, 10, 8, 8 / .04},
		"an answer of one token":     {join(reason(4, 40), answer(1, 20)), event.Outcome{Generated: 5}, 180, 140, none, 4, 4 / .14},
	} {
		p := newSession()
		p.engine(event.CapTokens)
		p.state(0, 1, event.StateQueued, nil)
		for _, b := range c.tokens {
			p.emit(b.gap*ms, event.Event{Kind: event.KindToken, Req: 1, N: b.n, Reasoning: b.mark, Index: -1, ID: -1})
		}
		p.state(0, 1, event.StateFinished, &c.end)
		r := p.request(t, 1)
		for _, n := range []struct {
			name string
			got  event.Reading
			want float64
		}{
			{"answer", r.Answer, c.answer / 1e3},
			{"thinking", r.Thinking, c.thinking / 1e3},
			{"TPOT", r.AnswerTPOT, c.tpot / 1e3},
			{"tokens", r.Reasoning, c.count},
			{"rate", r.ReasoningRate, c.rate},
		} {
			if n.got.OK() != (n.want >= 0) || n.got.OK() && math.Abs(n.got.V-n.want) > 1e-9 {
				t.Errorf("%s: %s is %v, want %v", name, n.name, n.got, n.want)
			}
		}
		if name == "twice" && (len(r.Spans) != 2 || r.Spans[1].Stage != event.StageThinking || r.Spans[1].Tokens != 5) {
			t.Errorf("stages %+v", r.Spans)
		}
		l := p.store.Snapshot().Latency
		for id, want := range map[LatencyID]float64{Answer: c.answer, Thinking: c.thinking, AnswerTPOT: c.tpot} {
			if sum := l.Of[id][metric.Session]; (sum.Count == 1) != (want >= 0) {
				t.Errorf("%s: %d samples of %s", name, sum.Count, id.Row().Name)
			}
		}
	}
}

// TestAnswerTarget checks the target for the first token of the answer: TTFT where nothing shows reasoning.
func TestAnswerTarget(t *testing.T) {
	for name, c := range map[string]struct {
		reasoning, answer int
		missed, met       bool
	}{
		"a late answer":      {30, 1, true, false},
		"in time":            {5, 1, false, true},
		"no reasoning":       {0, 3, false, true},
		"no answer, late":    {30, 0, false, false},
		"no answer, in time": {3, 0, false, false},
	} {
		targets, err := ParseTargets("answer=200ms")
		if err != nil || targets.String() != "answer=200ms" {
			t.Fatal(targets, err)
		}
		p := newSessionWithTargets(targets)
		p.engine(event.CapTokens)
		p.state(0, 1, event.StateQueued, nil)
		for i := range c.reasoning + c.answer {
			e := event.Event{Kind: event.KindToken, Req: 1, N: 1, Index: -1, ID: -1}
			if i < c.reasoning {
				e.Reasoning = 1
			}
			p.emit(10*ms, e)
		}
		running := p.store.Snapshot()
		if late := running.Requests[0].Misses(running.Now).Has(MissedAnswer); late != (c.missed || name == "no answer, late") {
			t.Errorf("%s, running: missed %v", name, late)
		}
		p.state(0, 1, event.StateFinished, &event.Outcome{Generated: c.reasoning + c.answer})
		s := p.store.Snapshot()
		if r := s.Requests[0]; r.Misses(s.Now).Has(MissedAnswer) != c.missed || r.met() != c.met {
			t.Errorf("%s: missed %v, met %v", name, r.Misses(s.Now), r.met())
		}
	}
}
