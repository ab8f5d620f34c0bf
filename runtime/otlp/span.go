package otlp

import (
	"math"
	"strings"
	"unicode"
)

// span is what is kept of a span: names, moments, and the few attributes that are facts. Whatever else it carries, prompts and completions among
// it, is passed over while it is read.
type span struct {
	trace      [16]byte
	id, parent [8]byte
	name       string
	start, end int64 // Unix ns
	failed     bool
	of         *resource
	facts
}

// key names a span among all.
type key struct {
	trace [16]byte
	id    [8]byte
}

func (s *span) key() key { return key{s.trace, s.id} }

// valid reports whether a span has what every span must have.
func (s *span) valid() bool {
	return s.trace != [16]byte{} && s.id != [8]byte{} && s.name != "" && s.start > 0 && s.end >= s.start
}

// resource is who tells of spans.
type resource struct {
	service string // service.name
	process string // vllm.process_name
	kind    string // vllm.process_kind
}

// facts are the attributes of spans that are understood.
type facts struct {
	ttft, e2e, queue, prefill, decode number // s
	prompt, cached, generated, most   number // tokens

	request, rid, model, module, thread, finish string
}

// number is the value of an attribute that may be missing.
type number struct {
	v     float64
	known bool
}

// The largest numbers that are believed.
const (
	maxCount   = 1 << 30
	maxSeconds = 24 * 60 * 60
)

// ns is a number of seconds in ns.
func (n number) ns() int64 { return int64(math.Round(n.v * 1e9)) }

// numbers finds the place of an attribute that is a number; of several names for the same thing any will do.
func (f *facts) numbers(name string) (at *number, most float64) {
	switch name {
	case "gen_ai.latency.time_to_first_token":
		return &f.ttft, maxSeconds
	case "gen_ai.latency.e2e":
		return &f.e2e, maxSeconds
	case "gen_ai.latency.time_in_queue":
		return &f.queue, maxSeconds
	case "gen_ai.latency.time_in_model_prefill":
		return &f.prefill, maxSeconds
	case "gen_ai.latency.time_in_model_decode":
		return &f.decode, maxSeconds
	case "gen_ai.usage.prompt_tokens", "gen_ai.usage.input_tokens":
		return &f.prompt, maxCount
	case "gen_ai.usage.cached_tokens", "gen_ai.usage.cache_read.input_tokens":
		return &f.cached, maxCount
	case "gen_ai.usage.completion_tokens", "gen_ai.usage.output_tokens":
		return &f.generated, maxCount
	case "gen_ai.request.max_tokens":
		return &f.most, maxCount
	}
	return nil, 0
}

// words finds the place of an attribute that is a name.
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

// wanted reports whether an attribute of a span is kept.
func (f *facts) wanted(name string) bool {
	at, _ := f.numbers(name)
	return at != nil || f.words(name) != nil
}

// set keeps the value of an attribute. What cannot be is passed over.
func (f *facts) set(name string, v value) {
	if at, most := f.numbers(name); at != nil && v.number.known && v.v >= 0 && v.v <= most {
		*at = v.number
	}
	if at := f.words(name); at != nil && v.text != "" {
		*at = printable(v.text)
	}
}

// wanted reports whether an attribute of a resource is kept.
func (r *resource) wanted(name string) bool { return r.words(name) != nil }

func (r *resource) words(name string) *string {
	switch name {
	case "service.name":
		return &r.service
	case "vllm.process_name":
		return &r.process
	case "vllm.process_kind":
		return &r.kind
	}
	return nil
}

func (r *resource) set(name string, v value) {
	if at := r.words(name); at != nil {
		*at = printable(v.text)
	}
}

// attributes take the values of attributes.
type attributes interface {
	wanted(name string) bool
	set(name string, v value)
}

// value is that of an attribute: text, or the first one of a list, or a number.
type value struct {
	text string
	number
}

// maxName bounds a name that comes from outside, in bytes.
const maxName = 200

// printable makes one line of bounded length of a text from outside.
func printable(text string) string {
	cut := text
	if len(cut) > maxName {
		cut = cut[:maxName]
	}
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) || r == unicode.ReplacementChar {
			return -1
		}
		return r
	}, strings.ToValidUTF8(cut, ""))
}

// batch is what an export holds.
type batch struct {
	spans    []span // at most maxSpans
	total    int
	rejected int    // of total
	why      string // the first one was
}

// maxSpans is how many spans of an export are taken; exporters send some hundred. 65,536 of them are 25 MB.
const maxSpans = 1 << 16

// add takes a span that has been read.
func (b *batch) add(s *span) {
	b.total++
	why := ""
	switch {
	case !s.valid():
		why = "a span needs ids, a name and an end that is not before its beginning"
	case len(b.spans) >= maxSpans:
		why = "too many spans at a time"
	default:
		b.spans = append(b.spans, *s)
		return
	}
	b.rejected++
	if b.why == "" {
		b.why = why
	}
}
