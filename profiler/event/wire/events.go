package wire

import (
	"strconv"
	"unsafe"

	"github.com/llmtop/llmtop/profiler/event"
)

// appendEvent appends the line of an event, or says false if there is none: its payload is missing or contradicts itself.
func appendEvent(dst []byte, e *event.Event) ([]byte, bool) {
	switch e.Kind {
	case event.KindToken:
		out, err := AppendTokens(dst, unsafe.Slice(e, 1), nil)
		return out, err == nil
	case event.KindStep:
		out, err := AppendSteps(dst, unsafe.Slice(e, 1))
		return out, err == nil
	case event.KindStage:
		return appendStage(dst, e), true
	case event.KindRequest:
		return appendRequest(dst, e)
	case event.KindLog:
		return append(appendString(key(begin(dst, "log", e.At), "m"), e.Text), '}'), true
	}
	return appendPayload(dst, e)
}

// begin opens a line of the given type about something that happened at the given time.
func begin(dst []byte, kind string, at event.Time) []byte {
	dst = append(dst, `{"t":"`...)
	dst = append(dst, kind...)
	dst = append(dst, `","a":`...)
	return strconv.AppendInt(dst, int64(at), 10)
}

func appendStage(dst []byte, e *event.Event) []byte {
	name, more := e.Text, ""
	if e.Stage != event.StageNone {
		name, more = e.Stage.String(), e.Text
	}
	dst = begin(dst, "stage", e.At)
	dst = strconv.AppendInt(key(dst, "dur"), max(e.Dur, 0), 10)
	dst = word(appendString(key(dst, "stage"), name), "name", more)
	if e.Req != 0 {
		dst = strconv.AppendUint(key(dst, "r"), uint64(e.Req), 10)
	}
	if e.Layer >= 0 {
		dst = strconv.AppendInt(key(dst, "l"), int64(e.Layer), 10)
	}
	return append(number(dst, "n", max(e.N, 0)), '}')
}

func appendRequest(dst []byte, e *event.Event) ([]byte, bool) {
	if e.State == event.StateNone || e.State >= event.NumStates || e.Req == 0 {
		return dst, false
	}
	dst = begin(dst, "req", e.At)
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
			dst = flag(dst, "told", p.Told)
		}
	case *event.Outcome:
		if p != nil {
			dst = word(dst, "why", p.Reason)
			dst = strconv.AppendInt(key(dst, "in"), int64(max(p.Prompt, 0)), 10)
			dst = number(number(dst, "cached", max(p.Cached, 0)), "pad", max(p.Padding, 0))
			dst = strconv.AppendInt(key(dst, "out"), int64(max(p.Generated, 0)), 10)
			dst = appendAnswer(number(dst, "decode", max(p.Decode, 0)), p.Answer)
		}
	}
	return append(dst, '}'), true
}

// appendPayload appends the line of an event that is all payload.
func appendPayload(dst []byte, e *event.Event) ([]byte, bool) {
	switch p := e.Data.(type) {
	case *event.Engine:
		if e.Kind == event.KindEngine && p != nil {
			return append(appendEngine(begin(dst, "engine", e.At), e.At, p), '}'), true
		}
	case *event.Model:
		if e.Kind == event.KindModel && p != nil {
			return append(appendModel(begin(dst, "model", e.At), e.Dur, p), '}'), true
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
			return append(appendHost(begin(dst, "host", e.At), p), '}'), true
		}
	case *event.Lost:
		if e.Kind == event.KindLost && p != nil {
			return append(appendLost(begin(dst, "lost", e.At), p), '}'), true
		}
	case *event.Counters:
		if e.Kind == event.KindCounters && p != nil {
			return append(appendCounters(begin(dst, "count", e.At), p), '}'), true
		}
	case *event.Report:
		if e.Kind == event.KindReport && p != nil {
			return append(appendReport(begin(dst, "report", e.At), p), '}'), true
		}
	case *event.Ops:
		if e.Kind == event.KindOps && p != nil {
			out, ok := appendOps(begin(dst, "ops", e.At), p)
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
	dst = begin(dst, "experts", at)
	dst = number(number(dst, "layers", p.Layers), "experts", p.Experts)
	dst = number(dst, "used", max(p.Used, 0))
	dst = number(dst, "every", max(p.EveryN, 0))
	if len(p.Prompt) > 0 {
		dst = appendUints(key(dst, "p"), p.Prompt...)
	}
	if len(p.Decode) > 0 {
		dst = appendUints(key(dst, "d"), p.Decode...)
	}
	dst = strconv.AppendUint(key(dst, "pt"), p.PromptTokens, 10)
	return append(strconv.AppendUint(key(dst, "dt"), p.DecodeTokens, 10), '}'), true
}

func appendKV(dst []byte, at event.Time, p *event.KV) []byte {
	dst = begin(dst, "kv", at)
	dst = strconv.AppendInt(key(dst, "used"), max(p.Used, 0), 10)
	dst = strconv.AppendInt(key(dst, "total"), max(p.Total, 0), 10)
	dst = number(number(dst, "page", max(p.Page, 0)), "pinned", p.Pinned)
	return append(number(number(dst, "freed", max(p.Freed, 0)), "held", max(p.Residency, 0)), '}')
}

func appendLost(dst []byte, p *event.Lost) []byte {
	dst = append(key(dst, "by"), '{')
	for k, n := range p {
		if n > 0 {
			dst = strconv.AppendUint(key(dst, event.Kind(k).String()), n, 10)
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
