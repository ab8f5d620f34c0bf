// Package report turns the measurements of a run into a document: JSON for programs, CSV for spreadsheets, text,
// Markdown and HTML for people.
package report

import (
	"iter"
	goruntime "runtime"
	"time"

	"github.com/klauspost/cpuid/v2"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/profiler/verdict"
)

// SchemaVersion is the version of the JSON document and of docs/report.schema.json. It increases when a field is
// removed or changes its meaning, not when one is added.
const SchemaVersion = 1

// WhyPartial says what a partial report is.
const WhyPartial = "the run was interrupted, or its recording lacks parts"

// Meta holds what a report needs besides the events: the program and its settings.
type Meta struct {
	Version       string            // of llmtop
	Command       string            // arguments of llmtop that repeat the run; "": unknown
	Configuration map[string]string // all settings by flag name
	Partial       bool              // see WhyPartial
	Remote        bool              // the run was, or may have been, on another machine
	Machine       *Machine          // the recorded machine of the run; nil: this one, unless Remote
}

// Report is the document. Times are in s and rates per s; names end in their unit. An absent number is null, and its
// reason is in Absent.
type Report struct {
	SchemaVersion int               `json:"schema_version"`
	Version       string            `json:"version"`
	Started       time.Time         `json:"started"`
	Partial       bool              `json:"partial"`
	Machine       Machine           `json:"machine"`
	Command       string            `json:"command,omitempty"` // arguments of llmtop that repeat the run
	Configuration map[string]string `json:"configuration"`
	Engine        EngineInfo        `json:"engine"`
	Model         *Model            `json:"model"`
	Requests      []Request         `json:"requests"`
	Totals        Totals            `json:"totals"`
	Latencies     Latencies         `json:"percentiles"`                  // measured ones
	Undistributed map[string]string `json:"percentiles_absent,omitempty"` // why latencies that requests have are not in Latencies
	Groups        []Group           `json:"groups"`
	Throughput    Numbers           `json:"throughput"` // rates, of the last 10 s but for those of the session
	KV            KV                `json:"kv"`
	Experts       *Experts          `json:"experts"`
	ExpertCache   *ExpertCache      `json:"expert_cache"` // null for a dense model, or if no picks were counted
	Placement     *Placement        `json:"placement"`    // null for a dense model, or if no picks were counted
	Host          Host              `json:"host"`
	Dropped       map[string]uint64 `json:"lost"`
	Omitted       struct {          // what the limits keep out of the report
		Requests   uint64 `json:"requests"`
		Tokens     uint64 `json:"tokens"`
		Groups     uint64 `json:"groups"`
		Stalls     uint64 `json:"stalls"`
		Unmeasured uint64 `json:"unmeasured,omitempty"` // requests that began while the store measured its maximum: they have no latencies
	} `json:"cut"`
	Warnings    []string          `json:"warnings,omitempty"` // what was lost or not measured well, and how often
	Causes      []Loss            `json:"causes"`
	Verdicts    []verdict.Verdict `json:"verdicts"`
	Reported    Aggregates        `json:"reported,omitzero"`     // what a server reports besides
	Fleet       *Fleet            `json:"fleet,omitempty"`       // null unless several engines were watched
	Ops         *Ops              `json:"ops,omitempty"`         // null if operations were not timed
	Speculation *Speculation      `json:"speculation,omitempty"` // null without speculative decoding
	Bench       *Bench            `json:"bench,omitempty"`       // null if no benchmark was run
}

// Machine is the machine of the run. Unknown fields are null.
type Machine struct {
	OS      *string       `json:"os"`
	Arch    *string       `json:"arch"`
	CPU     *string       `json:"cpu"`
	Cores   *int          `json:"cores"`
	Memory  event.Reading `json:"memory_bytes"`
	Limited bool          `json:"limited"` // a cgroup limits memory or cores
}

