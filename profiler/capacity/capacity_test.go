package capacity

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"
)

// queue is an engine with some slots that serve each request in a fixed time; requests arrive at random.
type queue struct {
	slots   int
	service float64 // s
	target  float64 // s until a request begins
	rng     *rand.Rand
}

// run counts the requests that begin within the target, after the first fifth.
func (q *queue) run(rate float64, n int) Run {
	free, at, met, counted := make([]float64, q.slots), 0.0, 0, 0
	for i := range n {
		at += q.rng.ExpFloat64() / rate
		next := 0
		for s := range free {
			if free[s] < free[next] {
				next = s
			}
		}
		begin := max(at, free[next])
		free[next] = begin + q.service
		if i >= n/5 {
			if counted++; begin-at <= q.target {
				met++
			}
		}
	}
	return Run{Requests: counted, Met: met, Sent: rate}
}

// knee returns the rate at which Required of the requests meet the target, from long runs.
func (q *queue) knee() float64 {
	low, high := 0.0, float64(q.slots)/q.service
	for range 30 {
		if rate := (low + high) / 2; func() bool { r := q.run(rate, 200_000); return float64(r.Met) >= Required*float64(r.Requests) }() {
			low = rate
		} else {
			high = rate
		}
	}
	return low
}

// TestSearchFindsTheKnee searches the capacity of queues whose knee is known.
func TestSearchFindsTheKnee(t *testing.T) {
	for seed, q := range []queue{{1, 0.5, 0.5, nil}, {4, 1, 0.2, nil}, {1, 0.01, 0.05, nil}, {16, 2, 0.5, nil}} {
		q.rng = rand.New(rand.NewPCG(uint64(seed), 1))
		knee := q.knee()
		for range 10 {
			runs := 0
			r, err := Search(0.5/q.service, func(rate float64) (Run, error) {
				runs++
				return q.run(rate, 600), nil
			})
			if err != nil || !r.Complete || r.Rate == nil || r.Above == nil || r.Client {
				t.Fatalf("%+v: %+v, %v", q, r, err)
			}
			if *r.Rate < 0.65*knee || *r.Rate > 1.15*knee || *r.Above > precision**r.Rate || runs > maxTrials {
				t.Errorf("%d slots of %v s: capacity %v after %d runs, knee %v", q.slots, q.service, *r.Rate, runs, knee)
			}
			if r.Knee() == nil || r.Knee().Verdict != Holds || r.Knee().Low < Required {
				t.Errorf("knee %+v", r.Knee())
			}
		}
	}
}

// step holds up to a rate, and the client sends up to another.
func step(holds, sends float64, calls *int) func(float64) (Run, error) {
	return func(rate float64) (Run, error) {
		*calls++
		met := 100
		if rate > holds {
			met = 0
		}
		return Run{Requests: 100, Met: met, Sent: rate, Late: rate > sends}, nil
	}
}

func TestSearchEnds(t *testing.T) {
	calls := 0
	r, err := Search(1, step(0, 100, &calls))
	if err != nil || r.Rate != nil || !r.Complete || r.Client || r.Knee() != nil || calls > 8 {
		t.Errorf("an engine that meets the targets at no rate: %+v, %v, %d runs", r, err, calls)
	}
	r, err = Search(1, step(1000, 10, &calls))
	if err != nil || r.Rate == nil || *r.Rate < 9 || *r.Rate > 10 || !r.Client {
		t.Errorf("a client that sends 10/s: %+v, %v", r, err)
	}
	r, err = Search(1, step(1e300, 1e301, &calls))
	if err != nil || r.Complete || r.Above != nil || len(r.Trials) != maxTrials {
		t.Errorf("an engine without a limit: %+v, %v", r, err)
	}
	stop := errors.New("stop")
	r, err = Search(1, func(rate float64) (Run, error) {
		if rate > 2 {
			return Run{}, stop
		}
		return step(10, 100, &calls)(rate)
	})
	if !errors.Is(err, stop) || r.Complete || r.Rate == nil || *r.Rate != 2 || len(r.Trials) != 2 {
		t.Errorf("ended early: %+v, %v", r, err)
	}
}

// TestInconclusive checks that a rate is measured again until its result is significant, and otherwise does not hold.
func TestInconclusive(t *testing.T) {
	calls := map[float64]int{}
	r, err := Search(1, func(rate float64) (Run, error) {
		calls[rate]++
		return Run{Requests: 100, Met: map[bool]int{true: 100, false: 95}[rate < 2], Sent: rate}, nil
	})
	if err != nil || *r.Rate < 1.8 || *r.Rate >= 2 || calls[2] != maxRepeats || calls[1] != 1 {
		t.Errorf("%+v, %v, runs %v", r, err, calls)
	}
	if last := r.Trials[len(r.Trials)-1]; last.Verdict != Inconclusive || last.Requests != 100*maxRepeats || last.Met != 95*maxRepeats {
		t.Errorf("%+v", last)
	}
}

// TestWilson compares the limits with published ones: 95 of 100, 90 % two-sided.
func TestWilson(t *testing.T) {
	low, high := wilson(95, 100)
	if math.Abs(low-0.9006) > 0.0005 || math.Abs(high-0.9756) > 0.0005 {
		t.Errorf("95 of 100: %v to %v", low, high)
	}
	if low, _ := wilson(MinRequests, MinRequests); low < Required {
		t.Errorf("%d of %d: at least %v", MinRequests, MinRequests, low)
	}
	if low, high := wilson(0, 0); low != 0 || high != 1 {
		t.Errorf("nothing: %v to %v", low, high)
	}
}
