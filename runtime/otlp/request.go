package otlp

import (
	"cmp"
	"slices"
	"strings"

	"github.com/llmtop/llmtop/profiler/event"
)

// stages are those of the spans that SGLang tells of the parts of a request; the others that are known have no name of ours.
var stages = map[string]event.Stage{
	"tokenize":        event.StageTokenize,
	"prefill_waiting": event.StageQueue,
	"prefill_forward": event.StagePrompt,

	"api_server_dispatch": event.StageNone, "dpc_dispatch": event.StageNone, "request_process": event.StageNone, "chunked_prefill": event.StageNone,
	"decode_forward": event.StageNone, "decode_waiting": event.StageNone, "prefill_prepare": event.StageNone, "prefill_bootstrap": event.StageNone,
	"prefill_transfer_kv_cache": event.StageNone, "decode_prepare": event.StageNone, "decode_bootstrap": event.StageNone,
	"decode_transferred": event.StageNone, "fake_output": event.StageNone, "quick_finish": event.StageNone, "run_batch_cpu": event.StageNone,
	"spec_draft": event.StageNone, "spec_verify": event.StageNone, decodeLoop: event.StageNone,
}

// decodeLoop is the span of one decode step. There are as many as tokens: they are told as such, and not as stages.
const decodeLoop = "decode_loop"

// told is a request as its events are made of it.
type told struct {
	*gather
	id    event.RequestID
	root  *span
	start event.Time
}

func (t *told) emit(e event.Event) {
	e.Req = t.id
	t.gather.emit(e)
}

func (t *told) stage(stage event.Stage, name string, end event.Time, ns int64, tokens int32) {
	if ns > 0 {
		t.emit(event.Event{Kind: event.KindStage, Stage: stage, Text: name, At: end, Dur: ns, N: tokens})
	}
}

// request tells of a request that has ended: by the attributes of its span, and by the spans of its parts where there are any.
func (g *gather) request(s *span, parts []span) {
	g.last++
	t := &told{gather: g, id: g.last, root: s, start: g.at(s.start)}
	g.ready()
	g.model(s.model)
	t.emit(event.Event{Kind: event.KindRequest, State: event.StateQueued, At: t.start, Data: &event.Request{
		Group: s.of.service, Name: cmp.Or(s.request, s.rid), MaxTokens: int(s.most.v), Told: true,
	}})
	if len(parts) > 0 {
		t.parts(parts)
	} else {
		t.attributes()
	}
	t.tokens(parts)
	t.finish()
}

// attributes tells the stages by their lengths alone, one after another from the beginning: when they were is not told.
func (t *told) attributes() {
	s, at := t.root, t.start
	if s.queue.known {
		at += event.Time(s.queue.ns())
		t.stage(event.StageQueue, "", at, s.queue.ns(), 0)
		t.emit(event.Event{Kind: event.KindRequest, State: event.StateDispatched, At: at})
	}
	if s.prefill.known && s.module == "" { // SGLang's holds the queue
		t.stage(event.StagePrompt, "", at+event.Time(s.prefill.ns()), s.prefill.ns(), int32(max(s.prompt.v-s.cached.v, 0)))
	}
}

// parts tells the stages by their spans. Those that several ranks tell of count once.
func (t *told) parts(parts []span) {
	slices.SortStableFunc(parts, func(a, b span) int { return cmp.Compare(a.start, b.start) })
	until := map[string]int64{}
	dispatched := false
	for i := range parts {
		p := &parts[i]
		stage, known := stages[p.name]
		from := max(p.start, until[p.name])
		if !known || p.name == decodeLoop || p.end <= from {
			continue
		}
		until[p.name] = p.end
		name, tokens := "", int32(0)
		switch stage {
		case event.StageNone:
			name = p.name
		case event.StagePrompt:
			tokens = int32(max(t.root.prompt.v-t.root.cached.v, 0))
		}
		t.stage(stage, name, t.at(p.end), p.end-from, tokens)
		if stage == event.StageQueue && !dispatched {
			dispatched = true
			t.emit(event.Event{Kind: event.KindRequest, State: event.StateDispatched, At: t.at(p.end)})
		}
	}
}

// tokens tells when the first token came, and the others where each step of decoding has a span.
func (t *told) tokens(parts []span) {
	s := t.root
	if !s.ttft.known {
		return
	}
	first := t.start + event.Time(s.ttft.ns())
	t.emit(event.Event{Kind: event.KindToken, At: first, ID: -1, N: 1})
	var steps []int64
	for i := range parts {
		if parts[i].name == decodeLoop {
			steps = append(steps, parts[i].end)
		}
	}
	slices.Sort(steps)
	steps = slices.Compact(steps)
	if len(steps) == 0 || len(steps) != int(s.generated.v)-1 { // some are missing, or made more than one token
		return
	}
	t.can(event.CapTokens)
	for i, at := range steps {
		t.emit(event.Event{Kind: event.KindToken, At: max(t.at(at), first), ID: -1, N: 1, Index: int32(i + 1)})
	}
}

// finish tells how the request ended.
func (t *told) finish() {
	s := t.root
	state, reason := event.StateFinished, reason(s.finish)
	switch {
	case s.failed:
		state, reason = event.StateFailed, cmp.Or(reason, "the server told of an error")
	case reason == "abort" || reason == "cancelled":
		state, reason = event.StateCancelled, "cancelled"
	}
	t.emit(event.Event{Kind: event.KindRequest, State: state, At: t.at(s.end), Data: &event.Outcome{
		Reason: reason, Prompt: int(s.prompt.v), Cached: int(min(s.cached.v, s.prompt.v)), Generated: int(s.generated.v), Decode: t.decode(),
	}})
}

// decode is the time from the first token to the last, in ns: where the server does not tell it, what is left of the whole.
func (t *told) decode() int64 {
	s := t.root
	switch {
	case s.decode.known:
		return s.decode.ns()
	case s.ttft.known && s.e2e.known:
		return max(s.e2e.ns()-s.ttft.ns(), 0)
	}
	return 0
}

// reason is why a model ended a text. SGLang writes it as a list in JSON.
func reason(finish string) string {
	finish = strings.Trim(finish, `[]"' `)
	strange := func(r rune) bool { return r != '_' && (r < 'a' || r > 'z') }
	if strings.ContainsFunc(finish, strange) {
		return "other"
	}
	return finish
}
