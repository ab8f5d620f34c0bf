package store

import (
	"slices"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/verdict"
)

// The bounds of the evidence for causes.
const (
	maxUsage    = 512  // samples of the engine's threads: 250 bytes each, 128 KB, 10 s at the highest rate
	maxHosts    = 16   // samples of the machine that causes may need
	maxPasses   = 256  // passes with prompts: 24 bytes each, 6 KB
	maxLate     = 64   // stalls and slow first tokens: 24 bytes each, 1.5 KB
	maxPending  = 1024 // stalls and first tokens whose evidence is not complete: 120 bytes each, 120 KB
	lossSeconds = 60   // seconds of losses: 900 bytes each, 54 KB
)

// evidenceDelay is how long after a stall its evidence may arrive.
const evidenceDelay = event.Time(3 * time.Second)

// causes collects the evidence for lost time, and what was lost.
type causes struct {
	usage   []sample[event.Usage]
	hosts   []sample[event.Host]
	passes  []promptPass
	late    []promptPass // stalls and slow first tokens
	pending []unexplained
	read    float64           // bytes that the engine read since the model was loaded
	recent  *verdict.Interval // the evidenceDelay before the last second's end; nil before the first one

	seconds []lossSecond // ascending; at most lossSeconds
	next    int64        // first second that was not judged
	total   *lossTotals  // nil: no time of requests was observed
}

// lossTotals are the losses of the session, and what prompts take.
type lossTotals struct {
	lossSums
	worst   [verdict.NumCauses]verdict.Explanation // the largest loss of each cause
	prompts promptTimes
}

// lossSums are losses of a time: all, of these those of decoding, and of these those of stalls.
type lossSums struct{ all, decode, stalls verdict.Losses }

// sample is a payload with the time that it covers.
type sample[T any] struct {
	from, to event.Time
	of       *T
}

// promptPass is a forward pass with prompt tokens. req is 0 if unknown.
type promptPass struct {
	from, to event.Time
	req      event.RequestID
}

// lossSecond is what one second took from requests.
type lossSecond struct {
	second int64
	lossSums
	gaps, gapCount int64 // ns, without those of stalls
	prompt         int64 // ns of gaps in which prompts of other requests were processed
	served         int64 // ns of the running requests that a polled server reports, of which no gap is known
}

// unexplained is a stall, or a TTFT over its target, whose evidence may not be complete.
type unexplained struct {
	req      event.RequestID
	index    int // of the late token; 0: the first token
	from, to event.Time
	lost     int64
	absent   string              // picked experts that were not in memory, see absentPicks
	given    verdict.Explanation // counted so far
}

// of returns where the time was lost.
func (u *unexplained) of() loss {
	if u.index > 0 {
		return ofStall
	}
	return ofFirstToken
}

// find returns the index of a second, or where it belongs. It searches from the end: nearly all are the last one.
func (c *causes) find(sec int64) (i int, ok bool) {
	for i = len(c.seconds); i > 0 && c.seconds[i-1].second >= sec; i-- {
		if c.seconds[i-1].second == sec {
			return i - 1, true
		}
	}
	return i, false
}

// at returns the losses of a second; nil if it is more than a minute ago.
func (c *causes) at(sec int64) *lossSecond {
	i, ok := c.find(sec)
	switch {
	case ok:
		return &c.seconds[i]
	case i == 0 && len(c.seconds) == lossSeconds:
		return nil
	case len(c.seconds) == lossSeconds:
		c.seconds, i = slices.Delete(c.seconds, 0, 1), i-1
	}
	c.seconds = slices.Insert(c.seconds, i, lossSecond{second: sec})
	return &c.seconds[i]
}

func secondOf(t event.Time) int64 { return int64(t) / int64(time.Second) }

// totals returns the losses of the session, to add to.
func (c *causes) totals() *lossTotals {
	if c.total == nil {
		c.total = new(lossTotals)
	}
	return c.total
}

// observe adds time of requests in which time may have been lost, of which some was decoding.
func (c *causes) observe(at event.Time, ns, decoding int64) {
	add := func(s *lossSums) {
		s.all.Observed, s.decode.Observed = event.Add(s.all.Observed, ns), event.Add(s.decode.Observed, decoding)
	}
	add(&c.totals().lossSums)
	if w := c.at(secondOf(at)); w != nil {
		add(&w.lossSums)
	}
}

// addGaps adds k gaps.
func (c *causes) addGaps(req event.RequestID, t event.Time, gap int64, k int, stalled bool) {
	all := gap * int64(k)
	c.observe(t, all, all)
	if w := c.at(secondOf(t)); w != nil && !stalled {
		w.gaps, w.gapCount = event.Add(w.gaps, all), w.gapCount+int64(k)
		w.prompt = event.Add(w.prompt, c.promptTime(req, t-event.Time(all), t))
	}
}

// sampled reports whether there are samples of the engine's threads or of its machine.
func (c *causes) sampled() bool { return len(c.usage)+len(c.hosts) > 0 }

// promptTimes are the shortest times that prompts took since the model was loaded: a whole one, and one of its computed
// tokens. The zero value means that no prompt was processed.
type promptTimes struct {
	whole    int64   // ns
	perToken float64 // ns
}

// add adds a prompt of n tokens.
func (p *promptTimes) add(ns int64, n int) {
	perToken := float64(ns) / float64(n)
	if p.whole == 0 {
		*p = promptTimes{ns, perToken}
	}
	p.whole, p.perToken = min(p.whole, ns), min(p.perToken, perToken)
}

// accounts reports whether ns are what a prompt of n tokens takes, and not a slow start: at most twice what others took.
// One of n tokens that takes a fixed time and as much for each token never takes more than the sum.
func (p *promptTimes) accounts(ns int64, n int) bool {
	return p.whole > 0 && float64(ns) <= 2*(float64(p.whole)+p.perToken*float64(n))
}

// loss is where time was lost.
type loss uint8

const (
	ofFirstToken loss = iota
	ofSecond          // of decoding, without stalls
	ofStall
)

// withdrawGaps takes k gaps that turned out to be a stall back from their second. It reports false if that was judged.
func (c *causes) withdrawGaps(req event.RequestID, t event.Time, gap int64, k int) bool {
	sec := secondOf(t)
	i, ok := c.find(sec)
	if !ok || sec < c.next {
		return false
	}
	w, all := &c.seconds[i], gap*int64(k)
	w.gaps, w.gapCount = max(w.gaps-all, 0), max(w.gapCount-int64(k), 0)
	w.prompt = max(w.prompt-c.promptTime(req, t-event.Time(all), t), 0)
	return true
}

// count adds a loss n times, -1 takes it back.
func (c *causes) count(at event.Time, e *verdict.Explanation, n int, of loss) {
	t := c.totals()
	add := func(s *lossSums) {
		s.all.Add(e, n)
		if of >= ofSecond {
			s.decode.Add(e, n)
		}
		if of == ofStall {
			s.stalls.Add(e, n)
		}
	}
	add(&t.lossSums)
	if w := c.at(secondOf(at)); w != nil {
		add(&w.lossSums)
	}
	if n > 0 && e.Lost > t.worst[e.Cause].Lost {
		t.worst[e.Cause] = *e
	}
}

// keepPass keeps a pass with prompt tokens.
func (c *causes) keepPass(at event.Time, dur int64, req event.RequestID) {
	c.passes = push(c.passes, promptPass{at - event.Time(dur), at, req}, maxPasses)
}
