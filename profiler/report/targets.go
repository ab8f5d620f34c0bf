package report

import (
	"fmt"
	"strings"
	"time"
)

// Targets are what a request is held against, in s; 0 is no target.
type Targets struct {
	Name string
	TTFT float64
	TPOT float64
	E2EL float64
}

// Profiles are targets for kinds of use: talking to somebody, speech, and work that nobody waits for. The TPOT of 50 ms is 20 tokens/s, faster
// than people read; that of 200 ms is 5 tokens/s.
var Profiles = []Targets{
	{"interactive", 0.100, 0.050, 0},
	{"real-time", 0.050, 0.050, 0},
	{"batch", 0, 0.200, 0},
}

// ParseTargets reads the name of a profile, or targets of one's own: "ttft=100ms,tpot=50ms,e2el=2s".
func ParseTargets(words string) (Targets, error) {
	for _, p := range Profiles {
		if p.Name == words {
			return p, nil
		}
	}
	out := Targets{Name: words}
	for part := range strings.SplitSeq(words, ",") {
		name, value, _ := strings.Cut(part, "=")
		d, err := time.ParseDuration(value)
		if err != nil || d <= 0 {
			return out, fmt.Errorf("%q: must be interactive, real-time, batch, or targets like ttft=100ms,tpot=50ms,e2el=2s", words)
		}
		switch name {
		case "ttft":
			out.TTFT = d.Seconds()
		case "tpot":
			out.TPOT = d.Seconds()
		case "e2el":
			out.E2EL = d.Seconds()
		default:
			return out, fmt.Errorf("%q: there are targets for ttft, tpot and e2el", name)
		}
	}
	return out, nil
}

// Compliance is the share of requests that met each target, 0 to 1; null where there is no target. A request that failed, was cancelled or has no
// such number met none.
type Compliance struct {
	TTFT Number `json:"ttft_share"`
	TPOT Number `json:"tpot_share"`
	E2EL Number `json:"e2el_share"`
	All  Number `json:"all_share"`
}

// tally counts requests that met targets.
type tally struct {
	targets                        Targets
	requests, ttft, tpot, e2el, ok int
}

// add judges a request, nil for one of which nothing is known, and says whether it met every target. One of a single token has no TPOT to meet.
func (t *tally) add(q *Request) bool {
	t.requests++
	if q == nil || q.State != "finished" {
		return false
	}
	meets := func(n Number, target float64, count *int) bool {
		if target > 0 && !(n.OK() && n.V <= target) {
			return false
		}
		*count++
		return true
	}
	tpot := q.TPOT
	if q.Generated == 1 {
		tpot = Measured(0)
	}
	all := meets(q.TTFT, t.targets.TTFT, &t.ttft)
	all = meets(tpot, t.targets.TPOT, &t.tpot) && all
	all = meets(q.E2EL, t.targets.E2EL, &t.e2el) && all
	if all {
		t.ok++
	}
	return all
}

func (t *tally) compliance() Compliance {
	share := func(n int, target float64) Number {
		if target <= 0 || t.requests == 0 {
			return Number{}
		}
		return Measured(float64(n) / float64(t.requests))
	}
	return Compliance{
		TTFT: share(t.ttft, t.targets.TTFT), TPOT: share(t.tpot, t.targets.TPOT), E2EL: share(t.e2el, t.targets.E2EL),
		All: share(t.ok, max(t.targets.TTFT, t.targets.TPOT, t.targets.E2EL)),
	}
}
