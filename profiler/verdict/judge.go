package verdict

import (
	"slices"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
)

// Evidence is what verdicts rest on.
type Evidence struct {
	Now event.Time

	Request    event.RequestID // the newest with a first token; 0 if there is none
	TTFT       event.Reading   // of that request, s
	Cold       bool
	Target     time.Duration
	Dominant   string         // the largest TTFT component in words
	DomShare   float64        // its share of TTFT
	DomPerTok  float64        // ns per prompt token
	Prompt     int            // prompt tokens
	ITL        metric.Summary // last minute
	Stalls     []Cause        // of the last minute, most frequent first
	Decode     event.Reading  // tokens/s while decoding
	Running    int            // requests decoded together
	Pace       float64
	Bandwidth  event.Reading // B/s touched while decoding
	Copy       event.Reading // B/s that the machine copies
	BusyShare  event.Reading // of the last 10 s in which forward passes ran
	CPU        event.Reading // of the engine's process, share of all cores
	MemUsed    event.Reading
	MemTotal   event.Reading
	KV         event.Reading
	Layer      int     // the most lopsided layer; -1 if none is known
	MaxMean    float64 // of that layer
	Hot        []int   // its hottest experts
	HotShare   float64 // their share of its picks
	Experts    int
	LayerPicks uint64
	Lost       uint64
	LostKinds  string
	Failed     string // why the engine failed

	Served *Served // what is known of the requests of a server that tells of them in sum; nil: single requests are known
}

// Cause is one cause of stalls with their number.
type Cause struct {
	Text string
	N    int
}

// rule looks at the evidence for one topic; false if it has nothing to say.
type rule interface {
	judge(*Evidence, *Limits) (Verdict, bool)
}

// rules in the order in which equally severe verdicts are shown.
var rules = []rule{
	engineFailed{},
	lost{},
	ttft{},
	servedTTFT{},
	queued{},
	preempted{},
	tail{},
	servedTail{},
	decodeSpeed{},
	servedSpeed{},
	bound{},
	experts{},
	memory{},
	kvFull{},
	servedKV{},
}

// hold is how long a verdict stays after what caused it has gone, so that the list does not flicker.
const hold = event.Time(3 * time.Second)

// Judge applies all rules and keeps the outcome steady: a verdict leaves only when its topic has been silent for a while, and its
// severity falls no sooner. The zero value is ready.
type Judge struct {
	Limits *Limits // nil: Defaults
	kept   []kept
}

type kept struct {
	Verdict
	rule  int
	since event.Time // when it last held
}

// Clone is a judge that goes on from what this one knows.
func (j *Judge) Clone() Judge { return Judge{Limits: j.Limits, kept: slices.Clone(j.kept)} }

// Judge returns the verdicts that hold, most severe first.
func (j *Judge) Judge(e *Evidence) []Verdict {
	if j.Limits == nil {
		d := Defaults()
		j.Limits = &d
	}
	for i, r := range rules {
		at := slices.IndexFunc(j.kept, func(k kept) bool { return k.rule == i })
		v, ok := r.judge(e, j.Limits)
		switch {
		case ok && at < 0:
			j.kept = append(j.kept, kept{v, i, e.Now})
		case ok && (v.Severity >= j.kept[at].Severity || e.Now-j.kept[at].since > hold):
			j.kept[at] = kept{v, i, e.Now}
		}
	}
	j.kept = slices.DeleteFunc(j.kept, func(k kept) bool { return e.Now-k.since > hold || e.Now < k.since })
	slices.SortStableFunc(j.kept, func(a, b kept) int {
		if a.Severity != b.Severity {
			return int(b.Severity) - int(a.Severity)
		}
		return a.rule - b.rule
	})
	out := make([]Verdict, len(j.kept))
	for i, k := range j.kept {
		out[i] = k.Verdict
	}
	return out
}
