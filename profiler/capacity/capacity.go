// Package capacity searches the highest request rate at which an engine meets its latency targets.
package capacity

import (
	"cmp"
	"math"
	"slices"
	"strconv"
)

// Required is the share of requests that must meet the targets.
const Required = 0.95

// The bounds of a search.
const (
	step     = 1.1      // between two rates of the end of the search
	maxShort = 24       // runs that look for the knee
	maxUp    = 10       // runs that confirm where it fails
	maxLong  = 22       // runs that confirm where it fails and where it holds
	maxLate  = 3        // runs of a rate that the client did not send in time
	tooLow   = 1.0 / 64 // of the first rate: at lower ones the engine does not meet the targets at any useful rate
	z        = 1.645    // of the normal distribution, for one-sided limits of 95 %
)

// The length of runs. A queue that grows, and one that has been long for a while, show only in runs that are long against
// the time that a request takes.
const (
	minRequests = 60   // counted in a run
	longer      = 5    // times as many requests, and as long, are the runs that confirm
	minTime     = 5.0  // s
	shortTimes  = 10   // times of an idle request that a run takes at least
	longTimes   = 64   // of a run that confirms: without a miss, so many that do not depend on each other are significant
	maxRun      = 4000 // requests of a run
	rampShare   = 0.2  // of the requests of a run: its start, when the queue is empty, is not counted
	batches     = 10   // of a run, from whose variance follows how much requests depend on each other
)

// Verdict is what a rate does to the targets.
type Verdict string

// The verdicts.
const (
	Holds        Verdict = "holds"        // at least Required of the requests met them, at 95 % confidence
	Fails        Verdict = "fails"        // fewer meet them, at 95 % confidence
	Inconclusive Verdict = "inconclusive" // more requests are needed
	Client       Verdict = "client"       // the client could not send at this rate: nothing is known of the engine
)

// Trial is one rate with all its requests. Those of the warm-up and of the start of each run are not counted.
type Trial struct {
	Rate     float64 `json:"rate_requests_per_s"`
	Requests int     `json:"requests"`
	Met      int     `json:"met"` // requests that met all targets
	Share    float64 `json:"met_share"`
	Failed   int     `json:"failed"`
	Low      float64 `json:"met_share_low"` // one-sided limits at 95 % confidence, for requests that depend on each other
	High     float64 `json:"met_share_high"`
	Sent     float64 `json:"sent_requests_per_s"`
	Goodput  float64 `json:"goodput_requests_per_s"` // Sent x Share
	Verdict  Verdict `json:"verdict"`
}

// Run is one run at a rate, without its start.
type Run struct {
	Met    []bool  // of each request in the order of sending, whether it met all targets
	Failed int     // requests
	Sent   float64 // requests/s, measured
	Late   bool    // requests were sent so late that the rate was not that of the run
}

// Result is the result of a search. In at least 90 % of searches the true capacity is between Low and Above.
type Result struct {
	Required float64  `json:"required_share"`
	Rate     *float64 `json:"rate_requests_per_s"`      // the highest that holds; null: none
	Low      *float64 `json:"low_requests_per_s"`       // below Rate by the distance of two rates; null: no run confirmed Rate
	Above    *float64 `json:"next_rate_requests_per_s"` // the lowest higher one that fails; null: none was found
	Complete bool     `json:"complete"`                 // false: the search was ended early, or could not confirm an end
	Client   bool     `json:"client_limited"`           // the client could not send faster: the capacity may be higher
	Trials   []Trial  `json:"trials"`                   // by rate
}

// Ramp returns how many of the first requests of a run are not counted.
func Ramp(requests int) int { return int(rampShare * float64(requests)) }

// search is the state of a search.
type search struct {
	idle     float64
	requests int // of a short run; 0: by rate and time
	run      func(rate float64, requests int) (Run, error)
	Result
}

// Search searches the capacity of an engine that takes idle s for a request without others. run sends requests at a rate;
// an error ends the search, and the result has what was measured. requests is their number, 0 to choose it; runs that
// confirm send more.
func Search(idle float64, requests int, run func(rate float64, requests int) (Run, error)) (Result, error) {
	s := search{idle, requests, run, Result{Required: Required, Trials: []Trial{}}}
	low, high, err := s.bracket()
	if low > 0 {
		s.Rate = &low
	}
	if err == nil && low > 0 && !math.IsInf(high, 1) {
		err = s.confirm(low, high)
	}
	slices.SortFunc(s.Trials, func(a, b Trial) int { return cmp.Compare(a.Rate, b.Rate) })
	return s.Result, err
}

// bracket looks for the knee with short runs: a rate at which enough requests meet the targets, and one, step times as
// high at most, at which they do not.
func (s *search) bracket() (low, high float64, err error) {
	start := rounded(1 / (2 * s.idle))
	high = math.Inf(1)
	rate := start
	for range maxShort {
		t, err := s.measure(rate, false)
		if err != nil {
			return low, high, err
		}
		if t.Share >= Required && t.Verdict != Client {
			low = rate
		} else {
			high, s.Client = rate, t.Verdict == Client
		}
		switch {
		case math.IsInf(high, 1):
			rate *= 2
		case low == 0 && high <= start*tooLow && (t.Failed == 0 || t.Met == 0): // a limit of rates may be far below
			s.Complete = true
			return low, high, nil
		case low == 0:
			rate /= 2
		case high <= low*step:
			return low, high, nil
		default:
			rate = math.Sqrt(low * high)
		}
		rate = rounded(rate)
	}
	return low, high, nil
}

