package report

import (
	"slices"
	"strconv"
	"strings"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/profiler/store"
)

// Aggregates holds the aggregate metrics of a server over the session.
type Aggregates struct {
	Numbers   []store.ServerNumber `json:"numbers"` // reported ones
	Missing   []string             `json:"missing"` // names of numbers that it does not report
	NotRead   []event.Endpoint     `json:"not_read,omitempty"`
	Latencies []Latency            `json:"times"`
	Parts     Parts                `json:"ttft_components_s"` // means; null if it reports none, or they do not divide TTFT
	Adapters  []string             `json:"lora_adapters,omitempty"`
	Ranks     []event.Rank         `json:"ranks,omitempty"`
	ByModel   []ModelState         `json:"by_model,omitempty"`
	Experts   *ReportedExperts     `json:"expert_ranks,omitempty"`
	Earlier   *ReportedEarlier     `json:"earlier,omitempty"`
	Models    []ReportedModel      `json:"models_in_memory,omitempty"`
}

// ModelState is the state of one of several models of a server, at the end.
type ModelState struct {
	Name    string        `json:"model"`
	Running event.Reading `json:"running"`
	Waiting event.Reading `json:"waiting"`
	KVUsage event.Reading `json:"kv_usage_share"`
	Decode  event.Reading `json:"decode_tokens_per_s"`
}

// ReportedModel is a model in the memory of a server that loads models by itself.
type ReportedModel struct {
	Name    string        `json:"model"`
	Bytes   event.Reading `json:"memory_bytes"`
	GPU     event.Reading `json:"gpu_share"`      // of its memory
	Context event.Reading `json:"context_tokens"` // that a request may use
	Until   event.Reading `json:"until_s"`        // from the end of the report until it is unloaded if it is not used; null: unknown, or Stays
	Stays   bool          `json:"stays"`          // it is never unloaded
}

// ReportedExperts are the picks of experts by the rank that computed them.
type ReportedExperts struct {
	Imbalance event.Reading `json:"imbalance"` // see store.RankLoad
	Layers    []int         `json:"layers"`    // numbers
	Picks     [][]uint64    `json:"picks"`     // [layer][rank]
}

// ReportedEarlier is what a server had counted from its start until llmtop began to watch it.
type ReportedEarlier struct {
	Totals    Numbers // of requests and tokens
	Counts    []named // others
	Latencies []Latency
}

// aggregates converts aggregate metrics; zero for an engine with per-request metrics.
func aggregates(r *store.Aggregates) Aggregates {
	if r.At == 0 {
		return Aggregates{}
	}
	out := Aggregates{Numbers: append([]store.ServerNumber{}, r.Numbers...), Missing: []string{}, Latencies: countedLatencies(r.Histograms)}
	for _, n := range r.NamedReadings() {
		if !n.OK() && r.Number(n.Name) == nil {
			out.Missing = append(out.Missing, n.Name)
		}
	}
	for _, e := range r.Endpoints {
		if e.Reason != "" {
			out.NotRead = append(out.NotRead, e)
		}
	}
	if parts := r.Parts(session); !parts.Apart && !parts.Undivided() {
		for _, p := range parts.Parts {
			out.Parts = append(out.Parts, Part{p.Stage.Component(), nanos(int64(p.Dur))})
		}
	}
	out.Adapters, out.Ranks = r.Adapters, r.Ranks
	for _, m := range r.ByModel {
		out.ByModel = append(out.ByModel, ModelState(m))
	}
	for i := range r.Models {
		out.Models = append(out.Models, reportedModel(&r.Models[i], r.At))
	}
	if load := r.RankLoad; load != nil {
		out.Experts = &ReportedExperts{load.Imbalance(load.Session), load.Layers, slices.Collect(slices.Chunk(load.Session, load.Ranks))}
	}
	out.Earlier = earlier(r.Earlier)
	return out
}

func reportedModel(m *event.LoadedModel, now event.Time) ReportedModel {
	out := ReportedModel{Name: m.Name, Context: optionalNumber(m.Context), Stays: m.Stays}
	if m.Bytes > 0 {
		out.Bytes, out.GPU = event.ReportedValue(float64(m.Bytes)), m.GPUShare()
	}
	if m.Until > now {
		out.Until = nanos(int64(m.Until - now))
	}
	return out
}

// earlier converts what a server had counted before; nil if it is unknown.
func earlier(e *event.Earlier) *ReportedEarlier {
	if e == nil {
		return nil
	}
	out := &ReportedEarlier{Counts: []named{}, Latencies: []Latency{}, Totals: Numbers{list: []named{
		{"finished", e.Finished}, {"failed", e.Failed}, {"prompt_tokens", e.Prompt}, {"cached_tokens", e.Cached}, {"generated_tokens", e.Generated},
	}}}
	for _, n := range e.Counts {
		out.Counts = append(out.Counts, named{n.Name, n.Reading})
	}
	for i := range e.Histograms {
		var b metric.Buckets
		b.Add(&e.Histograms[i])
		if sum := b.Summary(); sum.Count > 0 {
			out.Latencies = append(out.Latencies, Latency{Name: e.Histograms[i].Name, Distribution: newDistribution(sum)})
		}
	}
	return out
}