// Totals are sums over the session. Numbers that a polled server does not report are absent.
type Totals struct {
	Queued          event.Reading     `json:"queued"`
	Running         event.Reading     `json:"running"`
	Finished        event.Reading     `json:"finished"`
	Cancelled       event.Reading     `json:"cancelled"`
	Failed          event.Reading     `json:"failed"`
	Unseen          event.Reading     `json:"unseen,omitzero"` // requests whose ends were not received; absent: none
	PromptTokens    event.Reading     `json:"prompt_tokens"`
	CachedTokens    event.Reading     `json:"cached_tokens"`
	PaddingTokens   event.Reading     `json:"padding_tokens"`
	GeneratedTokens event.Reading     `json:"generated_tokens"`
	AtLeast         bool              `json:"generated_tokens_at_least,omitempty"` // GeneratedTokens is a lower bound
	PromptAtLeast   bool              `json:"prompt_tokens_at_least,omitempty"`    // some requests did not report theirs
	CachedAtLeast   bool              `json:"cached_tokens_at_least,omitempty"`    // the same
	FinishedSeen    *event.Reading    `json:"finished_at_least,omitempty"`         // a lower bound, if Finished is absent; see store.MissedByPolls
	Steps           event.Reading     `json:"steps"`
	Stalls          event.Reading     `json:"stalls"`
	Duration        event.Reading     `json:"duration_s"`
	Covered         float64           `json:"covered_s,omitempty"` // s of Duration that the counts of a server cover
	TTPS            event.Reading     `json:"ttps"`
	Absent          map[string]string `json:"absent,omitempty"`
	Origin          map[string]string `json:"origin,omitempty"` // origins of the numbers, by name
}

// Group is a LoRA adapter or tenant; "" is the default group.
type Group struct {
	Name      string            `json:"name"`
	Requests  uint64            `json:"requests"`
	Generated uint64            `json:"generated_tokens"`
	TPS       event.Reading     `json:"tps"`
	TTFT      *Distribution     `json:"ttft,omitempty"` // of finished requests that are not cold
	TPOT      *Distribution     `json:"tpot,omitempty"` // of finished requests
	RTT       *Distribution     `json:"rtt,omitempty"`  // round trips between client and server as connections began, of all requests
	Met       event.Reading     `json:"met_share"`      // of finished requests, those that met every target
	Absent    map[string]string `json:"absent,omitempty"`
}

// Loss is what one cause took from requests: a row of the ranking of causes, the largest first.
type Loss struct {
	Key      string        `json:"key"`
	Text     string        `json:"text"`
	Evidence string        `json:"evidence"` // of the largest single loss
	Remedy   string        `json:"remedy"`
	Lost     event.Reading `json:"lost_s"`
	Share    event.Reading `json:"share"`      // of all lost time
	Observed event.Reading `json:"time_share"` // of all time of decoding, pacing and TTFT
	N        uint64        `json:"n"`          // stalls, slow seconds and slow first tokens
}

// losses returns the significant causes of the session.
func losses(s *store.Snapshot) []Loss {
	out := []Loss{}
	for _, l := range s.Losses.Rank(metric.Session) {
		row := &verdict.Causes[l.Cause]
		out = append(out, Loss{
			Key: row.Key, Text: row.Text, Evidence: s.Losses.Worst[l.Cause].Evidence, Remedy: verdict.Remedy(s.Remedied(), row.Remedy),
			Lost: nanos(l.NS), Share: event.DerivedValue(l.Share), Observed: event.DerivedValue(l.Observed), N: l.N,
		})
	}
	return out
}

// Build returns the report of a run from its last snapshot. With store.Options.Keep it has the tokens of all requests.
func Build(meta Meta, s *store.Snapshot) *Report {
	r := &Report{
		SchemaVersion: SchemaVersion, Version: meta.Version, Partial: meta.Partial,
		Started:       s.Wall.Add(-time.Duration(s.Now - s.Started)).UTC().Truncate(time.Millisecond),
		Machine:       machine(s, meta),
		Command:       meta.Command,
		Configuration: meta.Configuration,
		Engine:        engine(s), Model: model(s),
		Totals: totals(s), Latencies: latencies(s), Undistributed: undistributed(s),
		Groups:     []Group{},
		Throughput: rates(s, "throughput"), KV: kv(s), Experts: experts(s), ExpertCache: expertCache(s), Reported: aggregates(&s.Aggregates), Ops: operations(s.Ops), Speculation: speculation(s.Speculation), Host: host(&s.Host),
		Dropped: map[string]uint64{}, Warnings: store.SourceLosses(s),
		Causes:   losses(s),
		Verdicts: append([]verdict.Verdict{}, s.Verdicts...),
	}
	r.Placement = r.Place(nil)
	if r.Configuration == nil {
		r.Configuration = map[string]string{}
	}
	var tokens uint64
	r.Requests, tokens = requests(s)
	all := s.Counts.OmittedRequests + uint64(len(s.Requests)) // the first ones are no longer in Requests
	r.Omitted.Requests, r.Omitted.Tokens = all-min(all, uint64(len(r.Requests))), s.Counts.StampedTokens-tokens
	r.Omitted.Groups, r.Omitted.Unmeasured = s.Counts.OmittedGroups, s.Counts.Unmeasured
	for i := range r.Requests {
		r.Omitted.Stalls += uint64(r.Requests[i].StallsCut)
	}
	for _, g := range s.Counts.Groups {
		out := Group{Name: g.Name, Requests: g.Requests, Generated: g.Generated, TPS: g.TPS, TTFT: distribution(g.TTFT), TPOT: distribution(g.TPOT), RTT: distribution(g.RTT), Met: event.Absent(event.NotReported)}
		if s.Latency.Goodput.Origin != event.NotReported {
			out.Met = g.Met
		}
		explainNumbers(&out)
		r.Groups = append(r.Groups, out)
	}
	for kind, n := range s.Drops {
		r.Dropped[event.Kind(kind).String()] = n
	}
	return r
}

