package otlp

import (
	"math"

	"github.com/llmtop/llmtop/profiler/event"
)

// span holds a span's names, times and the few attributes in facts. All other attributes, prompts and completions among
// them, are skipped while reading.
type span struct {
	trace      [16]byte
	id, parent [8]byte
	name       string
	start, end int64 // Unix ns
	failed     bool
	sender     *resource
	facts
}

// key identifies a span, by its trace and its id.
func (s *span) key() [24]byte { return [24]byte(append(s.trace[:], s.id[:]...)) }

// valid reports whether a span has all mandatory fields.
func (s *span) valid() bool {
	return s.trace != [16]byte{} && s.id != [8]byte{} && s.name != "" && s.start > 0 && s.end >= s.start && event.Time(s.end).Plausible()
}

// resource describes the process that sent a span.
type resource struct {
	service string // service.name
	process string // vllm.process_name
}

// facts holds the span attributes that are used.
type facts struct {
	ttft, e2e, queue, prefill, decode    number // s
	prompt, cached, generated, maxTokens number // tokens

	request, rid, model, module, thread, finish string
}

// number is the value of an attribute that may be missing.
type number struct {
	v     float64
	known bool // false: missing
}

// ns converts seconds to ns.
func (n number) ns() int64 { return int64(math.Round(n.v * 1e9)) }

// field returns where an attribute of a span is kept: as a text, or as a number up to most. Several names may mean the same
// field; nil: it is skipped.
func (f *facts) field(name string) (text *string, n *number, most float64) {
	switch name {
	case "gen_ai.latency.time_to_first_token":
		return nil, &f.ttft, event.MaxRequestTime.Seconds()
	case "gen_ai.latency.e2e":
		return nil, &f.e2e, event.MaxRequestTime.Seconds()
	case "gen_ai.latency.time_in_queue":
		return nil, &f.queue, event.MaxRequestTime.Seconds()
	case "gen_ai.latency.time_in_model_prefill":
		return nil, &f.prefill, event.MaxRequestTime.Seconds()
	case "gen_ai.latency.time_in_model_decode":
		return nil, &f.decode, event.MaxRequestTime.Seconds()
	case "gen_ai.usage.prompt_tokens", "gen_ai.usage.input_tokens":
		return nil, &f.prompt, event.MaxTokens
	case "gen_ai.usage.cached_tokens", "gen_ai.usage.cache_read.input_tokens":
		return nil, &f.cached, event.MaxTokens
	case "gen_ai.usage.completion_tokens", "gen_ai.usage.output_tokens":
		return nil, &f.generated, event.MaxTokens
	case "gen_ai.request.max_tokens":
		return nil, &f.maxTokens, event.MaxTokens
	case "gen_ai.request.id":
		return &f.request, nil, 0
	case "rid":
		return &f.rid, nil, 0
	case "gen_ai.response.model", "gen_ai.request.model":
		return &f.model, nil, 0
	case "module":
		return &f.module, nil, 0
	case "thread_label":
		return &f.thread, nil, 0
	case "gen_ai.response.finish_reasons":
		return &f.finish, nil, 0
	}
	return nil, nil, 0
}

// field is like that of facts, for an attribute of a resource.
func (r *resource) field(name string) (text *string, n *number, most float64) {
	switch name {
	case "service.name":
		return &r.service, nil, 0
	case "vllm.process_name":
		return &r.process, nil, 0
	}
	return nil, nil, 0
}

// value is an attribute's value: text or number. Of a list it is the first element.
type value struct {
	text string
	number
}

// maxName limits names from outside, in characters.
const maxName = 200

// batch holds the spans of one export.
type batch struct {
	spans    []span // at most maxSpans
	rejected int
	why      string // why the first one was rejected
}

// maxSpans limits the spans of one export; exporters send a few hundred. 65,536 of them take 25 MB.
const maxSpans = 1 << 16

// add adds a span, or counts it as rejected.
func (b *batch) add(s *span) {
	why := ""
	switch {
	case !s.valid():
		why = "a span needs ids, a name, and an end not before its start"
	case len(b.spans) >= maxSpans:
		why = "too many spans in one export"
	default:
		b.spans = append(b.spans, *s)
		return
	}
	b.rejected++
	if b.why == "" {
		b.why = why
	}
}
