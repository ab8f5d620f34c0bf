package otlp

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	trace "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/llmtop/llmtop/profiler/event"
)

// front returns the spans of SGLang's tokenizer process for a request with the given number of tokens.
func front(traceID uint64, tokens int64) []*trace.Span {
	return []*trace.Span{
		made("tokenize", traceID, 2, 1, 0, 5*ms),
		made("api_server_dispatch", traceID, 3, 1, 5*ms, 6*ms),
		made(" Req 0123abcd", traceID, 1, 0, 0, 400*ms,
			text("rid", "0123abcd4567"), text("module", "sglang::request"), seconds("gen_ai.latency.time_to_first_token", 0.1),
			seconds("gen_ai.latency.e2e", 0.4), seconds("gen_ai.latency.time_in_model_prefill", 0.094),
			count("gen_ai.usage.prompt_tokens", 64), count("gen_ai.usage.cached_tokens", 16), count("gen_ai.usage.completion_tokens", tokens),
			text("gen_ai.response.finish_reasons", `["stop"]`)),
	}
}

// back returns the spans of its scheduler, the thread span last.
func back(traceID uint64, steps int) []*trace.Span {
	spans := []*trace.Span{
		made("request_process", traceID, 11, 10, 6*ms, 8*ms), made("prefill_waiting", traceID, 12, 10, 8*ms, 28*ms),
		made("prefill_forward", traceID, 13, 10, 28*ms, 95*ms), made("decode_forward", traceID, 14, 10, 95*ms, 395*ms),
	}
	for i := range steps {
		spans = append(spans, made(decodeLoop, traceID, uint64(20+i), 14, 95*ms+int64(i)*50*ms, 145*ms+int64(i)*50*ms, count("decode_ct", int64(i))))
	}
	return append(spans, made("scheduler [TP 0] (host:0 | pid:1)", traceID, 10, 1, 6*ms, 396*ms, text("thread_label", "scheduler")))
}

// story lists the request events, in order.
func (d *desk) story() string {
	var words []string
	for _, e := range d.All() {
		at := int64(e.At-d.since(0)) / ms
		switch e.Kind {
		case event.KindRequest:
			words = append(words, fmt.Sprint(e.State, " ", at))
		case event.KindStage:
			words = append(words, fmt.Sprint(e.Stage, e.Text, " ", at, "-", e.Dur/ms))
		case event.KindToken:
			words = append(words, fmt.Sprint("token ", at))
		}
	}
	return strings.Join(words, ", ")
}

const whole = "queued 0, tokenize 5-5, noneapi_server_dispatch 6-1, nonerequest_process 8-2, queue 28-20, running 28, prompt 95-67, " +
	"nonedecode_forward 395-300, token 100, finished 400"

// TestRequestOfSGLang: the events do not depend on the order or the grouping in which the processes send.
func TestRequestOfSGLang(t *testing.T) {
	for _, order := range [][][]*trace.Span{
		{front(5, 7), back(5, 0)},
		{back(5, 0), front(5, 7)},
		{slices.Concat(front(5, 7), back(5, 0))},
		{back(5, 0)[4:], front(5, 7)[2:], back(5, 0)[:2], front(5, 7)[:2], back(5, 0)[2:4]},
	} {
		d := newDesk(t)
		for _, part := range order {
			d.send(export("sglang", part...))
		}
		if got := d.story(); got != whole {
			t.Errorf("%s", got)
		}
		if o := d.OfKind(event.KindRequest)[2].Data.(*event.Outcome); o.Cached != 16 || o.Prompt != 64 || o.Generated != 7 || o.Decode != 300*ms || o.Reason != "stop" {
			t.Errorf("%+v", o)
		}
	}
}

