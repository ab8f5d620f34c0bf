package otlp

import (
	"fmt"
	"strings"
	"testing"
	"time"

	trace "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/llmtop/llmtop/profiler/event"
)

func vllm(id uint64) *trace.Span {
	return made("llm_request", 7, id, 0, 0, 3210*ms,
		seconds("gen_ai.latency.time_to_first_token", 0.25), seconds("gen_ai.latency.e2e", 3.21),
		seconds("gen_ai.latency.time_in_queue", 0.05), seconds("gen_ai.latency.time_in_model_prefill", 0.125),
		seconds("gen_ai.latency.time_in_model_decode", 2.5), seconds("gen_ai.latency.time_in_model_inference", 2.625),
		count("gen_ai.usage.prompt_tokens", 2560), count("gen_ai.usage.completion_tokens", 180),
		text("gen_ai.request.id", "chatcmpl-9f1c"), count("gen_ai.request.max_tokens", 512),
		text("gen_ai.prompt", "a secret"), text("gen_ai.completion", "another secret"))
}

func TestRequestOfVLLM(t *testing.T) {
	d := newDesk(t)
	d.send(export("vllm", vllm(1)))
	r := d.OfKind(event.KindRequest)
	if len(r) != 3 || r[0].At != d.since(0) || r[1].State != event.StateDispatched || r[1].At != d.since(50*ms) {
		t.Fatalf("%+v", r)
	}
	if q := r[0].Data.(*event.Request); *q != (event.Request{Group: "vllm", Name: "chatcmpl-9f1c", MaxTokens: 512, Retrospective: true}) {
		t.Errorf("%+v", q)
	}
	if o := r[2].Data.(*event.Outcome); *o != (event.Outcome{Prompt: 2560, AnyCached: true, Generated: 180, Decode: 2500 * ms}) || r[2].State != event.StateFinished {
		t.Errorf("%+v", o)
	}
	s := d.OfKind(event.KindStage)
	if len(s) != 2 || s[0].Stage != event.StageQueue || s[0].Dur != 50*ms || s[1].Stage != event.StagePrompt || s[1].Dur != 125*ms || s[1].At != d.since(175*ms) || s[1].N != 0 {
		t.Errorf("%+v", s)
	}
	if tok := d.OfKind(event.KindToken); len(tok) != 1 || tok[0].At != d.since(250*ms) {
		t.Errorf("%+v", tok)
	}
	for _, e := range d.All() {
		if text := fmt.Sprintf("%+v %+v", e, e.Data); strings.Contains(text, "secret") {
			t.Errorf("an event holds text: %s", text)
		}
	}
}

// TestTwice: exporters resend the same spans after a timeout.
func TestTwice(t *testing.T) {
	d := newDesk(t)
	d.send(export("vllm", vllm(1)))
	d.send(export("vllm", vllm(1), vllm(2)))
	if r := d.OfKind(event.KindRequest); len(r) != 6 || d.counts.repeated != 1 {
		t.Errorf("%d events, %+v", len(r), d.counts)
	}
}

func TestUnknownSpansAreCounted(t *testing.T) {
	d := newDesk(t)
	for i := range uint64(40) {
		d.send(export("shop", made(fmt.Sprint("GET /", i%20, "\x1b[2J"), 9, i+1, 0, 0, ms)))
	}
	if logs := d.OfKind(event.KindLog); d.counts.unknown != 40 || len(logs) != maxNames || strings.Contains(logs[0].Text, "\x1b") {
		t.Errorf("%+v, %d lines", d.counts, len(logs))
	}
	if len(d.OfKind(event.KindRequest)) != 0 {
		t.Error("made a request of something else")
	}
}

