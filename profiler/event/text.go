package event

import "slices"

// WithoutText is a Sink that passes everything on but the text of prompts and completions, for what leaves the process without
// having been asked for that. Ids and counts are enough for every metric.
type WithoutText struct{ Sink Sink }

// Emit implements Sink.
func (w WithoutText) Emit(e Event) {
	switch e.Kind {
	case KindToken:
		e.Text = ""
		if slices.ContainsFunc(e.Top, func(t TopProb) bool { return t.Text != "" }) {
			e.Top = slices.Clone(e.Top)
			for i := range e.Top {
				e.Top[i].Text = ""
			}
		}
	case KindRequest:
		if r, ok := e.Data.(*Request); ok && r.Prompt != "" {
			silent := *r
			silent.Prompt = ""
			e.Data = &silent
		}
	case KindEngine:
		if engine, ok := e.Data.(*Engine); ok && engine.Caps.Has(CapText) {
			silent := *engine
			silent.Caps &^= CapText
			e.Data = &silent
		}
	}
	w.Sink.Emit(e)
}
