package otlp

import (
	"math"

	"github.com/llmtop/llmtop/profiler/clean"
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

// numbers returns the field for a numeric attribute, and its maximum. Several names may mean the same field.
func (f *facts) numbers(name string) (at *number, most float64) {
	switch name {
	case "gen_ai.latency.time_to_first_token":
		return &f.ttft, event.MaxRequestTime.Seconds()
	case "gen_ai.latency.e2e":
		return &f.e2e, event.MaxRequestTime.Seconds()
	case "gen_ai.latency.time_in_queue":
		return &f.queue, event.MaxRequestTime.Seconds()
	case "gen_ai.latency.time_in_model_prefill":
		return &f.prefill, event.MaxRequestTime.Seconds()
	case "gen_ai.latency.time_in_model_decode":
		return &f.decode, event.MaxRequestTime.Seconds()
	case "gen_ai.usage.prompt_tokens", "gen_ai.usage.input_tokens":
		return &f.prompt, event.MaxTokens
	case "gen_ai.usage.cached_tokens", "gen_ai.usage.cache_read.input_tokens":
		return &f.cached, event.MaxTokens
	case "gen_ai.usage.completion_tokens", "gen_ai.usage.output_tokens":
		return &f.generated, event.MaxTokens
	case "gen_ai.request.max_tokens":
		return &f.maxTokens, event.MaxTokens
	}
	return nil, 0
}

// words returns the field for a text attribute, or nil.
func (f *facts) words(name string) *string {
	switch name {
	case "gen_ai.request.id":
		return &f.request
	case "rid":
		return &f.rid
	case "gen_ai.response.model", "gen_ai.request.model":
		return &f.model
	case "module":
		return &f.module
	case "thread_label":
		return &f.thread
	case "gen_ai.response.finish_reasons":
		return &f.finish
	}
	return nil
}

// wanted reports whether a span attribute is kept.
func (f *facts) wanted(name string) bool {
	at, _ := f.numbers(name)
	return at != nil || f.words(name) != nil
}

// set stores the value of an attribute. It ignores values out of range.
func (f *facts) set(name string, v value) {
	if at, most := f.numbers(name); at != nil && v.number.known && v.v >= 0 && v.v <= most {
		*at = v.number
	}
	if at := f.words(name); at != nil && v.text != "" {
		*at = clean.Cut(v.text, maxName)
	}
}

// wanted reports whether a resource attribute is kept.
func (r *resource) wanted(name string) bool { return r.words(name) != nil }

func (r *resource) words(name string) *string {
	switch name {
	case "service.name":
		return &r.service
	case "vllm.process_name":
		return &r.process
	}
	return nil
}

func (r *resource) set(name string, v value) {
	if at := r.words(name); at != nil {
		*at = clean.Cut(v.text, maxName)
	}
}

// attributes stores attribute values.
type attributes interface {
	wanted(name string) bool
	set(name string, v value)
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