// TestStepsAreTokens: if each decode step has a span and made one token, all token times are reported.
func TestStepsAreTokens(t *testing.T) {
	d := newDesk(t)
	d.send(export("sglang", append(front(5, 6), back(5, 5)...)...))
	tokens := d.OfKind(event.KindToken)
	if len(tokens) != 6 || tokens[5].At != d.since(345*ms) || tokens[5].Index != 5 || !d.shown().Caps.Has(event.CapTokens) {
		t.Errorf("%+v", tokens)
	}
	d = newDesk(t)
	d.send(export("sglang", append(front(5, 9), back(5, 5)...)...)) // eight tokens in five steps: token times are unknown
	if tokens := d.OfKind(event.KindToken); len(tokens) != 1 || d.shown().Caps.Has(event.CapTokens) {
		t.Errorf("%+v", tokens)
	}
}

// TestPartsThatDoNotCome: after a timeout a request is emitted without its missing parts; later parts are counted.
func TestPartsThatDoNotCome(t *testing.T) {
	d := newDesk(t)
	d.send(export("sglang", front(5, 7)...))
	d.look(d.now.Add(waitFor / 2))
	if n := len(d.OfKind(event.KindRequest)); n != 0 {
		t.Fatalf("%d events of an incomplete request", n)
	}
	d.now = d.now.Add(waitFor)
	d.look(d.now)
	if got, want := d.story(), "queued 0, tokenize 5-5, noneapi_server_dispatch 6-1, token 100, finished 400"; got != want {
		t.Error(got)
	}
	if len(d.traces) != 0 || d.spans != 0 {
		t.Errorf("%d traces and %d spans are held on", len(d.traces), d.spans)
	}
}

func TestLateParts(t *testing.T) {
	d := newDesk(t)
	d.send(export("sglang", slices.Concat(front(5, 7), back(5, 0))...))
	d.send(export("sglang", made("decode_waiting", 5, 77, 10, 95*ms, 96*ms)))
	if d.counts.late != 1 || d.story() != whole {
		t.Errorf("%+v, %s", d.counts, d.story())
	}
}

// TestRequestsOfOneTrace: a client may use one trace for several requests.
func TestRequestsOfOneTrace(t *testing.T) {
	d := newDesk(t)
	one := slices.Concat(front(5, 7), back(5, 0))
	two := slices.Concat(front(5, 7), back(5, 0))
	for _, s := range two {
		s.SpanId[0], s.Name = 1, strings.Replace(s.Name, "0123", "4567", 1)
		if s.ParentSpanId != nil {
			s.ParentSpanId[0] = 1
		}
	}
	d.send(export("sglang", append(two, one...)...))
	stages := map[event.RequestID]int{}
	for _, e := range d.OfKind(event.KindStage) {
		stages[e.Req]++
	}
	if len(stages) != 2 || stages[1] != 6 || stages[2] != 6 {
		t.Errorf("%v", stages)
	}
}

// TestRanks: stages that several ranks report count once.
func TestRanks(t *testing.T) {
	d := newDesk(t)
	other := made("prefill_forward", 5, 99, 98, 29*ms, 97*ms)
	d.send(export("sglang", slices.Concat(front(5, 7), back(5, 0), []*trace.Span{other})...))
	var prompt int64
	for _, e := range d.OfKind(event.KindStage) {
		if e.Stage == event.StagePrompt {
			prompt += e.Dur
		}
	}
	if prompt != 69*ms {
		t.Errorf("%v", time.Duration(prompt))
	}
}

// TestNothingIsHeldForEver: spans whose root never arrives are dropped.
func TestNothingIsHeldForEver(t *testing.T) {
	d := newDesk(t)
	for i := range uint64(200) {
		d.send(export("sglang", made("prefill_forward", 100+i, 1, 2, 0, ms)))
	}
	d.look(d.now.Add(waitRoot))
	if len(d.traces) != 0 || d.spans != 0 || d.counts.dropped != 200 {
		t.Errorf("%d traces, %d spans, %+v", len(d.traces), d.spans, d.counts)
	}
}
