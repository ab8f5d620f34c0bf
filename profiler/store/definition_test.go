package store

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
)

// requestTimes are the drawn times of one request, in ns. By definition, they determine all its metrics.
type requestTimes struct {
	queue, others, tokenize, prompt, head, other int64
	gaps, paced                                  []int64
	tokens, cached                               int32
}

func drawRequestTimes() *rapid.Generator[requestTimes] {
	return rapid.Custom(func(t *rapid.T) requestTimes {
		span := rapid.Int64Range(0, 40*ms)
		c := requestTimes{
			queue: span.Draw(t, "queue"), others: span.Draw(t, "paced by others"), tokenize: span.Draw(t, "tokenize"), prompt: span.Draw(t, "prompt"),
			head: span.Draw(t, "head"), other: span.Draw(t, "other"), tokens: rapid.Int32Range(1, 40).Draw(t, "tokens"),
		}
		c.cached = rapid.Int32Range(0, c.tokens-1).Draw(t, "cached")
		for range rapid.IntRange(0, 30).Draw(t, "gaps") {
			c.gaps = append(c.gaps, span.Draw(t, "gap"))
			c.paced = append(c.paced, rapid.OneOf(rapid.Just(int64(0)), span).Draw(t, "paced"))
		}
		return c
	})
}

// play emits the request's events, and checks a snapshot before its end.
func (c *requestTimes) play(rt *rapid.T, p *session, id event.RequestID) {
	p.state(0, id, event.StateQueued, nil)
	p.stage(id, event.StageQueue, c.queue, 0)
	p.stage(id, event.StagePacedByOthers, c.others, 0)
	p.state(0, id, event.StateDispatched, nil)
	p.stage(id, event.StageTokenize, c.tokenize, c.tokens)
	p.stage(id, event.StagePrompt, c.prompt, c.tokens-c.cached)
	p.stage(id, event.StageFirst, c.head, 1)
	p.token(c.other, id, 1)
	for i, gap := range c.gaps {
		p.stage(id, event.StagePace, c.paced[i], 1)
		p.token(gap, id, 1)
	}
	if err := checkSnapshot(p.store.Snapshot()); err != nil {
		rt.Fatal(err)
	}
	p.state(0, id, event.StateFinished, &event.Outcome{Prompt: int(c.tokens), Cached: int(c.cached), Generated: len(c.gaps) + 1})
}

// checkReading compares a reading in s, or per s, with the expected value; NaN and infinity mean absent.
func checkReading(rt *rapid.T, name string, got event.Reading, x float64) {
	rt.Helper()
	if absent := math.IsNaN(x) || math.IsInf(x, 0) || x == 0 && !got.OK(); absent != !got.OK() || (!absent && math.Abs(got.V-x) > 1e-9*x+1e-12) {
		rt.Fatalf("%s = %+v, want %v", name, got, x)
	}
}

func total(list []int64) (sum int64) {
	for _, v := range list {
		sum += v
	}
	return sum
}

// TestMetricsFollowTheirDefinitions compares every metric of random requests with its definition.
func TestMetricsFollowTheirDefinitions(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		p := newSession()
		p.engine(event.CapQueue | event.CapStages)
		var all metric.Histogram
		var generated float64
		for i, c := range rapid.SliceOfN(drawRequestTimes(), 1, 6).Draw(rt, "requests") {
			c.play(rt, p, event.RequestID(i+1))
			r := p.store.Snapshot().Requests[0]
			ttft := float64(c.queue+c.others+c.tokenize+c.prompt+c.head+c.other) / 1e9
			decode, n, first := float64(total(c.gaps))/1e9, float64(len(c.gaps)+1), 1. // first: tokens at its moment
			for i := 0; i < len(c.gaps) && c.gaps[i]+c.paced[i] == 0; i++ {
				first++
			}
			checkReading(rt, "TTFT", r.TTFT, ttft)
			checkReading(rt, "STIL", r.STIL, float64(c.queue)/1e9)
			checkReading(rt, "paced", r.Paced, float64(total(c.paced))/1e9)
			checkReading(rt, "E2EL", r.E2EL, ttft+decode)
			checkReading(rt, "decode time", r.Decode, decode)
			checkReading(rt, "TPOT", r.TPOT, decode/(n-first))
			checkReading(rt, "decode rate", r.DecodeRate, (n-first)/decode)
			checkReading(rt, "TPS", r.TPS, n/(ttft+decode))
			checkReading(rt, "overall", r.Overall, (float64(c.tokens)+n)/(ttft+decode))
			if c.prompt > 0 {
				checkReading(rt, "prefill rate", r.PrefillRate, float64(c.tokens-c.cached)/(float64(c.prompt)/1e9))
			}
			if other := r.Parts[len(r.Parts)-1]; int64(other.Dur) != c.other {
				rt.Fatalf("other is %v, want %d ns", other.Dur, c.other)
			}
			if err := checkRequest(r); err != nil {
				rt.Fatal(err)
			}
			for _, gap := range c.gaps {
				all.Record(gap, 1)
			}
			generated += n
		}
		p.now += event.Time(2 * sec)
		s := p.store.Snapshot()
		if got, want := s.Latency.Of[ITL][metric.Session], all.Summary(); got != want {
			rt.Fatalf("ITL %+v, want %+v", got, want)
		}
		checkReading(rt, "TTPS", s.Throughput.SessionTTPS, generated/(float64(s.Now-s.Started)/1e9))
		if err := checkSnapshot(s); err != nil {
			rt.Fatal(err)
		}
	})
}
