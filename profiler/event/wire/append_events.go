package wire

import (
	"strconv"
	"unsafe"

	"github.com/llmtop/llmtop/profiler/event"
)

// appendEvent appends the line of an event; false if its payload is missing or inconsistent.
func appendEvent(dst []byte, e *event.Event) ([]byte, bool) {
	switch e.Kind {
	case event.KindToken:
		out, err := AppendTokens(dst, unsafe.Slice(e, 1), nil)
		return out, err == nil
	case event.KindStep:
		out, err := AppendSteps(dst, unsafe.Slice(e, 1))
		return out, err == nil
	case event.KindStage:
		return appendStage(dst, e)
	case event.KindRequest:
		return appendRequest(dst, e)
	case event.KindLog:
		return append(appendString(key(beginLine(dst, "log", e.At), "m"), e.Text), '}'), true
	}
	return appendPayload(dst, e)
}

// beginLine appends the start of a line of the given type and time.
func beginLine(dst []byte, kind string, at event.Time) []byte {
	dst = append(dst, `{"t":"`...)
	dst = append(dst, kind...)
	dst = append(dst, `","a":`...)
	return appendTime(dst, at)
}

func appendStage(dst []byte, e *event.Event) ([]byte, bool) {
	name, more := e.Text, ""
	if e.Stage != event.StageNone {
		name, more = e.Stage.String(), e.Text
	}
	if name == "" {
		return dst, false
	}
	dst = beginLine(dst, "stage", e.At)
	dst = appendInt(key(dst, "dur"), max(e.Dur, 0))
	dst = word(appendString(key(dst, "stage"), name), "name", more)
	if e.Req != 0 {
		dst = strconv.AppendUint(key(dst, "r"), uint64(e.Req), 10)
	}
	if e.Layer >= 0 {
		dst = strconv.AppendInt(key(dst, "l"), int64(e.Layer), 10)
	}
	return append(number(dst, "n", max(e.N, 0)), '}'), true
}

func appendRequest(dst []byte, e *event.Event) ([]byte, bool) {
	if e.State == event.StateNone || e.State >= event.NumStates || e.Req == 0 {
		return dst, false
	}
	dst = beginLine(dst, "req", e.At)
	dst = strconv.AppendUint(key(dst, "r"), uint64(e.Req), 10)
	dst = word(dst, "state", states[e.State])
	switch p := e.Data.(type) {
	case *event.Request:
		if p != nil {
			dst = word(word(word(dst, "group", p.Group), "label", p.Label), "name", p.Name)
			if p.Prompt != "" {
				dst = appendText(key(dst, "prompt"), p.Prompt)
			}
			dst = number(dst, "max", max(p.MaxTokens, 0))
			dst = flag(flag(dst, "cold", p.Cold), "probe", p.Probe)
			dst = flag(dst, "told", p.Retrospective)
		}
	case *event.Outcome:
		if p != nil {
			dst = word(dst, "why", p.Reason)
			dst = appendInt(key(dst, "in"), int64(max(p.Prompt, 0)))
			dst = number(number(dst, "cached", max(p.Cached, 0)), "pad", max(p.Padding, 0))
			dst = appendInt(key(dst, "out"), int64(max(p.Generated, 0)))
			dst = appendAnswer(number(dst, "decode", max(p.Decode, 0)), p.Answer)
		}
	}
	return append(dst, '}'), true
}

// appendPayload appends the line of an event that consists of its payload.
func appendPayload(dst []byte, e *event.Event) ([]byte, bool) {
	switch p := e.Data.(type) {
	case *event.EngineInfo:
		if e.Kind == event.KindEngine && p != nil {
			return append(appendEngine(beginLine(dst, "engine", e.At), e.At, p), '}'), true
		}
	case *event.Model:
		if e.Kind == event.KindModel && p != nil {
			return append(appendModel(beginLine(dst, "model", e.At), e.Dur, p), '}'), true
		}
	case *event.Experts:
		if e.Kind == event.KindExperts && p != nil {
			return appendExperts(dst, e.At, p)
		}
	case *event.KV:
		if e.Kind == event.KindKV && p != nil {
			return appendKV(dst, e.At, p), true
		}
	case *event.Host:
		if e.Kind == event.KindHost && p != nil {
			return append(appendHost(beginLine(dst, "host", e.At), p), '}'), true
		}
	case *event.Drops:
		if e.Kind == event.KindDrops && p != nil {
			return append(appendDrops(beginLine(dst, "lost", e.At), p), '}'), true
		}
	case *event.Counters:
		if e.Kind == event.KindCounters && p != nil {
			return append(appendCounters(beginLine(dst, "count", e.At), p), '}'), true
		}
	case *event.Aggregates:
		if e.Kind == event.KindAggregates && p != nil {
			return append(appendAggregates(beginLine(dst, "report", e.At), p), '}'), true
		}
	case *event.Ops:
		if e.Kind == event.KindOps && p != nil {
			out, ok := appendOps(beginLine(dst, "ops", e.At), p)
			return out, ok
		}
	}
	return dst, false
}

func appendExperts(dst []byte, at event.Time, p *event.Experts) ([]byte, bool) {
	n := p.Layers * p.Experts
	if p.Layers < 1 || p.Layers > MaxLayers || p.Experts < 1 || p.Experts > MaxExperts ||
		len(p.Prompt) != n && len(p.Prompt) != 0 || len(p.Decode) != n && len(p.Decode) != 0 {
		return dst, false
	}
	dst = beginLine(dst, "experts", at)
	dst = number(number(dst, "layers", p.Layers), "experts", p.Experts)
	dst = number(dst, "used", max(p.Used, 0))
	dst = number(dst, "every", max(p.EveryN, 0))
	if len(p.Prompt) > 0 {
		dst = appendUints(key(dst, "p"), p.Prompt...)
	}
	if len(p.Decode) > 0 {
		dst = appendUints(key(dst, "d"), p.Decode...)
	}
	dst = appendCount(key(dst, "pt"), p.PromptTokens)
	return append(appendCount(key(dst, "dt"), p.DecodeTokens), '}'), true
}

func appendKV(dst []byte, at event.Time, p *event.KV) []byte {
	dst = beginLine(dst, "kv", at)
	dst = appendInt(key(dst, "used"), max(p.Used, 0))
	dst = appendInt(key(dst, "total"), max(p.Total, 0))
	dst = moment(number(dst, "page", max(p.Page, 0)), "pinned", p.Pinned)
	return append(number(number(dst, "freed", max(p.Freed, 0)), "held", max(p.Residency, 0)), '}')
}

func appendDrops(dst []byte, p *event.Drops) []byte {
	dst = append(key(dst, "by"), '{')
	for k, n := range p {
		if n > 0 {
			dst = appendCount(key(dst, event.Kind(k).String()), n)
		}
	}
	return append(dst, '}')
}

func appendCounters(dst []byte, p *event.Counters) []byte {
	dst = append(key(dst, "c"), '{')
	for _, c := range p.Values[:min(len(p.Values), MaxCount)] {
		if dst[len(dst)-1] != '{' {
			dst = append(dst, ',')
		}
		dst = append(appendString(dst, c.Name), ':')
		dst = appendFloat(dst, c.Value, 64)
	}
	return append(dst, '}')
}