// FromSnapshot returns a report of a moment of a run, without generated text.
func FromSnapshot(meta Meta, s *store.Snapshot) *Report {
	meta.Partial = meta.Partial || s.Counts.Running+s.Counts.Queued > 0
	r := Build(meta, s)
	r.DropText()
	return r
}

// ThisMachine describes this machine without a sample.
func ThisMachine() Machine {
	cores := goruntime.NumCPU()
	return Machine{OS: optionalText(goruntime.GOOS), Arch: optionalText(goruntime.GOARCH), CPU: optionalText(cpuid.CPU.BrandName), Cores: &cores}
}

func machine(s *store.Snapshot, meta Meta) (m Machine) {
	switch {
	case meta.Machine != nil:
		m = *meta.Machine
	case !meta.Remote:
		m = ThisMachine()
	}
	if cores := len(s.Host.Cores); cores > 0 {
		m.Cores = &cores
	}
	m.Memory, m.Limited = s.Host.MemTotal, s.Host.Limited
	return m
}

func totals(s *store.Snapshot) Totals {
	c := s.Totals()
	t := Totals{
		Queued: c.Queued, Running: c.Running,
		Finished: c.Finished, Cancelled: c.Cancelled, Failed: c.Failed, Unseen: c.Unseen,
		PromptTokens: c.Prompt, CachedTokens: c.Cached, PaddingTokens: c.Padding, GeneratedTokens: c.Generated, AtLeast: c.AtLeast && c.Generated.OK(),
		PromptAtLeast: c.PromptAtLeast && c.Prompt.OK(), CachedAtLeast: c.CachedAtLeast && c.Cached.OK(),
		Steps: c.Steps, Stalls: c.Stalls,
		Duration: nanos(int64(s.Now - s.Started)), TTPS: s.Throughput.SessionTTPS,
	}
	if c.FinishedSeen.OK() {
		seen := c.FinishedSeen
		t.FinishedSeen = &seen
	}
	t.Covered = float64(s.Counts.Covered) / 1e9
	explainNumbers(&t)
	return t
}

// DropText removes the generated text from the report, including that of tokens and alternatives.
func (r *Report) DropText() {
	for q := range r.all() {
		q.Text = nil
		for j := range q.Tokens {
			t := &q.Tokens[j]
			t.Text = nil
			for k := range t.Top {
				t.Top[k].Text = ""
			}
		}
	}
	if r.Fleet != nil {
		for i := range r.Fleet.Replicas {
			r.Fleet.Replicas[i].Report.DropText()
		}
	}
}

// Finished returns the requests that finished, in the order in which they were enqueued.
func (r *Report) Finished() (out []Request) {
	for q := range r.all() {
		if q.State == event.StateFinished.String() {
			out = append(out, *q)
		}
	}
	return out
}

// all yields the requests of the session, then those that a benchmark sent to an engine that was loaded again.
func (r *Report) all() iter.Seq[*Request] {
	return func(yield func(*Request) bool) {
		lists := [][]Request{r.Requests}
		if r.Bench != nil {
			lists = append(lists, r.Bench.Cold)
		}
		for _, list := range lists {
			for i := range list {
				if !yield(&list[i]) {
					return
				}
			}
		}
	}
}
