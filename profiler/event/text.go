package event

import "slices"

// WithoutText returns a Sink that passes events on without the text of prompts and completions, for data that leaves the
// process unless text was requested. Ids and counts are enough for every metric.
func WithoutText(to Sink) Sink {
	return SinkFunc(func(e Event) {
		if engine, ok := e.Data.(*EngineInfo); ok && engine.Caps.Has(CapText) {
			redacted := *engine
			redacted.Caps &^= CapText
			e.Data = &redacted
		}
		e.DropText()
		to.Emit(e)
	})
}

// HasText reports whether the event contains text of a prompt or a completion.
func (e *Event) HasText() bool {
	switch e.Kind {
	case KindToken:
		return e.Text != "" || slices.ContainsFunc(e.Top, func(t TopProb) bool { return t.Text != "" })
	case KindRequest:
		r, ok := e.Data.(*Request)
		return ok && r != nil && r.Prompt != ""
	}
	return false
}

// DropText removes the text of prompts and completions. It copies what other sinks may share.
func (e *Event) DropText() {
	if !e.HasText() {
		return
	}
	if r, ok := e.Data.(*Request); ok {
		redacted := *r
		redacted.Prompt = ""
		e.Data = &redacted
		return
	}
	e.Text, e.Top = "", slices.Clone(e.Top)
	for i := range e.Top {
		e.Top[i].Text = ""
	}
}
