package store

import (
	"slices"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/profiler/verdict"
)

// judgeSecond explains what a second without its stalls lost, if it was slow: its requests were slower than the limit or
// the session before it, prompts of others were processed, or the engine's threads could not run for much of it. Of a
// polled server, which reports no tokens, only the latter is known: it was lost to all requests that ran.
func judgeSecond(s *state, sec int64) (x verdict.Explanation, slow bool) {
	c := &s.causes
	at, ok := c.find(sec)
	if !ok {
		return x, false
	}
	w := &c.seconds[at]
	traced := w.gapCount > 0
	took := w.gaps
	if !traced {
		took = w.served
	}
	if took <= 0 {
		return x, false
	}
	from := event.Time(sec * int64(second))
	i := c.withoutLate(interval(s, from, from+event.Time(second)), from)
	share := 0.
	if traced {
		share = slowdown(s, sec, float64(w.gaps)/float64(w.gapCount))
	}
	span := i.Span
	if i.Wall = span; span > 0 {
		share = max(share, float64(i.MeasuredLoss())/float64(span))
	} else {
		span = int64(second)
	}
	prompts := float64(w.prompt) / float64(took)
	if share = max(share, prompts); share < verdict.LostShare {
		return x, false
	}
	i.Prompt = int64(prompts * float64(span))
	i.Lost = int64(share * float64(span))
	i.Coarse, i.Whole = false, true // the samples are about this second
	i.Wall = span
	if t := &s.rates.slots[sec%rateSlots]; t.second == sec && sized(s) {
		i.Bandwidth = shareOf(s.readRate(t), s.readBandwidth())
		gpuReads(s, &i.GPU, t)
	}
	x = verdict.Explain(&i)
	x.Lost, x.Explains = int64(share*float64(took)), int64(float64(took)*share*metric.Share(float64(x.Explains), float64(x.Lost)))
	return x, true
}

// withoutLate returns the evidence for a second without the samples of its stalls and slow first tokens, which show the
// causes of these; with them if there are no others.
func (c *causes) withoutLate(i verdict.Interval, from event.Time) verdict.Interval {
	rest := i
	rest.Span, rest.Usage = 0, event.Usage{}
	for k := len(c.usage) - 1; k >= 0 && c.usage[k].to > from; k-- {
		u := &c.usage[k]
		late := slices.ContainsFunc(c.late, func(l promptPass) bool { return l.from < u.to && u.from < l.to })
		if u.from < from+event.Time(second) && !late {
			rest.Span = event.Add(rest.Span, u.of.Interval)
			rest.Usage.Add(u.of)
		}
	}
	if rest.Span == 0 {
		return i
	}
	return rest
}

// slowdown returns the share of a second's decoding that is more than its requests should take: by the target for TPOT,
// else reading speed, or by the session before it.
func slowdown(s *state, sec int64, gap float64) float64 {
	most := second / verdict.ReadingSpeed
	if t := s.targets.TPOT; t > 0 {
		most = float64(t)
	}
	return max(0, 1-most/gap, slower(s, sec))
}

// The seconds that are compared to find out whether the last ones are slower than the session before them.
const (
	recentSeconds, minRecent   = 10, 8
	typicalSeconds, minTypical = 120, 20
	similarKV                  = 2 // times as many cells in use: longer contexts take longer
)

// slower returns the share by which the last ten seconds are slower than the session was with as many requests and about
// as much in the KV cache; 0 if that is not significant.
func slower(s *state, sec int64) float64 {
	series := s.latency.series
	if len(series) == 0 {
		return 0
	}
	now := &series[len(series)-1]
	var recent, typical []float64
	for k := len(series) - 1; k >= 0; k-- {
		p, age := &series[k], sec-int64(series[k].At)/int64(second)
		switch {
		case p.Count == 0 || age < 0 || p.Running != now.Running:
		case age < recentSeconds:
			recent = append(recent, float64(p.P50))
		case age < typicalSeconds && p.KVUsed*similarKV >= now.KVUsed:
			typical = append(typical, float64(p.P50))
		}
		if age >= typicalSeconds {
			break
		}
	}
	if len(recent) < minRecent || len(typical) < minTypical {
		return 0
	}
	slices.Sort(recent)
	slices.Sort(typical)
	// Significant: nearly all of the recent seconds are slower than nearly all of the others.
	low, high := recent[len(recent)/10], typical[len(typical)*9/10]
	if low < high*(1+verdict.SlowerShare) {
		return 0
	}
	return 1 - typical[len(typical)/2]/recent[len(recent)/2]
}
