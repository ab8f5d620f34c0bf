package verdict

import (
	"slices"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
)

// Evidence holds the measurements that the rules check.
type Evidence struct {
	Now    event.Time
	Engine string // engine whose settings remedies name; "": one that llmtop runs

	Request      event.RequestID // newest request with a first token; 0: none
	TTFT         event.Reading   // of that request, s
	Cold         bool
	DeviceStart  bool          // with the start of the device
	Loaded       bool          // TTFT contains a model load
	LoadBefore   time.Duration // model load that was over before the cold request came
	Target       time.Duration
	Given        bool                // somebody has set Target
	TPOT         time.Duration       // target, set by the user; 0: none
	Warm         metric.Distribution // TTFT of warm requests of the last minute, or of all as a server counts it
	Queue        Queued              // of these requests
	ITLs, E2ELs  Judged              // against their targets
	CacheLost    time.Duration       // prefill of the last minute for what a prompt cache could have kept
	CachePrefill time.Duration       // prefill of the last minute
	CacheMissed  int                 // requests that lost it
	CacheWhy     string              // why, of most of it
	CachePlace   string              // where the costliest prompt differs from an earlier one; "": the engine did not reuse the same text
	Slots        int                 // maximum number of concurrent requests; 0: unknown
	Dominant     string              // name of the largest TTFT component: of Request, or of the mean that a server counts
	DomShare     float64             // its share
	DomPerTok    float64             // ns per prompt token
	Prompt       int                 // prompt tokens
	ITL          metric.Distribution // last minute
	Why          *Explanation        // why TTFT is over its target; nil if it is not
	Losses       Losses              // of the last minute
	DecodeLosses Losses              // of these, those of decoding
	Stalls       Losses              // of these, those of stalls
	Running      int                 // requests decoded together
	Pace         float64
	Bandwidth    event.Reading // B/s of weights and KV read while decoding
	Wall         event.Reading // B/s that as many threads as the engine has read from memory
	Recent       *Interval     // what the engine's threads did in the last seconds; nil: not measured
	BusyShare    event.Reading // share of the last 10 s in which forward passes ran
	CPU          event.Reading // of the engine's process, share of all cores
	Threads      int           // of the engine; 0: unknown
	Cores        int           // that it may use; 0: unknown
	MemUsed      event.Reading
	MemTotal     event.Reading
	KV           event.Reading
	Profit       *metric.Profit // of speculative decoding; nil: none
	Layer        int            // most imbalanced layer; -1 without picks
	MaxMean      float64        // of that layer
	Hot          []int          // its hottest experts
	HotShare     float64        // their share of its picks
	Experts      int
	LayerPicks   uint64
	Dropped      uint64
	DroppedKinds string
	Unmeasured   uint64 // requests that began while MaxOpen were open
	MaxOpen      int
	Failed       string // why the engine failed

	Server bool // its requests are not measured, and Served is set
	Served Served
}

// rules check the evidence, each for one topic: false if there is nothing to report. They are in display order for
// verdicts of equal severity.
var rules = []func(*Evidence) (Verdict, bool){
	engineFailed,
	droppedEvents,
	unmeasured,
	ttft,
	queueing,
	promptCache,
	missed,
	servedTTFT,
	queued,
	preempted,
	lostTime,
	tail,
	servedTail,
	decodeSpeed,
	servedSpeed,
	bound,
	speculation,
	experts,
	memory,
	kvFull,
}

// holdTime is how long a verdict stays after its rule stopped firing, so that the list does not flicker.
const holdTime = event.Time(3 * time.Second)

// Judge applies all rules and keeps the result steady: a verdict leaves, and its severity falls, only after holdTime.
// Until then its text says that its numbers are those of a moment ago. The zero value is ready.
type Judge struct {
	held []heldVerdict
}

type heldVerdict struct {
	Verdict
	rule     int
	lastHeld event.Time // when the rule last fired
}

// Outdated is the end of the text of a verdict whose numbers are no longer the current ones.
const Outdated = " (a moment ago)"

// Clone returns a copy with the same state.
func (j *Judge) Clone() Judge { return Judge{held: slices.Clone(j.held)} }

// Judge applies the rules and returns the current verdicts, most severe first.
func (j *Judge) Judge(e *Evidence) []Verdict {
	j.Check(e)
	out := make([]Verdict, len(j.held))
	for i, k := range j.held {
		out[i] = k.Verdict
		out[i].Try = Remedy(e.Engine, k.Try)
		if k.lastHeld < e.Now {
			out[i].Text += Outdated
		}
	}
	return out
}

// Check applies the rules.
func (j *Judge) Check(e *Evidence) {
	for i, r := range rules {
		at := slices.IndexFunc(j.held, func(k heldVerdict) bool { return k.rule == i })
		v, ok := r(e)
		switch {
		case ok && at < 0:
			v.Since = e.Now
			j.held = append(j.held, heldVerdict{v, i, e.Now})
		case ok && (v.Severity >= j.held[at].Severity || e.Now-j.held[at].lastHeld > holdTime):
			if v.Since = e.Now; v.Degrades == j.held[at].Degrades && e.Now-j.held[at].lastHeld <= holdTime {
				v.Since = j.held[at].Since
			}
			j.held[at] = heldVerdict{v, i, e.Now}
		}
	}
	j.held = slices.DeleteFunc(j.held, func(k heldVerdict) bool { return e.Now-k.lastHeld > holdTime || e.Now < k.lastHeld })
	slices.SortStableFunc(j.held, func(a, b heldVerdict) int {
		if a.Severity != b.Severity {
			return int(b.Severity) - int(a.Severity)
		}
		return a.rule - b.rule
	})
}
