package api

import "github.com/llmtop/llmtop/profiler/event"

// note keeps that a message came, as long as there are not too many.
func (q *request) note(at event.Time, kind event.MessageKind) {
	if q.answer == nil {
		return
	}
	if len(q.answer.Messages) == event.MaxMessages {
		q.answer = nil
		return
	}
	q.answer.Messages = append(q.answer.Messages, event.Message{At: at, Kind: kind})
}

// kindOf is the kind of a message that was read.
func kindOf(c *chunk, has *content) (k event.MessageKind) {
	switch {
	case has.choices:
		k = event.HasChoices
	case c.Usage != nil:
		k = event.HasUsage
	}
	if has.output {
		return k | event.HasOutput
	}
	if has.text != "" {
		k |= event.HasReasoning
	}
	return k
}
