package recording

import "github.com/llmtop/llmtop/profiler/event"

// dropMerger adds the recorder's drops to those that the engine reports, so that the screen shows the sum.
type dropMerger struct {
	engine, recorder event.Drops
}

// note applies a note and reports whether the drops have changed.
func (l *dropMerger) note(n *Note) bool {
	drops := n.drops()
	if drops == l.recorder || drops.Total() < l.recorder.Total() {
		return false
	}
	l.recorder = drops
	return true
}

// report returns an event with all drops.
func (l *dropMerger) report(at event.Time) event.Event {
	return event.Event{Kind: event.KindDrops, Layer: -1, At: at, Data: l.sum()}
}

// event returns an event with the recorder's drops added to those of the engine.
func (l *dropMerger) event(e event.Event) event.Event {
	if e.Kind != event.KindDrops {
		return e
	}
	if p, ok := e.Data.(*event.Drops); ok && p != nil {
		l.engine = *p
		e.Data = l.sum()
	}
	return e
}

func (l *dropMerger) sum() *event.Drops {
	sum := l.engine
	for k, n := range l.recorder {
		sum[k] += n
	}
	return &sum
}
