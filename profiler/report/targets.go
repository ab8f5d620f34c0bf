package report

import (
	"fmt"
	"strings"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/store"
)

// Targets are latency targets with the name that they have in reports. A report judges no gaps.
type Targets struct {
	Name string
	store.Targets
}

// Profiles are targets for typical uses: chat, speech, and batch work. A TPOT of 50 ms is 20 tokens/s, faster than
// people read; 200 ms is 5 tokens/s.
var Profiles = []Targets{
	{"interactive", store.Targets{TTFT: 100 * time.Millisecond, TPOT: 50 * time.Millisecond}},
	{"real-time", store.Targets{TTFT: 50 * time.Millisecond, TPOT: 50 * time.Millisecond}},
	{"batch", store.Targets{TPOT: 200 * time.Millisecond, DefaultTTFT: true}},
}

// ParseTargets parses the name of a profile, or targets such as "ttft=100ms,tpot=50ms,e2el=2s".
func ParseTargets(text string) (Targets, error) {
	for _, p := range Profiles {
		if p.Name == text {
			return p, nil
		}
	}
	if !strings.ContainsAny(text, "=<>") {
		return Targets{}, fmt.Errorf("%.60q: must be interactive, real-time, batch, or targets like ttft=100ms,tpot=50ms,e2el=2s", text)
	}
	t, err := store.ParseTargets(text)
	return Targets{text, t}, err
}

// Compliance is the share of requests that met each target, 0 to 1; null without a target. A request that failed, was
// cancelled or lacks the number met none. TPOT is that of store.JudgedTPOT.
type Compliance struct {
	TTFT   event.Reading `json:"ttft_share"`
	Answer event.Reading `json:"answer_share,omitzero"`
	TPOT   event.Reading `json:"tpot_share"`
	E2EL   event.Reading `json:"e2el_share"`
	All    event.Reading `json:"all_share"`
}

// tally counts the requests that met targets.
type tally struct {
	targets                                store.Targets
	requests, ttft, answer, tpot, e2el, ok int
}

// add checks a request, nil for one without data, and reports whether it met every target.
func (t *tally) add(q *Request) bool {
	t.requests++
	if q == nil || q.State != "finished" {
		return false
	}
	meets := func(n event.Reading, target time.Duration, count *int) bool {
		if target > 0 && !(n.OK() && n.V <= target.Seconds()) {
			return false
		}
		*count++
		return true
	}
	tpot := store.JudgedTPOT(event.Reading(q.TPOT), event.Reading(q.Decode), event.Reading(q.E2EL), q.Generated, q.Cold)
	ttft := q.TTFT
	if !ttft.OK() {
		ttft = q.E2EL // the answer was not streamed: its text came with its end
	}
	all := meets(ttft, t.targets.TTFT, &t.ttft)
	all = meets(store.AnswerBy(q.Answer, q.Thinking, q.Reasoning, ttft), t.targets.Answer, &t.answer) && all
	all = meets(tpot, t.targets.TPOT, &t.tpot) && all
	all = meets(q.E2EL, t.targets.E2EL, &t.e2el) && all
	if all {
		t.ok++
	}
	return all
}

// MetWithConnection reports whether a request, nil for one without data, met the targets if TTFT and E2EL begin before its
// connection is opened: one that a server does not accept in time is late for its user.
func (t Targets) MetWithConnection(q *Request) bool {
	if q == nil {
		return false
	}
	waited, wait := *q, q.Connect.V
	waited.TTFT.V, waited.Answer.V, waited.E2EL.V = q.TTFT.V+wait, q.Answer.V+wait, q.E2EL.V+wait
	return (&tally{targets: t.Targets}).add(&waited)
}

func (t *tally) compliance() Compliance {
	share := func(n int, target time.Duration) event.Reading {
		if target <= 0 || t.requests == 0 {
			return event.Reading{}
		}
		return Measured(float64(n) / float64(t.requests))
	}
	return Compliance{
		TTFT: share(t.ttft, t.targets.TTFT), Answer: share(t.answer, t.targets.Answer), TPOT: share(t.tpot, t.targets.TPOT), E2EL: share(t.e2el, t.targets.E2EL),
		All: share(t.ok, max(t.targets.TTFT, t.targets.Answer, t.targets.TPOT, t.targets.E2EL)),
	}
}