// confirm measures rates in longer runs: from high up until one fails, and from low down until one holds.
func (s *search) confirm(low, high float64) error {
	holds, long := 0.0, 0
	for rate := high; long < maxUp && s.Above == nil && !s.Client; {
		t, err := s.measure(rate, true)
		if err != nil {
			return err
		}
		long++
		holds = s.note(t, holds)
		for range 1 + long/4 { // in larger steps after some
			rate = rounded(rate * step)
		}
	}
	for rate := low; long < maxLong && holds == 0; rate = rounded(rate / step) {
		t, err := s.measure(rate, true)
		if err != nil {
			return err
		}
		long++
		holds = s.note(t, holds)
	}
	if holds > 0 {
		least := rounded(holds / step)
		s.Rate, s.Low, s.Complete = &holds, &least, s.Above != nil || s.Client
	}
	return nil
}

// note takes the result of a longer run and returns the highest rate that holds.
func (s *search) note(t *Trial, holds float64) float64 {
	switch t.Verdict {
	case Holds:
		return max(holds, t.Rate)
	case Client:
		s.Client = true
	case Fails:
		if s.Above == nil || t.Rate < *s.Above {
			s.Above = &t.Rate
		}
	}
	return holds
}

// measure runs a rate, again if the client was late, and returns its trial, in place of an earlier one of that rate.
func (s *search) measure(rate float64, long bool) (*Trial, error) {
	t := &Trial{Rate: rate}
	for range maxLate {
		one, err := s.run(rate, s.length(rate, long))
		if err != nil {
			return nil, err
		}
		t.judge(one, s.idle)
		if t.Verdict != Client {
			break
		}
	}
	s.Trials = append(slices.DeleteFunc(s.Trials, func(old Trial) bool { return old.Rate == rate }), *t)
	return t, nil
}

// length returns how many requests a run sends.
func (s *search) length(rate float64, long bool) int {
	factor, times := 1.0, float64(shortTimes)
	if long {
		factor, times = longer, longTimes
	}
	if s.requests > 0 {
		return min(int(factor)*s.requests, max(maxRun, s.requests))
	}
	counted := max(factor*minRequests, rate*max(factor*minTime, times*s.idle))
	return int(min(math.Ceil(counted/(1-rampShare)), maxRun))
}

// rounded returns a rate with three significant digits.
func rounded(rate float64) float64 {
	short, _ := strconv.ParseFloat(strconv.FormatFloat(rate, 'g', 3, 64), 64) // what was formatted can be parsed
	return short
}

// Knee returns the trial of the highest rate that holds, nil if there is none.
func (r *Result) Knee() *Trial {
	for i := range r.Trials {
		if r.Rate != nil && r.Trials[i].Rate == *r.Rate {
			return &r.Trials[i]
		}
	}
	return nil
}

// judge sets the numbers of a trial from a run. idle is the time of a request without others, in s.
func (t *Trial) judge(one Run, idle float64) {
	t.Requests, t.Met, t.Failed, t.Sent = len(one.Met), 0, one.Failed, one.Sent
	for _, met := range one.Met {
		if met {
			t.Met++
		}
	}
	n := float64(t.Requests)
	t.Share = float64(t.Met) / max(n, 1)
	t.Goodput = t.Sent * t.Share
	t.Low, t.High = wilson(t.Share, n/max(dependence(one.Met, t.Share), t.Rate*idle, 1))
	switch {
	case one.Late:
		t.Verdict = Client
	case t.Low >= Required:
		t.Verdict = Holds
	case t.High < Required:
		t.Verdict = Fails
	default:
		t.Verdict = Inconclusive
	}
}

// dependence returns how many successive requests count like one: the variance of the share of batches of requests,
// compared with that of independent ones. Without a miss it is not known, and 1; at least those that an idle engine has
// open at a time share their fate.
func dependence(met []bool, share float64) float64 {
	size := len(met) / batches
	if size == 0 || share <= 0 || share >= 1 {
		return 1
	}
	variance := 0.0
	for batch := range slices.Chunk(met[:size*batches], size) {
		n := 0.0
		for _, ok := range batch {
			if ok {
				n++
			}
		}
		variance += (n/float64(size) - share) * (n/float64(size) - share) / (batches - 1)
	}
	return variance * float64(size) / (share * (1 - share))
}

// wilson returns the one-sided limits of a share of n independent requests by Wilson's score interval.
func wilson(p, n float64) (low, high float64) {
	if n == 0 {
		return 0, 1
	}
	middle, margin := p+z*z/(2*n), z*math.Sqrt(p*(1-p)/n+z*z/(4*n*n))
	return max((middle-margin)/(1+z*z/n), 0), min((middle+margin)/(1+z*z/n), 1)
}
