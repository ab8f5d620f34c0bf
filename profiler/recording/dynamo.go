package recording

import (
	"fmt"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/event/catchup"
)

// dynamoRequest is an ended request in dynamo.request.trace.v1. Times are ms; fields that Dynamo did not observe are
// nil.
type dynamoRequest struct {
	ID       string   `json:"request_id"`
	Model    string   `json:"model"`
	Input    *float64 `json:"input_tokens"`
	Output   *float64 `json:"output_tokens"`
	Cached   *float64 `json:"cached_tokens"`
	Received *float64 `json:"request_received_ms"`
	Wait     *float64 `json:"prefill_wait_time_ms"` // from received to the start of prefill
	Prefill  *float64 `json:"prefill_time_ms"`      // from there to the first token
	TTFT     *float64 `json:"ttft_ms"`              // from received to the first token
	Total    *float64 `json:"total_time_ms"`        // from received to the end
	MeanITL  *float64 `json:"avg_itl_ms"`
	Replay   *struct {
		Input *float64 `json:"input_length"`
	} `json:"replay"`
	Finish *struct {
		Reason string `json:"finish_reason"`
	} `json:"finish_reason_metadata"`
}

// dynamoTool is a tool call of an agent.
type dynamoTool struct {
	Class    string   `json:"tool_class"`
	Status   string   `json:"status"`
	Duration *float64 `json:"duration_ms"`
}

// stageTimes are the times of a request in Unix ns; 0 is unknown.
type stageTimes struct{ received, dispatched, first, last, end int64 }

// times derives the times of a request from the fields that the row has; ok is false if the end is unknown.
func (d *dynamoRequest) times(ended *float64) (t stageTimes, ok bool) {
	received, hasReceived := unixNs(d.Received)
	end, hasEnd := unixNs(ended)
	total, hasTotal := durationNs(d.Total)
	switch {
	case hasReceived && hasTotal: // more precise than the time of the row
		end, hasEnd = received+total, true
	case hasEnd && hasTotal && !hasReceived:
		received, hasReceived = end-total, true
	}
	if !hasEnd {
		return t, false
	}
	t.end = end
	if !hasReceived || received > end {
		return t, true
	}
	t.received = received
	if wait, ok := durationNs(d.Wait); ok {
		t.dispatched = min(received+wait, end)
	}
	ttft, ok := durationNs(d.TTFT)
	if !ok {
		return t, true
	}
	t.first = min(received+ttft, end)
	t.last = end
	if gap, ok := durationNs(d.MeanITL); ok {
		t.last = t.first + int64(min(float64(gap)*float64(max(intOrZero(d.Output)-1, 0)), float64(end-t.first)))
	}
	return t, true
}

// request emits the events of a request; false if the row does not say when it ended.
func (in *importer) request(r *row) bool {
	d := r.Request
	t, ok := d.times(r.Time)
	if !ok {
		return false
	}
	in.next++
	id := in.next
	if in.model == "" {
		in.model = d.Model
	}
	prompt, cached := d.Input, intOrZero(d.Cached)
	if prompt == nil && d.Replay != nil {
		prompt = d.Replay.Input
	}
	if t.received != 0 {
		in.emit(t.received, event.Event{
			Kind: event.KindRequest, Req: id, State: event.StateQueued, Data: &event.Request{Group: d.Model, Name: d.ID, Label: d.ID},
		})
		in.begin(id, d, &t, int32(max(intOrZero(prompt)-cached, 0)))
		in.tokens(id, intOrZero(d.Output), &t)
	}
	state, reason := d.outcome()
	in.emit(t.end, event.Event{Kind: event.KindRequest, Req: id, State: state, Data: &event.Outcome{
		Reason: reason, Prompt: intOrZero(prompt), Cached: cached, AnyCached: d.Cached == nil, Generated: intOrZero(d.Output),
	}})
	return true
}

// begin emits the events before the first token.
func (in *importer) begin(id event.RequestID, d *dynamoRequest, t *stageTimes, computed int32) {
	if t.dispatched == 0 {
		return
	}
	in.caps |= event.CapQueue
	wait := t.dispatched - t.received
	in.emit(t.dispatched, event.Event{Kind: event.KindStage, Layer: -1, Stage: event.StageQueue, Req: id, Dur: wait})
	in.emit(t.dispatched, event.Event{Kind: event.KindRequest, Req: id, State: event.StateDispatched})
	if took, ok := durationNs(d.Prefill); ok && t.first != 0 {
		in.caps |= event.CapStages
		in.emit(min(t.dispatched+took, t.first), event.Event{
			Kind: event.KindStage, Layer: -1, Stage: event.StagePrompt, Req: id, Dur: min(took, t.first-t.received), N: computed,
		})
	}
}

