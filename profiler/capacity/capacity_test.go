package capacity

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/llmtop/llmtop/profiler/event/eventtest"
)

// model is a simulated engine whose requests arrive at random.
type model interface {
	idle() float64                                  // s of a request without others
	met(rate float64, n int, rng *rand.Rand) []bool // of n requests
}

// queue serves each request in a fixed time in one of its slots. A request meets the target if it waits less.
type queue struct {
	slots                       int
	service, target, burstiness float64
}

func (q queue) idle() float64 { return q.service }

func (q queue) met(rate float64, n int, rng *rand.Rand) []bool {
	free, at, out := make([]float64, q.slots), 0.0, make([]bool, n)
	for i := range out {
		next := 0
		for s := range free {
			if free[s] < free[next] {
				next = s
			}
		}
		begin := max(at, free[next])
		free[next], out[i] = begin+q.service, begin-at <= q.target
		gap := rng.ExpFloat64()
		if q.burstiness < 1 && rng.Float64() < 1-q.burstiness { // bursts: most gaps are short, the others long
			gap *= 0.1
		} else if q.burstiness < 1 {
			gap *= (1 - 0.1*(1-q.burstiness)) / q.burstiness
		}
		at += gap / rate
	}
	return out
}

// batch generates a token of every open request in a step, which takes longer the more there are. A request meets the
// target if its mean time per token is at most that.
type batch struct {
	step, each, target float64
	tokens             int
}

func (b batch) idle() float64 { return (b.step + b.each) * float64(b.tokens) }

func (b batch) met(rate float64, n int, rng *rand.Rand) []bool {
	type open struct {
		i, left int
		began   float64
	}
	arrivals, at := make([]float64, n), 0.0
	for i := range arrivals {
		arrivals[i] = at
		at += rng.ExpFloat64() / rate
	}
	out, running, now := make([]bool, n), []open(nil), 0.0
	for next := 0; (next < n || len(running) > 0) && len(running) < 2000; { // more: all others miss
		if len(running) == 0 {
			now = max(now, arrivals[next])
		}
		for ; next < n && arrivals[next] <= now; next++ {
			running = append(running, open{next, b.tokens, now})
		}
		now += b.step + b.each*float64(len(running))
		rest := running[:0]
		for _, q := range running {
			if q.left--; q.left > 0 {
				rest = append(rest, q)
			} else {
				out[q.i] = (now-q.began)/float64(b.tokens) <= b.target
			}
		}
		running = rest
	}
	return out
}

func share(met []bool) float64 {
	var t Trial
	t.judge(Run{Met: met}, 0)
	return t.Share
}

// kneeOf returns the highest rate at which Required of the requests meet the target, from long runs.
func kneeOf(m model, high float64) float64 {
	rng, low := rand.New(rand.NewPCG(9, 9)), 0.0
	for range 14 {
		rate := (low + high) / 2
		if met := m.met(rate, 40_000, rng); share(met[len(met)/5:]) >= Required {
			low = rate
		} else {
			high = rate
		}
	}
	return low
}

// models are engines of which searches are hard for different reasons: slow requests, long queues, bursts, and slots that
// share their speed, so that all requests meet the target for a while and none for another.
var models = map[string]model{
	"one slot":                queue{1, 0.5, 0.5, 1},
	"four slots":              queue{4, 1, 0.2, 1},
	"fast":                    queue{1, 0.01, 0.05, 1},
	"16 slots":                queue{16, 2, 0.5, 1},
	"16 slots, bursts":        queue{16, 2, 0.5, 0.5},
	"a long queue":            queue{1, 0.5, 2, 1},
	"eight slow slots":        queue{8, 3, 1, 1},
	"a batch":                 batch{0.01, 0.001, 0.03, 64},
	"a batch of long answers": batch{0.02, 0.0005, 0.04, 128},
	"a batch that slows down": batch{0.005, 0.002, 0.02, 32},
}

const searches = 200

