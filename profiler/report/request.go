package report

import (
	"cmp"
	"slices"
	"strings"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/profiler/verdict"
)

// MaxRequests is how many requests a report has at most. Further ones are counted.
const MaxRequests = 1 << 14

// Request is one request with all its metrics, defined in docs/metrics.md.
type Request struct {
	ID        event.RequestID `json:"id"`
	Replica   string          `json:"replica,omitempty"` // replica that served it, in a fleet
	Label     string          `json:"label"`
	Group     string          `json:"group"`
	Model     string          `json:"model,omitempty"`   // requested model, if it was named
	Choices   int             `json:"choices,omitempty"` // answers that were generated together, if more than one
	State     string          `json:"state"`
	Reason    string          `json:"reason"`
	Cold      bool            `json:"cold"`
	Started   bool            `json:"device_start,omitempty"` // it is cold since it came first after the device started
	Probe     bool            `json:"probe,omitempty"`        // probe of llmtop: not in percentiles and totals of an aggregate-only engine
	Polled    bool            `json:"polled,omitempty"`       // polled from a slot: its tokens are those of the last poll
	Enqueued  event.Reading   `json:"enqueued_s"`             // since the start of the session
	Prompt    event.Reading   `json:"prompt_tokens"`
	Cached    event.Reading   `json:"cached_tokens"`
	Padding   event.Reading   `json:"padding_tokens"`
	Generated int             `json:"generated_tokens"`
	AtLeast   bool            `json:"generated_tokens_at_least,omitempty"` // Generated is a lower bound

	Connect     event.Reading `json:"connect_s"`      // wait for a connection before it was enqueued
	RTT         event.Reading `json:"rtt_s,omitzero"` // of the connection's handshake, if it was seen
	TTFT        event.Reading `json:"ttft_s"`
	STIL        event.Reading `json:"stil_s"`
	Prefill     event.Reading `json:"prefill_s"`
	Decode      event.Reading `json:"decode_s"`
	E2EL        event.Reading `json:"e2el_s"`
	TPOT        event.Reading `json:"tpot_s"`
	Paced       event.Reading `json:"paced_s"`
	Answer      event.Reading `json:"answer_s,omitzero"` // these five: of requests that reason
	Thinking    event.Reading `json:"thinking_s,omitzero"`
	AnswerTPOT  event.Reading `json:"answer_tpot_s,omitzero"`
	Reasoning   event.Reading `json:"reasoning_tokens,omitzero"`
	ReasonRate  event.Reading `json:"reasoning_tokens_per_s,omitzero"`
	Drafted     int           `json:"drafted_tokens,omitempty"`  // by speculative decoding, if the server counts them
	Accepted    int           `json:"accepted_tokens,omitempty"` // of Drafted
	PrefillRate event.Reading `json:"prefill_tokens_per_s"`
	DecodeRate  event.Reading `json:"decode_tokens_per_s"`
	TPS         event.Reading `json:"tps"`
	Overall     event.Reading `json:"overall_tokens_per_s"`

	Absent    map[string]string `json:"absent,omitempty"`
	Parts     Parts             `json:"ttft_components_s"`
	Dominant  *string           `json:"dominant_component"`
	Inferred  bool              `json:"queue_inferred,omitempty"` // STIL is known by Waits only: not in percentiles
	Waits     []Wait            `json:"waits,omitempty"`          // what held it up before its first token, the longest first
	Calls     *Calls            `json:"cuda,omitempty"`           // what the passes of its prompt called of CUDA, if it was counted
	Miss      *CacheMiss        `json:"cache_miss,omitempty"`     // null if a prompt cache could not have kept more, or if it is not known
	Layers    []Layer           `json:"layers"`
	ITL       *Distribution     `json:"itl_s"`
	Slow      *Cause            `json:"ttft_cause"` // why TTFT was over its target; null if it was not
	Stalls    []Stall           `json:"stalls"`
	StallsCut int               `json:"stalls_cut"`
	Text      *string           `json:"text"`
	Tokens    []Token           `json:"tokens"`
	TokensCut uint64            `json:"tokens_cut"`

	stages []store.StageSum // for the CSV of stages; StageNone is "other"
}

// Parts are the TTFT components in display order, "other" last; empty before the first token.
type Parts []Part

// load says whether the components of a cold TTFT hold the model load.
func (p Parts) load() string {
	if slices.ContainsFunc(p, func(c Part) bool { return c.Name == event.StageLoad.String() }) {
		return "model load included"
	}
	return "without the model load"
}

// Part is one TTFT component.
type Part struct {
	Name string
	Time event.Reading
}

// MarshalJSON writes an object, or null if there are no parts.
func (p Parts) MarshalJSON() ([]byte, error) {
	if len(p) == 0 {
		return []byte("null"), nil
	}
	var all []member
	for _, part := range p {
		all = append(all, member{part.Name, part.Time})
	}
	return writeMembers(all...)
}

// total returns the sum of the components in s, and the longest one.
func (p Parts) total() (sum float64, longest Part) {
	for _, part := range p {
		if sum += part.Time.V; part.Time.V > longest.Time.V {
			longest = part
		}
	}
	return sum, longest
}

