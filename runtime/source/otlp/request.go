package otlp

import (
	"cmp"
	"slices"
	"strings"

	"github.com/llmtop/llmtop/profiler/event"
)

// stages maps SGLang's span names to stages. Names with StageNone are shown under their own name.
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

// decodeLoop is the span of one decode step. There are as many as tokens, so they become tokens and not stages.
const decodeLoop = "decode_loop"

// emission converts one request to events.
type emission struct {
	*gather
	id    event.RequestID
	root  *span
	start event.Time
}

func (t *emission) emit(e event.Event) {
	e.Req = t.id
	t.gather.emit(e)
}

func (t *emission) stage(stage event.Stage, name string, end event.Time, ns int64, tokens int32) {
	if ns > 0 {
		t.emit(event.Event{Kind: event.KindStage, Stage: stage, Text: name, At: end, Dur: ns, N: tokens})
	}
}

// request emits a completed request: from the attributes of its span, and from the spans of its stages if there are
// any.
func (g *gather) request(s *span, parts []span) {
	g.last++
	t := &emission{gather: g, id: g.last, root: s, start: g.at(s.start)}
	g.set(event.EngineReady)
	g.server.Model(s.model)
	t.emit(event.Event{Kind: event.KindRequest, State: event.StateQueued, At: t.start, Data: &event.Request{
		Group: s.sender.service, Name: cmp.Or(s.request, s.rid), MaxTokens: int(s.maxTokens.v), Retrospective: true,
	}})
	if len(parts) > 0 {
		t.parts(parts)
	} else {
		t.attributes()
	}
	t.tokens(parts)
	t.finish()
}

// attributes emits the stages by their durations alone, one after another from the start: their real times are not
// reported.
func (t *emission) attributes() {
	s, at := t.root, t.start
	if s.queue.known {
		at += event.Time(s.queue.ns())
		t.stage(event.StageQueue, "", at, s.queue.ns(), 0)
		t.emit(event.Event{Kind: event.KindRequest, State: event.StateDispatched, At: at})
	}
	if s.prefill.known && s.module == "" { // SGLang's value includes the queue time
		t.stage(event.StagePrompt, "", at+event.Time(s.prefill.ns()), s.prefill.ns(), s.computed())
	}
}

// computed returns the prompt tokens that did not come from a cache; 0: unknown.
func (s *span) computed() int32 {
	if !s.cached.known {
		return 0
	}
	return int32(max(s.prompt.v-s.cached.v, 0))
}

// parts emits the stages by their spans. Spans that several ranks report count once.
func (t *emission) parts(parts []span) {
	slices.SortStableFunc(parts, func(a, b span) int { return cmp.Compare(a.start, b.start) })
	until := map[string]int64{}
	dispatched := false
	for i := range parts {
		p := &parts[i]
		stage, ok := stages[p.name]
		from := max(p.start, until[p.name])
		if !ok || p.name == decodeLoop || p.end <= from {
			continue
		}
		until[p.name] = p.end
		name, tokens := "", int32(0)
		switch stage {
		case event.StageNone:
			name = p.name
		case event.StagePrompt:
			tokens = t.root.computed()
		}
		t.stage(stage, name, t.at(p.end), p.end-from, tokens)
		if stage == event.StageQueue && !dispatched {
			dispatched = true
			t.emit(event.Event{Kind: event.KindRequest, State: event.StateDispatched, At: t.at(p.end)})
		}
	}
}

// tokens emits the first token, and the others if each decode step has a span.
func (t *emission) tokens(parts []span) {
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
	if len(steps) == 0 || len(steps) != int(s.generated.v)-1 { // some are missing, or had more than one token
		return
	}
	t.server.Can(event.CapTokens)
	for i, at := range steps {
		t.emit(event.Event{Kind: event.KindToken, At: max(t.at(at), first), ID: -1, N: 1, Index: int32(i + 1)})
	}
}

// finish emits the end of the request.
func (t *emission) finish() {
	s := t.root
	state, reason := event.StateFinished, reason(s.finish)
	switch {
	case s.failed:
		state, reason = event.StateFailed, cmp.Or(reason, "the server reported an error")
	case reason == "abort" || reason == "cancelled":
		state, reason = event.StateCancelled, "cancelled"
	}
	t.emit(event.Event{Kind: event.KindRequest, State: state, At: t.at(s.end), Data: &event.Outcome{
		Reason: reason, Prompt: int(s.prompt.v), Cached: int(min(s.cached.v, s.prompt.v)), AnyCached: !s.cached.known, Generated: int(s.generated.v), Decode: t.decode(),
	}})
}

// decode returns the time from the first token to the last, in ns. If the server does not report it, it is E2EL minus
// TTFT.
func (t *emission) decode() int64 {
	s := t.root
	switch {
	case s.decode.known:
		return s.decode.ns()
	case s.ttft.known && s.e2e.known:
		return max(s.e2e.ns()-s.ttft.ns(), 0)
	}
	return 0
}

// reason returns the finish reason. SGLang sends it as a JSON list.
func reason(finish string) string {
	finish = strings.Trim(finish, `[]"' `)
	strange := func(r rune) bool { return r != '_' && (r < 'a' || r > 'z') }
	if strings.ContainsFunc(finish, strange) {
		return "other"
	}
	return finish
}