// TestSearchFindsTheKnee searches the capacity of engines whose knee is known: in at least 90 % of the searches of each it
// is within the printed interval.
func TestSearchFindsTheKnee(t *testing.T) {
	eventtest.SkipUnderRace(t)
	for name, m := range models {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			knee, found, above := kneeOf(m, 64/m.idle()), 0, 0
			var widths []float64
			for i := range searches {
				rng := rand.New(rand.NewPCG(uint64(i), 1))
				r, err := Search(m.idle(), 0, func(rate float64, n int) (Run, error) {
					met := m.met(rate, n, rng)
					return Run{Met: met[Ramp(n):], Sent: rate}, nil
				})
				if err != nil || r.Low == nil || r.Complete != (r.Above != nil) || r.Client || r.Knee() == nil || r.Knee().Verdict != Holds {
					t.Fatalf("%+v, %v", r, err)
				}
				high := math.Inf(1)
				if r.Above != nil {
					high = *r.Above
				}
				if *r.Low > knee {
					above++
				} else if knee <= high {
					found++
				}
				widths = append(widths, high / *r.Low)
			}
			slices.Sort(widths)
			t.Logf("knee %.3g: %d of %d intervals hold it, %d are above it; median width %.2f, 98th percentile %.2f",
				knee, found, searches, above, widths[len(widths)/2], widths[len(widths)*98/100])
			if float64(found) < 0.9*float64(searches) {
				t.Errorf("%d of %d intervals hold the knee", found, searches)
			}
			if widths[len(widths)/2] > 2.5 || math.IsInf(widths[len(widths)*98/100], 1) {
				t.Errorf("the intervals are too wide")
			}
		})
	}
}

// outcomes returns n requests, of which some missed.
func outcomes(n, missed int) []bool {
	met := slices.Repeat([]bool{true}, n)
	for i := range missed {
		met[i*n/missed] = false
	}
	return met
}

// knee holds up to a rate, and the client sends up to another.
func knee(holds, sends float64, calls *int) func(float64, int) (Run, error) {
	return func(rate float64, n int) (Run, error) {
		*calls++
		missed := 0
		if rate > holds {
			missed = n
		}
		return Run{Met: outcomes(n, missed), Failed: missed, Sent: rate, Late: rate > sends}, nil
	}
}

func TestSearchEnds(t *testing.T) {
	calls := 0
	r, err := Search(0.5, 0, knee(0, 100, &calls))
	if err != nil || r.Rate != nil || !r.Complete || r.Client || r.Knee() != nil || calls > 8 {
		t.Errorf("an engine that meets the targets at no rate: %+v, %v, %d runs", r, err, calls)
	}
	r, err = Search(0.5, 0, knee(1000, 10, &calls))
	if err != nil || r.Rate == nil || *r.Rate < 9 || *r.Rate > 10 || !r.Client || r.Above != nil {
		t.Errorf("a client that sends 10/s: %+v, %v", r, err)
	}
	r, err = Search(0.5, 0, knee(1e300, 1e301, &calls))
	if err != nil || r.Complete || r.Above != nil || r.Low != nil || len(r.Trials) != maxShort {
		t.Errorf("an engine without a limit: %+v, %v", r, err)
	}
	stop := errors.New("stop")
	r, err = Search(0.5, 0, func(rate float64, n int) (Run, error) {
		if rate > 2 {
			return Run{}, stop
		}
		return knee(10, 100, &calls)(rate, n)
	})
	if !errors.Is(err, stop) || r.Complete || r.Rate == nil || *r.Rate != 2 || r.Low != nil || len(r.Trials) != 2 {
		t.Errorf("ended early: %+v, %v", r, err)
	}
}

// TestFailuresAreResults checks that an engine that refuses requests above a rate has that rate as its capacity.
func TestFailuresAreResults(t *testing.T) {
	calls := 0
	r, err := Search(0.02, 0, knee(100, 1e9, &calls))
	if err != nil || !r.Complete || *r.Low > 100 || *r.Above < 100 || *r.Above > 1.25**r.Low {
		t.Fatalf("%+v, %v", r, err)
	}
	if last := r.Trials[len(r.Trials)-1]; last.Failed != last.Requests || last.Verdict != Fails {
		t.Errorf("%+v", last)
	}
}

