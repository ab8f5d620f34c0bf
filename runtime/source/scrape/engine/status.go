package engine

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/llmtop/llmtop/profiler/event"
)

// emitEngine emits the engine and its connection state.
func (s *Poller) emitEngine() {
	e := s.engine
	s.sink.Emit(event.Event{Kind: event.KindEngine, At: s.clock.Now(), Layer: -1, Data: &e})
}

// logf adds a line to the engine's log.
func (s *Poller) logf(format string, args ...any) {
	s.sink.Emit(event.Event{Kind: event.KindLog, At: s.clock.Now(), Layer: -1, Text: fmt.Sprintf(format, args...)})
}

// setLink sets the connection state.
func (s *Poller) setLink(link event.Link, why string) {
	if s.engine.Remote.Update(link, why, s.clock.Now()) {
		s.emitEngine()
	}
}

// setState sets the state of the engine.
func (s *Poller) setState(state event.EngineState, why string) {
	if s.engine.State != state || s.engine.Reason != why {
		s.engine.State, s.engine.Reason = state, why
		s.emitEngine()
	}
}

// setSlots sets the number of requests that the engine decodes together at most.
func (s *Poller) setSlots(n int) {
	if n != s.engine.Slots {
		s.engine.Slots = n
		s.emitEngine()
	}
}

// setRestarts reports a restart of the server.
func (s *Poller) setRestarts(times int) {
	before := s.engine.Remote.Restarts
	if times == before {
		return
	}
	if s.engine.Remote.Restarts = times; times > before {
		s.logf("the server restarted; counters reset")
	}
	s.emitEngine()
}

// countMalformed counts numbers and lines of responses that were refused because they are malformed or implausible.
func (s *Poller) countMalformed(n int) {
	if n > 0 {
		s.engine.Remote.Malformed += uint64(n)
		s.emitEngine()
	}
}

// setModels sets the served model. For several models it emits only a name: the first name and the number of others.
func (s *Poller) setModels(list []event.Model) {
	var m event.Model
	if len(list) > 0 {
		m = list[0]
	}
	if len(list) > 1 {
		m = event.Model{Name: NameOf(m.Name, len(list))}
	}
	if m == s.model {
		return
	}
	s.model = m
	s.sink.Emit(event.Event{Kind: event.KindModel, At: s.clock.Now(), Layer: -1, Data: &m})
}

// NameOf returns one name for n models, of which the first has a name.
func NameOf(first string, n int) string {
	if n < 2 {
		return first
	}
	return first + " and " + strconv.Itoa(n-1) + " more"
}

// setModelNames sets the models from names alone, completed from the server's list. The names come from metric labels,
// which name the model that runs, while the list also has adapters and aliases.
func (s *Poller) setModelNames(names []string, listed []Model) {
	if len(names) == 0 || len(names) == 1 && names[0] == s.model.Name {
		return
	}
	var list []event.Model
	for _, name := range names {
		i := slices.IndexFunc(listed, func(m Model) bool { return m.Name == name })
		if i >= 0 {
			list = append(list, listed[i].Model)
		} else {
			list = append(list, event.Model{Name: name})
		}
	}
	s.setModels(list)
}