// Layer is the prefill time of one layer.
type Layer struct {
	Attention event.Reading `json:"attention_s"`
	Router    event.Reading `json:"router_s"`
	Experts   event.Reading `json:"experts_s"`
}

// Stall is a gap far above the median.
type Stall struct {
	Index int           `json:"index"`
	At    event.Reading `json:"t_s"` // since the request was enqueued
	Gap   event.Reading `json:"gap_s"`
	Cause
}

// Cause is why time was lost, a row of verdict.Causes.
type Cause struct {
	Cause    string           `json:"cause"` // key
	Text     string           `json:"text"`
	Evidence string           `json:"evidence"`
	Lost     event.Reading    `json:"lost_s"`
	Explains event.Reading    `json:"explained_s"`          // of the lost time
	Request  *event.RequestID `json:"by_request,omitempty"` // whose prompt was processed, if known
}

func cause(x *verdict.Explanation) *Cause {
	if x == nil {
		return nil
	}
	c := &Cause{Cause: x.Cause.String(), Text: verdict.Causes[x.Cause].Text, Evidence: x.Evidence, Lost: nanos(x.Lost), Explains: nanos(x.Explains)}
	if x.By != 0 {
		c.Request = &x.By
	}
	return c
}

// Wait is a part of the time before the first token, with the request that held it up.
type Wait struct {
	Cause   string           `json:"cause"` // key
	Wait    event.Reading    `json:"wait_s"`
	Request *event.RequestID `json:"by_request,omitempty"` // nil: several, or unknown
}

// Token is a token, or several that came with one timestamp.
type Token struct {
	ID       *int32        `json:"id"` // null if the engine does not report ids
	Index    int32         `json:"index"`
	N        int32         `json:"n,omitempty"`         // tokens of the timestamp, if more than one
	Reasons  int32         `json:"reasoning,omitempty"` // of them, reasoning: the first ones
	At       event.Reading `json:"t_s"`                 // since the request was enqueued
	Gap      event.Reading `json:"gap_s"`               // of each token; null for the first
	Handover event.Reading `json:"handover_s,omitzero"` // until its text was handed over, from its time on
	Step     uint64        `json:"step,omitempty"`      // number of the forward pass; 0 unknown
	Text     *string       `json:"text"`
	LogProb  event.Reading `json:"logprob"`
	Top      []Candidate   `json:"top_logprobs"`
	Experts  []uint16      `json:"experts,omitempty"` // picks, layer by layer
	Calls    *Calls        `json:"cuda,omitempty"`    // what its forward pass called of CUDA, if it was counted
}

// Calls is what forward passes called of CUDA.
type Calls struct {
	Launches event.Reading `json:"launches"`
	Graphs   event.Reading `json:"graphs"`
	To       event.Reading `json:"copied_to_gpu_bytes"`
	From     event.Reading `json:"copied_from_gpu_bytes"`
	ToTime   event.Reading `json:"copy_to_gpu_s"`
	FromTime event.Reading `json:"copy_from_gpu_s"`
	Wait     event.Reading `json:"gpu_wait_s"`
	Gap      event.Reading `json:"launch_gap_s"`
	Pass     event.Reading `json:"pass_s"`
}

func calls(c *event.Calls) *Calls {
	if c == nil {
		return nil
	}
	out := Calls(*c)
	for _, r := range []*event.Reading{&out.ToTime, &out.FromTime, &out.Wait, &out.Gap, &out.Pass} {
		r.V /= 1e9
	}
	return &out
}

// Candidate is an alternative for a token.
type Candidate struct {
	ID      int32         `json:"id"`
	Text    string        `json:"text"`
	LogProb event.Reading `json:"logprob"`
}

// requests returns the requests of a snapshot in the order in which they were enqueued, at most MaxRequests, and how many
// of their tokens are listed.
func requests(s *store.Snapshot) (out []Request, tokens uint64) {
	all := slices.Concat(s.Earlier, s.Requests)
	slices.SortFunc(all, func(a, b *store.Request) int {
		return cmp.Or(cmp.Compare(a.Enqueued, b.Enqueued), cmp.Compare(a.ID, b.ID))
	})
	out = make([]Request, 0, min(len(all), MaxRequests))
	for _, r := range all[:cap(out)] {
		q := NewRequest(s, r)
		tokens += uint64(r.Stamped) - q.TokensCut
		out = append(out, q)
	}
	return out, tokens
}

// interval returns the time between two events, one of which is the enqueueing of the request: absent if llmtop was not
// connected then.
func interval(f *store.Request, from, to event.Time) event.Reading {
	if f.MissedStart {
		return event.Absent(event.NotReported)
	}
	return nanos(int64(to - from))
}

