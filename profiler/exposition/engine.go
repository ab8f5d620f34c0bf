package exposition

import (
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/llmtop/llmtop/profiler/clean"
	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/store"
)

// Engine is what is told of one engine. It is a sink of its events, and wants its requests as they end; Watch gives it the rest.
type Engine struct {
	label    *dto.LabelPair
	observed *observed
	cells    cells // guarded by the exporter, as are epochs
	epochs   map[counted]epoch

	mu       sync.Mutex          // guards what follows; held for well below a microsecond
	said     subject             // what the engine has last called itself and its model
	subject  subject             // the same, or "other" for both: whom observations are about
	subjects map[subject]bool    // those there were
	itl      prometheus.Observer // of the subject; nil before its first gap
	gaps     gaps
	snapshot func() *store.Snapshot
	live     map[event.RequestID]bool // requests that have not ended and whose first token has been told
	ended    map[event.RequestID]bool // those that end while a snapshot is looked through; nil at other times

	durations map[timed]*durations // that the engine counts itself, or that are made of what was seen of its slots
}

// maxSubjects bounds the models that one address has had; all further ones are told together.
const maxSubjects = 16

func newEngine(name string, o *observed, now func() event.Time) *Engine {
	return &Engine{
		label: &dto.LabelPair{Name: new(engineAttr), Value: new(name)},
		said:  subject{engine: name}, subject: subject{engine: name},
		observed: o, epochs: make(map[counted]epoch), subjects: make(map[subject]bool), durations: make(map[timed]*durations),
		gaps: gaps{now: now, place: make(map[event.RequestID]int)},
	}
}

// Watch has everything told that a snapshot holds.
func (e *Engine) Watch(snapshot func() *store.Snapshot) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.snapshot = snapshot
}

// Emit implements event.Sink.
func (e *Engine) Emit(ev event.Event) {
	switch ev.Kind {
	case event.KindToken:
		e.mu.Lock()
		n, ns := e.gaps.token(&ev)
		if n > 0 && e.itl == nil {
			e.itl = e.observed.itl.WithLabelValues(e.subject.engine, e.subject.model)
		}
		into := e.itl
		e.mu.Unlock()
		for range n {
			into.Observe(float64(ns) / 1e9)
		}
	case event.KindStage:
		if ev.Stage == event.StagePace {
			e.mu.Lock()
			defer e.mu.Unlock()
			e.gaps.paced(&ev)
		}
	case event.KindRequest:
		e.mu.Lock()
		defer e.mu.Unlock()
		e.gaps.request(&ev)
	case event.KindReport:
		if p, ok := ev.Data.(*event.Report); ok && p != nil {
			e.mu.Lock()
			defer e.mu.Unlock()
			e.times(p)
		}
	case event.KindEngine:
		if p, ok := ev.Data.(*event.Engine); ok && p != nil {
			e.mu.Lock()
			defer e.mu.Unlock()
			e.about(subject{e.said.engine, word(p.Name), e.said.model})
		}
	case event.KindModel:
		if p, ok := ev.Data.(*event.Model); ok && p != nil {
			e.mu.Lock()
			defer e.mu.Unlock()
			e.about(subject{e.said.engine, e.said.provider, word(p.Name)})
		}
	}
}

// about says whom the observations from now on are about.
func (e *Engine) about(s subject) {
	e.said = s
	if !e.subjects[s] {
		if len(e.subjects) >= maxSubjects {
			s.provider, s.model = "other", "other"
		} else {
			e.subjects[s] = true
		}
	}
	e.subject, e.itl = s, nil
}

// Request takes a request that has ended, with all its metrics: store.Options.OnRequest.
func (e *Engine) Request(r *store.Request) {
	e.mu.Lock()
	s, told := e.subject, e.live[r.ID]
	delete(e.live, r.ID)
	if e.ended != nil {
		e.ended[r.ID] = true
	}
	if r.Polled && r.TPOT.OK() {
		e.seen(event.TimesTPOT, int64(r.TPOT.V*1e9))
	}
	e.mu.Unlock()
	if !told && r.First != 0 {
		e.observed.first(s, r)
	}
	e.observed.last(s, r)
}

// look takes a snapshot and counts the requests that have had their first token since the last one and go on.
func (e *Engine) look() *store.Snapshot {
	e.mu.Lock()
	snapshot := e.snapshot
	if snapshot == nil {
		e.mu.Unlock()
		return nil
	}
	e.ended = make(map[event.RequestID]bool)
	e.mu.Unlock()
	v := snapshot() // may call Request

	e.mu.Lock()
	defer e.mu.Unlock()
	live := make(map[event.RequestID]bool)
	for _, r := range v.Requests {
		if r.State.Final() || r.First == 0 || e.ended[r.ID] {
			continue
		}
		if !e.live[r.ID] {
			e.observed.first(e.subject, r)
		}
		live[r.ID] = true
	}
	e.live, e.ended = live, nil
	return v
}

// maxWord is the most bytes of a text from outside in a label.
const maxWord = 128

// word makes a text from outside fit for the value of a label.
func word(s string) string {
	s = clean.Printable(strings.ToValidUTF8(s[:min(len(s), 4*maxWord)], ""))
	for len(s) > maxWord {
		_, size := utf8.DecodeLastRuneInString(s)
		s = s[:len(s)-size]
	}
	return s
}
