package report

import (
	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/profiler/store"
)

// Point is one point of a benchmark: a concurrency or a request rate, with one prompt kind.
type Point struct {
	Name        string        `json:"name"`
	Concurrency int           `json:"concurrency"`         // 0: open loop
	Rate        event.Reading `json:"rate_requests_per_s"` // null: closed loop
	Runs        []Run         `json:"runs"`                // the repeats, in order
	Tokens      struct {      // sums over the finished requests
		Requests  int           `json:"finished"`
		Prompt    uint64        `json:"prompt_tokens"`
		Cached    event.Reading `json:"cached_tokens"` // of the prompt; null if that of a request is unknown
		Padding   uint64        `json:"padding_tokens"`
		Generated uint64        `json:"generated_tokens"`
	} `json:"tokens"`

	// Distributions over the requests of all runs; null if no request has the number.
	TTFT     *Statistics `json:"ttft_s"` // warm
	ColdTTFT *Statistics `json:"cold_ttft_s"`
	STIL     *Statistics `json:"stil_s"`
	TPOT     *Statistics `json:"tpot_s"`
	ITL      *Statistics `json:"itl_s"` // over tokens
	MaxITL   *Statistics `json:"max_itl_s"`
	E2EL     *Statistics `json:"e2el_s"`

	// Of requests that reason.
	Answer     *Statistics `json:"answer_s,omitempty"`
	Thinking   *Statistics `json:"thinking_s,omitempty"`
	AnswerTPOT *Statistics `json:"answer_tpot_s,omitempty"`
	Reasoning  *Statistics `json:"reasoning_tokens,omitempty"`
	ReasonRate *Statistics `json:"reasoning_tokens_per_s,omitempty"`

	Prefill *Statistics `json:"prefill_tokens_per_s"`
	Decode  *Statistics `json:"decode_tokens_per_s"`
	Overall *Statistics `json:"overall_tokens_per_s"`
	TPS     *Statistics `json:"tps"`

	// Distributions over runs.
	Output   *Statistics `json:"output_tokens_per_s"` // TTPS
	Total    *Statistics `json:"total_tokens_per_s"`  // prompt and output
	Finished *Statistics `json:"finished_requests_per_s"`
	Goodput  *Statistics `json:"goodput_requests_per_s"`

	Groups     []PointGroup   `json:"groups"`            // by name; empty if all requests are in the default group
	Parts      Parts          `json:"ttft_components_s"` // means over the warm requests that have them, otherwise over the cold ones
	Dominant   *string        `json:"dominant_component"`
	Compliance Compliance     `json:"compliance"`
	Profiles   []PointProfile `json:"profiles"` // goodput and compliance for each set of targets

	// Estimates from the model's size, for one request at a time; null for more, which share the weights that are read.
	Bandwidth    event.Reading `json:"decode_bytes_per_s"`    // bytes of weights and KV cache that decode reads
	Compute      event.Reading `json:"prefill_flop_per_s"`    // multiplications and additions of the active weights
	ReadShare    event.Reading `json:"decode_read_share"`     // Bandwidth / Limits.Read
	WeightsShare event.Reading `json:"decode_weights_share"`  // Bandwidth / Limits.Weights
	ComputeShare event.Reading `json:"prefill_compute_share"` // Compute / Limits.Compute

	// SendDelay is how late the requests of an open loop were sent, from the planned time to the first byte: the delay of
	// the sender, of a full queue, and of the connection. Null: closed loop.
	SendDelay *Statistics `json:"late_s"`
	Connect   *Statistics `json:"connect_s,omitempty"` // how long requests over HTTP waited for their connection; null: not over HTTP

	kvLength struct { // tokens in the KV cache halfway through the decoding of each request
		sum float64
		n   int
	}
}

// ApproximateLength begins the names of points and the labels of prompts of random words, of which no tokenizer said how
// many tokens they have.
const ApproximateLength = "about "