// TestClocksThatDiffer: if a sender's clock is ahead or far behind, its spans end at their arrival.
func TestClocksThatDiffer(t *testing.T) {
	for _, ahead := range []time.Duration{time.Minute, -time.Hour, 24 * 365 * time.Hour} {
		d := newDesk(t)
		d.now = time.Unix(0, began+3210*ms).Add(-ahead)
		d.send(export("vllm", vllm(1)))
		r := d.OfKind(event.KindRequest)
		if got := r[2].At - d.gather.at(d.now.UnixNano()); got != 0 || r[2].At-r[0].At != event.Time(3210*ms) {
			t.Errorf("%v ahead: ended %v after its arrival", ahead, time.Duration(got))
		}
		if len(d.OfKind(event.KindLog)) != 1 {
			t.Errorf("%v ahead: not logged", ahead)
		}
	}
}

func TestFailuresAndAborts(t *testing.T) {
	d := newDesk(t)
	failed := vllm(1)
	failed.Status = &trace.Status{Code: trace.Status_STATUS_CODE_ERROR, Message: "a secret"}
	aborted := made("llm_request", 7, 2, 0, 0, ms, text("gen_ai.response.finish_reasons", `["abort"]`))
	length := made("llm_request", 7, 3, 0, 0, ms, text("gen_ai.response.finish_reasons", `["length"]`))
	d.send(export("vllm", failed, aborted, length))
	var got []string
	for _, e := range d.OfKind(event.KindRequest) {
		if e.State.Final() {
			got = append(got, e.State.String()+": "+e.Data.(*event.Outcome).Reason)
		}
	}
	if want := "failed: the server reported an error, cancelled: cancelled, finished: length"; strings.Join(got, ", ") != want {
		t.Errorf("%q", got)
	}
}

// TestNumbersThatCannotBe: impossible numbers are ignored and so not reported.
func TestNumbersThatCannotBe(t *testing.T) {
	d := newDesk(t)
	d.send(export("vllm", made("llm_request", 7, 1, 0, 0, ms,
		seconds("gen_ai.latency.time_to_first_token", -1), seconds("gen_ai.latency.time_in_queue", 1e300),
		count("gen_ai.usage.prompt_tokens", 1<<62), text("gen_ai.usage.completion_tokens", "12"))))
	if o := d.OfKind(event.KindRequest)[1].Data.(*event.Outcome); *o != (event.Outcome{AnyCached: true}) || len(d.OfKind(event.KindToken))+len(d.OfKind(event.KindStage)) != 0 {
		t.Errorf("%+v", o)
	}
}

func TestLoadOfVLLM(t *testing.T) {
	d := newDesk(t)
	worker := export("vllm",
		made("Load weights", 3, 2, 1, 100*ms, 900*ms), made("Load model", 3, 3, 1, 50*ms, 1000*ms))
	worker.ResourceSpans[0].Resource.Attributes = append(worker.ResourceSpans[0].Resource.Attributes, text("vllm.process_name", "Worker_TP0"))
	d.send(worker)
	if state := d.shown().State; state != event.EngineLoading {
		t.Errorf("%v while it loads", state)
	}
	other := export("vllm", made("Load weights", 3, 4, 1, 100*ms, 950*ms))
	other.ResourceSpans[0].Resource.Attributes = append(other.ResourceSpans[0].Resource.Attributes, text("vllm.process_name", "Worker_TP1"))
	d.send(other)
	d.send(export("vllm", made("Overall Loading", 3, 1, 0, 0, 2000*ms)))
	var got []string
	for _, e := range d.OfKind(event.KindStage) {
		got = append(got, fmt.Sprint(e.Stage, " ", e.Text, " ", e.Dur/ms))
	}
	if want := "none Load model 950, none Load weights 800, model_load  2000"; strings.Join(got, ", ") != want {
		t.Errorf("%q", got)
	}
	if d.shown().State != event.EngineReady {
		t.Errorf("%v when all is loaded", d.shown().State)
	}
	d.send(export("vllm", made("Load model", 4, 9, 8, 5000*ms, 6000*ms))) // of another start
	if n := len(d.OfKind(event.KindStage)); n != 4 || d.shown().State != event.EngineLoading || d.loadEnd != 0 {
		t.Errorf("%d stages, %v", n, d.shown().State)
	}
}
