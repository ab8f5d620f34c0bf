package table

import (
	"math"

	"github.com/llmtop/llmtop/profiler/event"
)

// Sums are what the rows of a list have together. Quantiles are of single requests, exact, by nearest rank; NaN where no request has a
// value. Those of TTFT are of warm requests alone, as cold ones are never mixed with them. llmtop's own probes are in none of them.
type Sums struct {
	Counted                   int // rows that are in the sums
	States                    [event.NumStates]int
	Missed                    int // of their targets, one at least
	Prompt, Cached, Generated int
	P50, P99                  [NumFields]float64
}

// sum sums up the rows.
func (l *List) sum(now event.Time) {
	l.Sums = Sums{}
	s := &l.Sums
	for _, r := range l.Rows {
		if r.Probe {
			continue
		}
		s.Counted++
		s.States[r.State]++
		s.Prompt += r.PromptTokens
		s.Cached += r.CachedTokens
		s.Generated += r.Generated
		if Missed(r, now) {
			s.Missed++
		}
	}
	for f := range NumFields {
		s.P50[f], s.P99[f] = math.NaN(), math.NaN()
		switch {
		case f.Kind() == Time && f != Age:
			s.P50[f], s.P99[f] = l.quantiles(f, now)
		case f.Kind() == Speed: // its 99th percentile is the best and says nothing of the worst
			s.P50[f], _ = l.quantiles(f, now)
		}
	}
}

func (l *List) quantiles(f Field, now event.Time) (p50, p99 float64) {
	all := l.samples[:0]
	for _, r := range l.Rows {
		if r.Probe || f == TTFT && r.Cold {
			continue
		}
		if v := f.Value(r, now); v.OK() {
			all = append(all, v.V)
		}
	}
	l.samples = all
	if len(all) == 0 {
		return math.NaN(), math.NaN()
	}
	half := rank(len(all), 50)
	p50 = nth(all, half)
	return p50, nth(all[half:], rank(len(all), 99)-half)
}

// rank is the index of the p-th percentile of n sorted values.
func rank(n, p int) int { return (n*p+99)/100 - 1 }

// nth is the value that has n smaller ones or equals before it, as if the values were sorted; it puts it there, with none larger before
// it and none smaller after (C. A. R. Hoare, Algorithm 65: FIND, 1961).
func nth(v []float64, n int) float64 {
	lo, hi := 0, len(v)-1
	for lo < hi {
		pivot := v[lo+(hi-lo)/2]
		i, j := lo, hi
		for i <= j {
			for v[i] < pivot {
				i++
			}
			for v[j] > pivot {
				j--
			}
			if i <= j {
				v[i], v[j] = v[j], v[i]
				i++
				j--
			}
		}
		switch {
		case n <= j:
			hi = j
		case n >= i:
			lo = i
		default:
			return v[n]
		}
	}
	return v[n]
}