// Run is one repeat of a point.
type Run struct {
	Requests   []event.RequestID `json:"requests"`
	Started    event.Reading     `json:"started_s"` // since the start of the session
	Duration   event.Reading     `json:"duration_s"`
	SendDelays []float64         `json:"-"` // of the sender, for each request of an open loop, in s
	Held       []float64         `json:"-"` // of SendDelays, what a full queue of the engine caused
}

// PointGroup is a LoRA adapter or tenant at a point.
type PointGroup struct {
	Name      string      `json:"name"`
	Requests  int         `json:"requests"` // finished requests
	Generated uint64      `json:"generated_tokens"`
	TPS       *Statistics `json:"tps"` // over its requests
}

// PointProfile is how the requests of a point met one set of targets.
type PointProfile struct {
	Targets    string      `json:"targets"`
	Goodput    *Statistics `json:"goodput_requests_per_s"`
	Compliance Compliance  `json:"compliance"`
}

// pointDistribution is one distribution of a point: JSON name, title, field, how to format a value, and how to read it
// from a request; nil if it is not a number of requests.
type pointDistribution struct {
	json, name string
	field      func(*Point) **Statistics
	format     func(float64) string
	of         func(*Request) event.Reading
}

// distributions lists the distributions of a point in display order.
var distributions = []pointDistribution{
	ofLatency(store.TTFT, func(p *Point) **Statistics { return &p.TTFT }),
	ofLatency(store.ColdTTFT, func(p *Point) **Statistics { return &p.ColdTTFT }),
	ofLatency(store.Answer, func(p *Point) **Statistics { return &p.Answer }),
	ofLatency(store.Thinking, func(p *Point) **Statistics { return &p.Thinking }),
	ofLatency(store.STIL, func(p *Point) **Statistics { return &p.STIL }),
	ofLatency(store.TPOT, func(p *Point) **Statistics { return &p.TPOT }),
	ofLatency(store.ITL, func(p *Point) **Statistics { return &p.ITL }),
	ofLatency(store.MaxITL, func(p *Point) **Statistics { return &p.MaxITL }),
	ofLatency(store.AnswerTPOT, func(p *Point) **Statistics { return &p.AnswerTPOT }),
	ofLatency(store.E2EL, func(p *Point) **Statistics { return &p.E2EL }),
	{"late_s", "send delay", func(p *Point) **Statistics { return &p.SendDelay }, metric.Seconds, nil},
	{"connect_s", "connection", func(p *Point) **Statistics { return &p.Connect }, metric.Seconds, func(q *Request) event.Reading { return q.Connect }},
	{"prefill_tokens_per_s", "prefill tokens/s", func(p *Point) **Statistics { return &p.Prefill }, metric.Rate, func(q *Request) event.Reading { return q.PrefillRate }},
	{"decode_tokens_per_s", "decode tokens/s", func(p *Point) **Statistics { return &p.Decode }, metric.Rate, func(q *Request) event.Reading { return q.DecodeRate }},
	{"reasoning_tokens", "reasoning tokens", func(p *Point) **Statistics { return &p.Reasoning }, metric.Count, func(q *Request) event.Reading { return q.Reasoning }},
	{"reasoning_tokens_per_s", "reasoning tokens/s", func(p *Point) **Statistics { return &p.ReasonRate }, metric.Rate, func(q *Request) event.Reading { return q.ReasonRate }},
	{"overall_tokens_per_s", "overall tokens/s", func(p *Point) **Statistics { return &p.Overall }, metric.Rate, func(q *Request) event.Reading { return q.Overall }},
	{"tps", "TPS per request", func(p *Point) **Statistics { return &p.TPS }, metric.Rate, func(q *Request) event.Reading { return q.TPS }},
	{"output_tokens_per_s", "TTPS (output)", func(p *Point) **Statistics { return &p.Output }, metric.Rate, nil},
	{"total_tokens_per_s", "total tokens/s", func(p *Point) **Statistics { return &p.Total }, metric.Rate, nil},
	{"finished_requests_per_s", "requests/s", func(p *Point) **Statistics { return &p.Finished }, metric.Rate, nil},
	{"goodput_requests_per_s", "goodput", func(p *Point) **Statistics { return &p.Goodput }, metric.Rate, nil},
}