// NewRequest returns a request of a snapshot with the tokens that the store has.
func NewRequest(s *store.Snapshot, f *store.Request) Request {
	out := Request{
		ID: f.ID, Label: f.Label, Group: f.Group, State: f.Status(), Reason: f.Reason, Cold: f.Cold, Started: f.DeviceStart, Probe: f.Probe,
		Enqueued: interval(f, s.Started, f.Enqueued),
		Prompt:   optionalNumber(f.PromptTokens), Generated: f.Generated, AtLeast: f.GeneratedAtLeast(), Polled: f.Polled, Model: f.Model, Choices: f.Choices,
		TTFT: f.TTFT, STIL: f.STIL, Inferred: f.QueueInferred(), Prefill: f.Prefill, Decode: f.Decode,
		E2EL: f.E2EL, TPOT: f.TPOT, Paced: f.Paced,
		PrefillRate: f.PrefillRate, DecodeRate: f.DecodeRate, TPS: f.TPS, Overall: f.Overall,
		ITL: distribution(f.ITL), Layers: []Layer{}, Slow: cause(f.Slow), Stalls: []Stall{}, StallsCut: f.Omitted.Stalls, stages: stageRows(f),
	}
	if f.Reasons() {
		out.Answer, out.Thinking, out.AnswerTPOT, out.Reasoning, out.ReasonRate = f.Answer, f.Thinking, f.AnswerTPOT, f.Reasoning, f.ReasoningRate
	}
	if f.Drafted > 0 {
		out.Drafted, out.Accepted = int(f.Drafted), int(f.Accepted)
	}
	if s.Totals().Padding.OK() && !f.Polled {
		out.Padding = event.MeasuredValue(float64(f.PadTokens))
	}
	if f.PromptTokens > 0 && !f.AnyCached {
		out.Cached = event.MeasuredValue(float64(f.CachedTokens))
	}
	explainNumbers(&out)
	for _, p := range f.Parts {
		out.Parts = append(out.Parts, Part{p.Stage.Component(), nanos(int64(p.Dur))})
	}
	if f.Dominant.Share > 0 {
		out.Dominant = optionalText(f.Dominant.Stage.Component())
	}
	for _, w := range f.Waits {
		part := Wait{Cause: w.Cause.String(), Wait: nanos(w.NS)}
		if w.By != 0 {
			part.Request = &w.By
		}
		out.Waits = append(out.Waits, part)
	}
	out.Miss, out.Calls = cacheMiss(f), calls(f.Calls)
	for _, l := range f.Layers {
		out.Layers = append(out.Layers, Layer{nanos(int64(l.Attention)), nanos(int64(l.Router)), nanos(int64(l.Experts))})
	}
	for _, st := range f.Stalls {
		out.Stalls = append(out.Stalls, Stall{st.Index, interval(f, f.Enqueued, st.At), nanos(int64(st.Gap)), *cause(st.Explanation)})
	}
	out.addTokens(f)
	if f.RTT.OK() {
		out.RTT = f.RTT
	}
	out.Connect = event.Absent(event.NotReported)
	if f.Asked != 0 {
		out.Connect = nanos(max(int64(f.Enqueued-f.Asked), 0))
	}
	return out
}

// addTokens sets the tokens, and their joined text unless some are cut.
func (q *Request) addTokens(f *store.Request) {
	all := f.Tokens
	q.Tokens, q.TokensCut = make([]Token, 0, len(all)), uint64(f.Stamped)
	var text strings.Builder
	for i := range all {
		t := &all[i]
		out := Token{Index: int32(max(t.Index, 0)), At: interval(f, f.Enqueued, t.At), Step: t.Step, Text: optionalText(t.Text), Experts: t.Picks, Top: []Candidate{}}
		if t.N > 1 {
			out.N = int32(t.N)
		}
		out.Reasons = t.Reasoning
		if t.ID >= 0 {
			out.ID = &t.ID
		}
		if t.Nth > 0 && t.Gap >= 0 {
			out.Gap = nanos(t.Gap)
		}
		if t.Handover > 0 {
			out.Handover = nanos(int64(t.Handover))
		}
		out.Calls = calls(t.Calls)
		if t.HasLP {
			out.LogProb = event.MeasuredValue(float64(t.LogP))
		}
		for _, top := range t.Top {
			out.Top = append(out.Top, Candidate{top.ID, top.Text, event.MeasuredValue(float64(top.LogP))})
		}
		text.WriteString(t.Text)
		q.Tokens, q.TokensCut = append(q.Tokens, out), q.TokensCut-uint64(t.N)
	}
	if q.TokensCut == 0 && !f.Omitted.Detail {
		q.Text = optionalText(text.String())
	}
}

// stageRows returns the stages of a request in the order in which they ended: the TTFT components with the times of the
// JSON document, "other" after the last one, and the parts of components, summed over layers.
func stageRows(f *store.Request) (rows []store.StageSum) {
	for _, p := range f.Parts {
		row := store.StageSum{Stage: p.Stage, Dur: p.Dur}
		if i := slices.IndexFunc(f.Stages, func(s store.StageSum) bool { return s.Stage == p.Stage }); i >= 0 {
			row.End = f.Stages[i].End
		}
		if p.Stage == event.StageNone {
			row.End = f.First
		}
		rows = append(rows, row)
	}
	for _, s := range f.Stages {
		if s.Stage > event.StageSend {
			rows = append(rows, s)
		}
	}
	slices.SortStableFunc(rows, func(a, b store.StageSum) int { return cmp.Compare(a.End, b.End) })
	return rows
}
