// Package capacity searches the highest request rate at which an engine meets its latency targets.
package capacity

import (
	"cmp"
	"math"
	"slices"
)

// Required is the share of requests that must meet the targets.
const Required = 0.95

// The bounds of a search.
const (
	precision  = 1.1      // the search ends when the lowest rate that fails is at most this many times the highest that holds
	maxTrials  = 24       // runs of a search
	maxRepeats = 3        // runs of one rate whose result is not significant
	tooLow     = 1.0 / 64 // of the first rate: at lower ones the engine does not meet the targets at any useful rate
	z          = 1.645    // of the normal distribution, for one-sided limits of 95 %
)

// Verdict is what a rate does to the targets.
type Verdict string

// The verdicts.
const (
	Holds        Verdict = "holds"        // at least Required of the requests meet them, at 95 % confidence
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
	Low      float64 `json:"met_share_low"` // one-sided limits at 95 % confidence, if the requests are independent
	High     float64 `json:"met_share_high"`
	Sent     float64 `json:"sent_requests_per_s"`
	Goodput  float64 `json:"goodput_requests_per_s"` // Sent x Share
	Verdict  Verdict `json:"verdict"`
}

// Run is one run at a rate.
type Run struct {
	Requests, Met int
	Sent          float64 // requests/s, measured
	Late          bool    // requests were sent so late that the rate was not that of the run
}

// Result is the result of a search.
type Result struct {
	Required float64  `json:"required_share"`
	Rate     *float64 `json:"rate_requests_per_s"`      // the highest that holds; null: none
	Above    *float64 `json:"next_rate_requests_per_s"` // the lowest higher one that does not hold; null: none was found
	Complete bool     `json:"complete"`                 // false: the search was ended early
	Client   bool     `json:"client_limited"`           // the client could not send faster: the capacity may be higher
	Trials   []Trial  `json:"trials"`                   // by rate
}

// Search searches from a rate on. run measures a rate; an error ends the search, and the result has what was measured.
func Search(start float64, run func(rate float64) (Run, error)) (Result, error) {
	r := Result{Required: Required, Trials: []Trial{}}
	low, high, rate := 0.0, math.Inf(1), rounded(start)
	var err error
	for runs := 0; runs < maxTrials && err == nil; {
		trial := Trial{Rate: rate}
		for range maxRepeats {
			var one Run
			if one, err = run(rate); err != nil {
				break
			}
			runs++
			if trial.add(one); trial.Verdict != Inconclusive {
				break
			}
		}
		if trial.Requests == 0 && trial.Verdict == "" {
			break
		}
		r.Trials = append(r.Trials, trial)
		if trial.Verdict == Holds {
			low = rate
		} else {
			high = rate
		}
		switch {
		case math.IsInf(high, 1):
			rate *= 2
		case low == 0 && high <= start*tooLow:
			r.Complete = true
		case low == 0:
			rate /= 2
		case high <= low*precision:
			r.Complete = true
		default:
			rate = math.Sqrt(low * high)
		}
		if rate = rounded(rate); r.Complete {
			break
		}
	}
	slices.SortFunc(r.Trials, func(a, b Trial) int { return cmp.Compare(a.Rate, b.Rate) })
	r.conclude(low)
	return r, err
}

// rounded returns a rate with three significant digits.
func rounded(rate float64) float64 {
	unit := math.Pow(10, math.Floor(math.Log10(rate))-2)
	return math.Round(rate/unit) * unit
}

// conclude sets the rates of the result.
func (r *Result) conclude(low float64) {
	if low > 0 {
		r.Rate = &low
	}
	for i := range r.Trials {
		if t := &r.Trials[i]; t.Rate > low && t.Verdict != Holds {
			r.Above, r.Client = &t.Rate, t.Verdict == Client
			return
		}
	}
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

// add adds a run and judges the trial.
func (t *Trial) add(one Run) {
	n := float64(t.Requests + one.Requests)
	if n > 0 {
		t.Sent = (t.Sent*float64(t.Requests) + one.Sent*float64(one.Requests)) / n
	}
	t.Requests, t.Met = t.Requests+one.Requests, t.Met+one.Met
	t.Low, t.High = wilson(t.Met, t.Requests)
	if t.Requests > 0 {
		t.Share = float64(t.Met) / float64(t.Requests)
	}
	t.Goodput = t.Sent * t.Share
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

// MinRequests is how many requests of a run must be counted at least, so that a run without a miss is significant.
const MinRequests = 60

// wilson returns the one-sided limits of a share by Wilson's score interval.
func wilson(met, of int) (low, high float64) {
	if of == 0 {
		return 0, 1
	}
	n, p := float64(of), float64(met)/float64(of)
	middle, margin := p+z*z/(2*n), z*math.Sqrt(p*(1-p)/n+z*z/(4*n*n))
	return max((middle-margin)/(1+z*z/n), 0), min((middle+margin)/(1+z*z/n), 1)
}