func ofLatency(id store.LatencyID, field func(*Point) **Statistics) pointDistribution {
	return pointDistribution{id.Row().JSON, id.Row().Name, field, metric.Seconds, latencyReaders[id]}
}

// latencyReaders read the latencies of a request from a report; nil for latencies of tokens.
var latencyReaders = [store.NumLatencies]func(*Request) event.Reading{
	store.TTFT:       func(q *Request) event.Reading { return onlyIf(!q.Cold, q.TTFT) },
	store.ColdTTFT:   func(q *Request) event.Reading { return onlyIf(q.Cold, q.TTFT) },
	store.Answer:     func(q *Request) event.Reading { return onlyIf(!q.Cold, q.Answer) },
	store.Thinking:   func(q *Request) event.Reading { return q.Thinking },
	store.STIL:       func(q *Request) event.Reading { return onlyIf(!q.Inferred, q.STIL) },
	store.TPOT:       func(q *Request) event.Reading { return q.TPOT },
	store.MaxITL:     func(q *Request) event.Reading { return q.maxITL() },
	store.AnswerTPOT: func(q *Request) event.Reading { return q.AnswerTPOT },
	store.E2EL:       func(q *Request) event.Reading { return q.E2EL },
}

func (q *Request) maxITL() event.Reading {
	if q.ITL == nil {
		return event.Absent(event.Undefined)
	}
	return q.ITL.Max
}

// onlyIf returns a number, or none if it does not apply.
func onlyIf(applies bool, n event.Reading) event.Reading {
	if !applies {
		return event.Absent(event.Undefined)
	}
	return n
}

// Latency returns a latency of the request; absent for latencies of tokens.
func (q *Request) Latency(id store.LatencyID) event.Reading {
	if of := latencyReaders[id]; of != nil {
		return of(q)
	}
	return event.Reading{}
}

// samples collects the values of one metric.
type samples struct {
	all  []float64
	runs [][]float64 // values by run
}

// add adds a number of a run unless it is absent.
func (s *samples) add(run int, n event.Reading) {
	if !n.OK() {
		return
	}
	for len(s.runs) <= run {
		s.runs = append(s.runs, nil)
	}
	s.all, s.runs[run] = append(s.all, n.V), append(s.runs[run], n.V)
}

// pointSamples collects the samples of a point: metrics by JSON name, TPS by group, and the requests that met each set
// of targets.
type pointSamples struct {
	metrics map[string]*samples
	groups  map[string]*samples
	tallies []tally
	good    []samples // good requests/s for each set of targets
}

func (g *pointSamples) add(name string, run int, n event.Reading) {
	if g.metrics[name] == nil {
		g.metrics[name] = &samples{}
	}
	g.metrics[name].add(run, n)
}

// describe computes the numbers of a point from its runs. The first targets are those of goodput; the others are
// profiles.
func (p *Point) describe(byID map[event.RequestID]*Request, targets []Targets) {
	g := pointSamples{metrics: map[string]*samples{}, groups: map[string]*samples{}, good: make([]samples, len(targets))}
	for _, t := range targets {
		g.tallies = append(g.tallies, tally{targets: t.Targets})
	}
	p.Groups, p.Profiles = []PointGroup{}, []PointProfile{}
	for i, run := range p.Runs {
		p.gather(&g, i, run, byID)
	}
	for _, d := range distributions {
		if s := g.metrics[d.json]; s != nil {
			*d.field(p) = s.describe()
		}
	}
	p.describeGroups(byID, g.groups)
	p.describeParts(byID)
	for i := range g.tallies {
		profile := PointProfile{Targets: targets[i].Name, Goodput: g.good[i].describe(), Compliance: g.tallies[i].compliance()}
		if i == 0 {
			p.Goodput, p.Compliance = profile.Goodput, profile.Compliance
		}
		p.Profiles = append(p.Profiles, profile)
	}
}

