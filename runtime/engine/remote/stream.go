package remote

import "github.com/llmtop/llmtop/profiler/event"

// note records the time and kind of a message, up to event.MaxMessages.
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

// kindOf returns the kind of a message.
func kindOf(c *chunk, has *content) (k event.MessageKind) {
	switch {
	case has.choices:
		k = event.HasChoices
	case c.Usage != nil:
		k = event.HasUsage
	}
	if has.answer > 0 {
		return k | event.HasOutput
	}
	if has.text != "" {
		k |= event.HasReasoning
	}
	return k
}