// notRead lists what is not read, with the reasons.
func notRead(list []event.Endpoint) string {
	var out []string
	for _, n := range list {
		out = append(out, n.Name+" ("+n.Reason+")")
	}
	return strings.Join(out, ", ")
}

// reportedSections returns the tables of numbers and histograms.
func reportedSections(r *Report) []section {
	numbers := section{title: "Aggregate metrics of the server", left: 1, header: []string{"", "session", "max", "last", "origin"}}
	for _, n := range r.Reported.Numbers {
		_, unit := metric.Named(n.Name)
		numbers.rows = append(numbers.rows, []string{n.Name, r.Totals.orMore(n.Name, n.Value, short(n.Value, unit)), short(n.Max, unit), short(n.Last, unit), n.Origin.String()})
	}
	if len(numbers.rows) > 0 {
		numbers.words = []string{"Of the session: means over time, totals of counts, and quotients of totals."}
	}
	if len(r.Reported.Missing) > 0 {
		numbers.words = append(numbers.words, "Not reported: "+strings.Join(r.Reported.Missing, ", ")+".")
	}
	if why := notRead(r.Reported.NotRead); why != "" {
		numbers.words = append(numbers.words, "Not read: "+why+".")
	}
	if len(r.Reported.Adapters) > 0 {
		numbers.words = append(numbers.words, "LoRA adapters: "+strings.Join(r.Reported.Adapters, ", ")+".")
	}
	times := countedSection("Latency reported by the server, whole session", r.Reported.Latencies)
	if len(times.rows) > 0 {
		times.words = []string{countedNote}
	}
	return append([]section{numbers, r.Reported.modelsSection(), r.Reported.byModelSection(), r.Reported.ranksSection(), r.Reported.Experts.section(), times}, r.Reported.Earlier.sections()...)
}

// ranksSection returns the table of data-parallel ranks.
func (r *Aggregates) ranksSection() section {
	s := section{title: "Data-parallel ranks at the end", left: 1, header: []string{"rank", "running", "waiting", "KV cache"}}
	for _, k := range r.Ranks {
		s.rows = append(s.rows, []string{k.Name, short(k.Running, metric.Count), short(k.Waiting, metric.Count), short(k.KVUsage, metric.Percent)})
	}
	return s
}

// byModelSection returns the table of the models of a server that runs several.
func (r *Aggregates) byModelSection() section {
	s := section{title: "Models at the end", left: 1, header: []string{"model", "running", "waiting", "KV cache", "tokens/s"}}
	for _, m := range r.ByModel {
		s.rows = append(s.rows, []string{m.Name, short(m.Running, metric.Count), short(m.Waiting, metric.Count), short(m.KVUsage, metric.Percent), short(m.Decode, metric.Rate)})
	}
	return s
}

// section returns the table of the ranks of experts.
func (x *ReportedExperts) section() section {
	s := section{title: "Experts by rank, whole session", left: 1, header: []string{"rank", "of the picks", "most in layer", "x mean there"}}
	if x == nil || len(x.Picks) == 0 {
		return s
	}
	load := &store.RankLoad{Layers: x.Layers, Ranks: len(x.Picks[0]), Session: slices.Concat(x.Picks...)}
	for rank := range load.Ranks {
		share, layer, most := load.OfRank(load.Session, rank)
		s.rows = append(s.rows, []string{strconv.Itoa(rank), metric.Percent(share), strconv.Itoa(layer), metric.Rate(most)})
	}
	s.words = []string{"Imbalance " + format(x.Imbalance, metric.Rate) + ": the busiest rank of each layer / the mean rank, over all layers; 1 is balanced."}
	return s
}

// modelsSection returns the table of models in memory.
func (r *Aggregates) modelsSection() section {
	s := section{title: "Models in memory at the end", left: 1, header: []string{"model", "memory", "on GPU", "context", "unloaded in"}}
	for _, m := range r.Models {
		until := short(m.Until, metric.Seconds)
		if m.Stays {
			until = "never"
		}
		s.rows = append(s.rows, []string{
			m.Name, short(m.Bytes, metric.Bytes), short(m.GPU, metric.Percent), short(m.Context, metric.Count), until,
		})
	}
	return s
}

// sections returns the tables of what the server had counted before.
func (e *ReportedEarlier) sections() []section {
	if e == nil {
		return nil
	}
	counts := section{title: "Counted by the server before llmtop watched it", left: 1, header: []string{"", "total"}}
	for _, o := range slices.Concat(e.Totals.list, e.Counts) {
		if o.N.OK() {
			_, unit := metric.Named(o.Name)
			counts.rows = append(counts.rows, []string{o.Name, unit(o.N.V)})
		}
	}
	return []section{counts, countedSection("Latency before llmtop watched the server", e.Latencies)}
}

// ttftParts returns the components of the mean TTFT, nil if the server has no TTFT histogram.
func (r *Aggregates) ttftParts() Parts {
	if len(r.Parts) == 0 || r.Parts[len(r.Parts)-1].Name != event.StageNone.Component() {
		return nil
	}
	return r.Parts
}