// TestConfirmedByLongerRuns checks that a rate that holds by chance in a short run is not the capacity.
func TestConfirmedByLongerRuns(t *testing.T) {
	r, err := Search(0.05, 0, func(rate float64, n int) (Run, error) {
		missed := 0
		if rate > 100 || rate > 50 && n >= 1000 { // only long runs show it
			missed = n / 2
		}
		return Run{Met: outcomes(n, missed), Sent: rate}, nil
	})
	if err != nil || *r.Rate > 50 || *r.Rate < 45 || *r.Above < 50 || *r.Above > 60 {
		t.Errorf("%+v, %v", r, err)
	}
	r, err = Search(0.05, 10, func(rate float64, n int) (Run, error) {
		return Run{Met: outcomes(n, 0), Sent: rate, Late: rate > 40}, nil
	})
	if err != nil || r.Rate == nil || r.Low != nil || r.Complete {
		t.Errorf("too few requests to confirm anything: %+v, %v", r, err)
	}
}

// TestLateRunIsRepeated checks that a run in which the client stood still is measured again.
func TestLateRunIsRepeated(t *testing.T) {
	calls, late := 0, 0
	r, err := Search(0.5, 0, func(rate float64, n int) (Run, error) {
		one, err := knee(10, 1e9, &calls)(rate, n)
		if calls%3 == 2 {
			late++
			one.Late, one.Met = true, outcomes(n, n)
		}
		return one, err
	})
	if err != nil || !r.Complete || r.Client || *r.Rate > 10 || *r.Rate < 9 || late == 0 {
		t.Errorf("%+v, %v, %d late runs", r, err, late)
	}
}

// TestRatesAreRounded checks that rates have no digits that nobody chose.
func TestRatesAreRounded(t *testing.T) {
	for _, rate := range []float64{24.9, 0.123, 4.1, 7.07, 1230, 56.7, 99.9} {
		for _, near := range []float64{rate, math.Nextafter(rate, 0), rate * (1 + 1e-9)} {
			if got := rounded(near); got != rate {
				t.Errorf("%v is rounded to %v", near, got)
			}
		}
	}
	calls := 0
	r, _ := Search(0.013, 0, knee(345.6, 1e9, &calls))
	for i := range r.Trials {
		if text := strconv.FormatFloat(r.Trials[i].Rate, 'g', -1, 64); len(strings.Trim(strings.ReplaceAll(text, ".", ""), "0")) > 3 {
			t.Errorf("rate %s", text)
		}
	}
}

// TestDependence compares the dependence of requests with what it is known to be.
func TestDependence(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, length := range []int{1, 20} {
		sum := 0.0
		for range 200 {
			met := make([]bool, 2000)
			for i := range met {
				if i%length == 0 {
					met[i] = rng.Float64() < 0.9
				} else {
					met[i] = met[i-1]
				}
			}
			sum += dependence(met, share(met)) / 200
		}
		if math.Abs(sum/float64(length)-1) > 0.1 {
			t.Errorf("of runs of %d: %v", length, sum)
		}
	}
	if d := dependence(outcomes(100, 0), 1); d != 1 {
		t.Errorf("without a miss: %v", d)
	}
}

// TestWilson compares the limits with published ones: 95 of 100, 90 % two-sided.
func TestWilson(t *testing.T) {
	low, high := wilson(0.95, 100)
	if math.Abs(low-0.9006) > 0.0005 || math.Abs(high-0.9756) > 0.0005 {
		t.Errorf("95 of 100: %v to %v", low, high)
	}
	if low, _ := wilson(1, minRequests); low < Required {
		t.Errorf("%d of %d: at least %v", minRequests, minRequests, low)
	}
	if low, high := wilson(0, 0); low != 0 || high != 1 {
		t.Errorf("nothing: %v to %v", low, high)
	}
}
