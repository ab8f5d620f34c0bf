// Package report turns what a run has measured into one document: JSON for programs, CSV for spreadsheets, text for people.
package report

import (
	goruntime "runtime"
	"time"

	"github.com/klauspost/cpuid/v2"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/profiler/verdict"
)

// SchemaVersion is the version of the JSON document, that of docs/report.schema.json. A field that goes away or changes its
// meaning raises it; one that is added does not.
const SchemaVersion = 1

// Meta is what a report says of the program and its run that no event tells.
type Meta struct {
	Version       string            // of llmtop
	Configuration map[string]string // every setting by the name of its flag
	Partial       bool              // the run was interrupted
	Elsewhere     bool              // the run was not, or not for certain, on the machine that this program runs on
}

// Report is the document. Times are in s and rates per s; names end in their unit. A number that is absent is null, and Absent
// beside it says why.
type Report struct {
	SchemaVersion int               `json:"schema_version"`
	Version       string            `json:"version"`
	Started       time.Time         `json:"started"`
	Partial       bool              `json:"partial"`
	Machine       Machine           `json:"machine"`
	Configuration map[string]string `json:"configuration"`
	Engine        Engine            `json:"engine"`
	Model         *Model            `json:"model"`
	Requests      []Request         `json:"requests"`
	Totals        Totals            `json:"totals"`
	Percentiles   Percentiles       `json:"percentiles"`
	Groups        []Group           `json:"groups"`
	Throughput    Throughput        `json:"throughput"`
	KV            KV                `json:"kv"`
	Experts       *Experts          `json:"experts"`
	Placement     *Placement        `json:"placement"` // null: dense, or no picks were counted
	Host          Host              `json:"host"`
	Lost          map[string]uint64 `json:"lost"`
	Cut           Cut               `json:"cut"`
	Verdicts      []Verdict         `json:"verdicts"`
	Reported      *Reported         `json:"reported,omitempty"` // null but for a server that tells of itself in sum
	Fleet         *Fleet            `json:"fleet,omitempty"`    // null but for several engines that were watched together
	Ops           *Ops              `json:"ops,omitempty"`      // null where operations were not timed
	Bench         *Bench            `json:"bench,omitempty"`    // null where no benchmark made the requests
	Compat        *Compat           `json:"compat,omitempty"`   // null where not asked for; that of a benchmark is in Bench
}

// Machine is what the run ran on. What is not known is null.
type Machine struct {
	OS      *string `json:"os"`
	Arch    *string `json:"arch"`
	CPU     *string `json:"cpu"`
	Cores   *int    `json:"cores"`
	Memory  Number  `json:"memory_bytes"`
	Limited bool    `json:"limited"` // memory or cores are a cgroup's limit
}

// Totals are sums over the session. What a server that is watched over HTTP does not tell is absent.
type Totals struct {
	Queued          Number            `json:"queued"`
	Running         Number            `json:"running"`
	Finished        Number            `json:"finished"`
	Cancelled       Number            `json:"cancelled"`
	Failed          Number            `json:"failed"`
	PromptTokens    Number            `json:"prompt_tokens"`
	CachedTokens    Number            `json:"cached_tokens"`
	PaddingTokens   Number            `json:"padding_tokens"`
	GeneratedTokens Number            `json:"generated_tokens"`
	Steps           Number            `json:"steps"`
	Stalls          Number            `json:"stalls"`
	Duration        Number            `json:"duration_s"`
	TTPS            Number            `json:"ttps"`
	Absent          map[string]string `json:"absent,omitempty"`
	Origin          map[string]string `json:"origin,omitempty"` // of a server's numbers, by their names
}

// Group is one LoRA adapter or tenant; "" is the default one.
type Group struct {
	Name      string            `json:"name"`
	Requests  uint64            `json:"requests"`
	Generated uint64            `json:"generated_tokens"`
	TPS       Number            `json:"tps"`
	Absent    map[string]string `json:"absent,omitempty"`
}

// Cut is what a bound has kept out of the report.
type Cut struct {
	Requests uint64 `json:"requests"`
	Tokens   uint64 `json:"tokens"`
	Groups   uint64 `json:"groups"`
}

// Verdict is one finding.
type Verdict struct {
	Severity string `json:"severity"`
	Topic    string `json:"topic"`
	Text     string `json:"text"`
	Evidence string `json:"evidence"`
	Try      string `json:"try"`
}

// Build makes the report of a run out of the last snapshot and of what the collector has kept.
func Build(meta Meta, s *store.Snapshot, c *Collector) *Report {
	r := &Report{
		SchemaVersion: SchemaVersion, Version: meta.Version, Partial: meta.Partial,
		Started:       s.Wall.Add(-time.Duration(s.Now - s.Started)).UTC().Truncate(time.Millisecond),
		Machine:       machine(s, meta.Elsewhere),
		Configuration: meta.Configuration,
		Engine:        engine(s), Model: model(s),
		Totals: totals(s), Percentiles: percentiles(&s.Latency),
		Groups:     []Group{},
		Throughput: throughput(s), KV: kv(s), Experts: experts(s.Experts), Reported: reportedOf(s.Reported), Ops: operations(s.Ops), Host: host(&s.Host),
		Lost:     map[string]uint64{},
		Verdicts: []Verdict{},
	}
	r.Placement = r.Place(nil)
	if r.Configuration == nil {
		r.Configuration = map[string]string{}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	r.Requests = c.build(s)
	r.Host.OverRun = c.usage.overRun()
	r.Cut = Cut{Requests: c.requests, Tokens: c.tokens, Groups: s.Counts.MoreGroups}
	for _, g := range s.Counts.Groups {
		out := Group{Name: g.Name, Requests: g.Requests, Generated: g.Generated, TPS: Number(g.TPS)}
		out.Absent = absences(out)
		r.Groups = append(r.Groups, out)
	}
	for kind, n := range s.Lost {
		r.Lost[event.Kind(kind).String()] = n
	}
	for _, v := range s.Verdicts {
		r.Verdicts = append(r.Verdicts, Verdict{severities[v.Severity], v.Topic, v.Text, v.Evidence, v.Try})
	}
	return r
}

var severities = [...]string{verdict.Good: "good", verdict.Info: "info", verdict.Watch: "watch", verdict.Bad: "bad"}

func machine(s *store.Snapshot, elsewhere bool) Machine {
	m := Machine{Memory: Number(s.Host.MemTotal), Limited: s.Host.Limited}
	cores := len(s.Host.Cores)
	if !elsewhere {
		m.OS, m.Arch, m.CPU = text(goruntime.GOOS), text(goruntime.GOARCH), text(cpuid.CPU.BrandName)
		if cores == 0 {
			cores = goruntime.NumCPU()
		}
	}
	if cores > 0 {
		m.Cores = &cores
	}
	return m
}

func totals(s *store.Snapshot) Totals {
	c := s.Sums()
	t := Totals{
		Queued: Number(c.Queued), Running: Number(c.Running),
		Finished: Number(c.Finished), Cancelled: Number(c.Cancelled), Failed: Number(c.Failed),
		PromptTokens: Number(c.Prompt), CachedTokens: Number(c.Cached), PaddingTokens: Number(c.Padding), GeneratedTokens: Number(c.Generated),
		Steps: Number(c.Steps), Stalls: Number(c.Stalls),
		Duration: nanos(int64(s.Now - s.Started)), TTPS: Number(s.Throughput.SessionTTPS),
	}
	t.Absent = absences(t)
	if s.InSum() {
		t.Origin = origins(t)
	}
	return t
}
