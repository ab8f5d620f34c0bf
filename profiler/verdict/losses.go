package verdict

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
)

// Losses sums what was lost by cause, in ns and in stalls, slow seconds and slow requests.
type Losses struct {
	N        [NumCauses]uint32
	NS       [NumCauses]int64
	Observed int64 // ns of decoding, pacing and TTFT in which it was lost
}

// Add counts an explanation n times: -1 takes it back.
func (s *Losses) Add(e *Explanation, n int) {
	s.N[e.Cause] += uint32(n) // wraps around for -1, as intended
	s.NS[e.Cause] += int64(n) * e.Explains
	s.NS[Unknown] += int64(n) * (e.Lost - e.Explains)
}

// Merge adds the losses of o.
func (s *Losses) Merge(o *Losses) {
	for c := range NumCauses {
		s.N[c] += o.N[c]
		s.NS[c] = event.Add(s.NS[c], o.NS[c])
	}
	s.Observed = event.Add(s.Observed, o.Observed)
}

// Total returns the lost time in ns.
func (s *Losses) Total() (ns int64) {
	for _, n := range s.NS {
		ns = event.Add(ns, n)
	}
	return ns
}

// Share returns the share of the observed time that was lost to a cause; NotYet without observed time.
func (s *Losses) Share(c Cause) event.Reading { return s.ShareOf(s.NS[c]) }

// ShareOf returns ns as a share of the observed time; NotYet without observed time.
func (s *Losses) ShareOf(ns int64) event.Reading {
	if s.Observed <= 0 {
		return event.Absent(event.NotYet)
	}
	return event.DerivedValue(metric.Share(float64(ns), float64(s.Observed)))
}

// Loss is what one cause took, a row of a ranking.
type Loss struct {
	Cause    Cause
	N        uint64  // stalls, slow seconds and slow requests
	NS       int64   // lost ns
	Share    float64 // of the lost time
	Observed float64 // of the observed time
}

// Rank returns the significant losses, the largest first.
func (s *Losses) Rank() (out []Loss) {
	total := s.Total()
	for c := range NumCauses {
		share := s.Share(c)
		if !share.OK() || share.V < LostShare || s.NS[c] < int64(leastLoss) {
			continue
		}
		out = append(out, Loss{c, uint64(s.N[c]), s.NS[c], metric.Share(float64(s.NS[c]), float64(total)), share.V})
	}
	slices.SortStableFunc(out, func(a, b Loss) int { return cmp.Compare(b.NS, a.NS) })
	return out
}

// largest returns the known cause that took most of the lost time; Unknown if no time has one.
func (s *Losses) largest() (top Cause) {
	for c, ns := Unknown+1, int64(0); c < NumCauses; c++ {
		if s.NS[c] > ns {
			top, ns = c, s.NS[c]
		}
	}
	return top
}

// significant returns the known cause that took most time, with its share, if that is at least the limit; otherwise
// Unknown.
func (s *Losses) significant() (top Cause, share float64) {
	if top = s.largest(); top != Unknown {
		share = s.Share(top).V
	}
	if share < LostShare || s.NS[top] < int64(leastLoss) {
		return Unknown, 0
	}
	return top, share
}

// counts lists the lost time by cause, the largest first, with the number of stalls and slow seconds if there are any:
// "other processes 3.20 s (12) · unknown 7.08 ms".
func (s *Losses) counts() string {
	var causes []Cause
	for c := range NumCauses {
		if s.NS[c] > 0 {
			causes = append(causes, c)
		}
	}
	slices.SortStableFunc(causes, func(a, b Cause) int { return cmp.Compare(s.NS[b], s.NS[a]) })
	words := make([]string, len(causes))
	for i, c := range causes {
		words[i] = strings.ReplaceAll(c.String(), "_", " ") + " " + metric.Duration(s.NS[c])
		if s.N[c] > 0 {
			words[i] += fmt.Sprintf(" (%d)", s.N[c])
		}
	}
	return strings.Join(words, " · ")
}
