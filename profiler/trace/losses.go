package trace

import "github.com/llmtop/llmtop/profiler/event"

// losses adds what the recorder dropped to what the source says it lost, so that the screen shows both.
type losses struct {
	source, recorder event.Lost
}

// note takes in what a note says; news if there is an event to be emitted at this time.
func (l *losses) note(n *Note, at event.Time) (e event.Event, news bool) {
	lost := n.lost()
	if lost == l.recorder || lost.Total() < l.recorder.Total() {
		return e, false
	}
	l.recorder = lost
	return event.Event{Kind: event.KindLost, Layer: -1, At: at, Data: l.sum()}, true
}

// event passes an event on, with the recorder's losses added to those of the source.
func (l *losses) event(e event.Event) event.Event {
	if e.Kind != event.KindLost {
		return e
	}
	if p, ok := e.Data.(*event.Lost); ok && p != nil {
		l.source = *p
		e.Data = l.sum()
	}
	return e
}

func (l *losses) sum() *event.Lost {
	sum := l.source
	for k, n := range l.recorder {
		sum[k] += n
	}
	return &sum
}