// progress is how many events represent the tokens of a request after the first, if it has that many.
const progress = 64

// tokens emits the first token at its time and spaces the others evenly.
func (in *importer) tokens(id event.RequestID, n int, t *stageTimes) {
	if t.first == 0 || n == 0 {
		return
	}
	in.emit(t.first, event.Event{Kind: event.KindToken, Req: id, ID: -1, N: 1})
	if n == 1 {
		return
	}
	in.spread = true
	for _, e := range catchup.Spread(event.Time(t.first), event.Time(t.last), int64(n-1), 1, min(1+n/progress, tokenStep), maxSpread) {
		e.Req = id
		in.emit(int64(e.At), e)
	}
}

// outcome returns how a request ended. Rows without a reason count as finished: Dynamo writes one for each streamed
// response.
func (d *dynamoRequest) outcome() (event.State, string) {
	if d.Finish == nil {
		return event.StateFinished, ""
	}
	switch d.Finish.Reason {
	case "error":
		return event.StateFailed, d.Finish.Reason
	case "cancelled", "canceled":
		return event.StateCancelled, d.Finish.Reason
	}
	return event.StateFinished, d.Finish.Reason
}

// tool emits a tool call as a log line.
func (in *importer) tool(r *row) bool {
	at, ok := unixNs(r.Time)
	if !ok {
		return false
	}
	text := fmt.Sprintf("%s %s %s", r.Type, r.Tool.Class, r.Tool.Status)
	if took, ok := durationNs(r.Tool.Duration); ok {
		text += fmt.Sprintf(" after %d ms", took/1e6)
	}
	in.emit(at, event.Event{Kind: event.KindLog, Text: text})
	return true
}

// forwardPass is one pass of dynamo.fpm.trace.v1.
type forwardPass struct {
	Worker    string   `json:"worker_id"`
	Rank      *float64 `json:"dp_rank"`
	Counter   *float64 `json:"counter_id"`
	Wall      *float64 `json:"wall_time"` // s; 0 in the heartbeat of an idle engine
	Scheduled passLoad `json:"scheduled_requests"`
	Queued    passLoad `json:"queued_requests"`
}

// passLoad counts the requests in a pass, or those that wait for one.
type passLoad struct {
	Prefills        *float64 `json:"num_prefill_requests"`
	PrefillTokens   *float64 `json:"sum_prefill_tokens"`
	PrefillVariance *float64 `json:"var_prefill_length"`
	PrefillKV       *float64 `json:"sum_prefill_kv_tokens"`
	Decodes         *float64 `json:"num_decode_requests"`
	DecodeKV        *float64 `json:"sum_decode_kv_tokens"`
	DecodeVariance  *float64 `json:"var_decode_kv_tokens"`
}

// reading returns a number reported by the engine, absent if it is nil.
func reading(n *float64) event.Reading {
	if n == nil {
		return event.Absent(event.NotReported)
	}
	return event.ReportedValue(*n)
}

func (l *passLoad) readings() event.PassLoad {
	return event.PassLoad{
		Prefills: reading(l.Prefills), PrefillTokens: reading(l.PrefillTokens),
		PrefillVariance: reading(l.PrefillVariance), PrefillKV: reading(l.PrefillKV),
		Decodes: reading(l.Decodes), DecodeKV: reading(l.DecodeKV), DecodeVariance: reading(l.DecodeVariance),
	}
}

// pass emits a forward pass and the KV cells of its requests. A heartbeat has no pass, only the KV cells.
func (in *importer) pass(r *row) bool {
	at, ok := unixNs(r.Observed)
	p := r.Pass
	if !ok || p.Wall == nil {
		return false
	}
	in.caps |= event.CapSteps | event.CapKV
	in.sampled = in.sampled || r.Mode == "sampled"
	s := &p.Scheduled
	ms := *p.Wall * 1e3
	if took, ok := durationNs(&ms); ok && took > 0 {
		in.emit(at, event.Event{
			Kind: event.KindStep, Step: uint64(intOrZero(p.Counter)), Dur: took, N: int32(intOrZero(s.Decodes)), Prompt: int32(intOrZero(s.PrefillTokens)),
			Data: &event.Pass{
				Worker: p.Worker, Rank: reading(p.Rank), Counter: reading(p.Counter), Wall: reading(p.Wall),
				Scheduled: s.readings(), Queued: p.Queued.readings(),
			},
		})
	}
	in.emit(at, event.Event{Kind: event.KindKV, Data: &event.KV{Used: int64(intOrZero(s.PrefillKV)) + int64(intOrZero(s.DecodeKV))}})
	return true
}