// gather adds the samples of the i-th run.
func (p *Point) gather(g *pointSamples, i int, run Run, byID map[event.RequestID]*Request) {
	before := p.Tokens
	good := make([]float64, len(g.tallies))
	for _, id := range run.Requests {
		q := byID[id]
		for t := range g.tallies {
			if g.tallies[t].add(q) {
				good[t]++
			}
		}
		if q != nil && q.State == event.StateFinished.String() {
			p.addRequest(g, i, q)
		}
	}
	if d, ok := run.Duration.Positive(); ok {
		generated, prompts := float64(p.Tokens.Generated-before.Generated), float64(p.Tokens.Prompt-before.Prompt)
		g.add("output_tokens_per_s", i, Measured(generated/d))
		g.add("total_tokens_per_s", i, Measured((generated+prompts)/d))
		g.add("finished_requests_per_s", i, Measured(float64(p.Tokens.Requests-before.Requests)/d))
		for t := range good {
			g.good[t].add(i, Measured(good[t]/d))
		}
	}
	for j, v := range run.SendDelays {
		late := Measured(v)
		if q := byID[run.Requests[j]]; q != nil {
			late = Measured(v + q.Connect.V)
		}
		g.add("late_s", i, late)
	}
}

// addRequest adds the samples of a finished request.
func (p *Point) addRequest(g *pointSamples, i int, q *Request) {
	for _, d := range distributions {
		if d.of != nil {
			g.add(d.json, i, d.of(q))
		}
	}
	for _, t := range q.Tokens {
		for range min(max(t.N, 1), store.MaxTokens) { // the store keeps no more than that per timestamp
			g.add("itl_s", i, t.Gap)
		}
	}
	if g.groups[q.Group] == nil {
		g.groups[q.Group] = &samples{}
	}
	g.groups[q.Group].add(i, q.TPS)
	p.kvLength.sum += q.Prompt.V + float64(q.Generated)/2
	p.kvLength.n++
	t := &p.Tokens
	if t.Requests == 0 {
		t.Cached = q.Cached
	} else if t.Cached.V += q.Cached.V; !q.Cached.OK() {
		t.Cached = q.Cached
	}
	t.Requests++
	t.Prompt += uint64(max(q.Prompt.V, 0))
	t.Padding, t.Generated = t.Padding+uint64(max(q.Padding.V, 0)), t.Generated+uint64(max(q.Generated, 0))
}

// SentLate reports whether llmtop did not send the requests of an open loop at their rate: its delay grew, or it stood
// still.
func (p *Point) SentLate() bool {
	late, kept := p.ownDelays()
	return late != nil && (kept < minKept || late.P99.V >= stallMatters)
}

// ownDelays returns how late llmtop sent the requests of an open loop by itself, not held by a full queue, nil if that was
// not measured; and which share of the rate it sent: the lowest of the runs, from how much the delay grew over the run.
func (p *Point) ownDelays() (late *Statistics, kept float64) {
	var own []float64
	rate, ok := p.Rate.Positive()
	kept = 1
	for _, run := range p.Runs {
		began := len(own)
		for i, v := range run.SendDelays {
			if i < len(run.Held) {
				v -= run.Held[i]
			}
			own = append(own, v)
		}
		if n := len(own); ok && n > began+1 && own[n-1]-own[began] > visibleDelay {
			planned := float64(n-began-1) / rate
			kept = min(kept, planned/(planned+own[n-1]-own[began]))
		}
	}
	return Describe(own), kept
}
