package exposition

import (
	"cmp"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/llmtop/llmtop/profiler/clean"
	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/store"
)

// EngineExporter exports one engine. It is a sink of the engine's events and receives from its store the gaps between
// tokens and the requests that have ended; Watch provides the snapshots.
type EngineExporter struct {
	label          *dto.LabelPair
	requestMetrics *requestMetrics
	spans          *spanQueue
	now            func() event.Time   // clock of the events
	epochs         map[[2]string]epoch // by instrument, and part of what it counts; guarded by Exporter.gather

	mu           sync.Mutex          // guards what follows; held for well below a microsecond
	labels       labelSet            // the engine's latest name and model
	seenLabels   map[labelSet]bool   // label sets seen so far
	itl          prometheus.Observer // for labels; nil before their first gap
	requestsSeen bool                // the engine reports single requests, not only polled ones and probes
	snapshot     func() *store.Snapshot
	running      map[event.RequestID]bool // running requests whose first token has been counted
	ended        map[event.RequestID]bool // requests that end while refresh takes a snapshot; nil at other times

	histograms map[string]*histogramTotals // counted by the engine, by name
}

// maxLabelSets is how many pairs of engine name and model one address exports individually; all others are exported as
// "other".
const maxLabelSets = 16

func newEngine(name string, o *requestMetrics, now func() event.Time) *EngineExporter {
	return &EngineExporter{
		label:          &dto.LabelPair{Name: new(engineAttr), Value: new(name)},
		labels:         labelSet{engine: name, provider: unknown},
		requestMetrics: o, epochs: make(map[[2]string]epoch), seenLabels: make(map[labelSet]bool), histograms: make(map[string]*histogramTotals),
		now: now,
	}
}

// Watch sets the function that returns snapshots; Gather exports their content.
func (e *EngineExporter) Watch(snapshot func() *store.Snapshot) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.snapshot = snapshot
}

// Emit implements event.Sink.
func (e *EngineExporter) Emit(ev event.Event) {
	switch ev.Kind {
	case event.KindAggregates:
		if p, ok := ev.Data.(*event.Aggregates); ok && p != nil {
			e.mu.Lock()
			defer e.mu.Unlock()
			e.addHistograms(p)
		}
	case event.KindEngine:
		if p, ok := ev.Data.(*event.EngineInfo); ok && p != nil {
			e.relabel(func(s *labelSet) { s.provider, s.proxied = cleanLabel(cmp.Or(p.Provider, p.Name)), p.Provider != "" })
		}
	case event.KindModel:
		if p, ok := ev.Data.(*event.Model); ok && p != nil {
			e.relabel(func(s *labelSet) { s.model = cleanLabel(p.Name) })
		}
	}
}

// relabel changes the labels, after the store has applied what was emitted before.
func (e *EngineExporter) relabel(change func(*labelSet)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	labels := e.labels
	if change(&labels); labels == e.labels {
		return
	}
	if apply := e.snapshot; apply != nil {
		e.mu.Unlock()
		apply() // may call Request and Gaps
		e.mu.Lock()
	}
	change(&e.labels)
	e.itl = nil
}

// bounded returns a label set, or one with "other" for provider and model above maxLabelSets. The caller holds the lock.
func (e *EngineExporter) bounded(s labelSet) labelSet {
	known := s
	known.operation = ""
	if !e.seenLabels[known] {
		if len(e.seenLabels) >= maxLabelSets {
			s.provider, s.model = "other", "other"
			return s
		}
		e.seenLabels[known] = true
	}
	return s
}

// labelsOf returns the labels of a request. The caller holds the lock.
func (e *EngineExporter) labelsOf(r *store.Request) labelSet {
	s := e.labels
	s.operation = operationOf(r.Chat)
	if r.Model != "" {
		s.model = cleanLabel(r.Model)
	}
	return e.bounded(s)
}

// Gaps counts n gaps of ns each between tokens of a request; pass it as store.Options.OnGaps.
func (e *EngineExporter) Gaps(r *store.Request, ns int64, n int) {
	if r.Probe { // counted at its end
		return
	}
	e.mu.Lock()
	into, s := e.itl, e.labelsOf(r)
	if into == nil || r.Model != "" {
		into = e.requestMetrics.latency(store.ITL, s)
	}
	if r.Model == "" {
		e.itl = into
	}
	e.mu.Unlock()
	for range n {
		into.Observe(float64(ns) / 1e9)
	}
	if s.proxied { // its clients receive a chunk per token event
		e.requestMetrics.chunk.WithLabelValues(s.genAI()...).Observe(float64(ns*int64(n)) / 1e9)
	}
}

// Request counts a request that has ended; pass it as store.Options.OnRequest.
func (e *EngineExporter) Request(r *store.Request) {
	e.mu.Lock()
	s, counted := e.labelsOf(r), e.running[r.ID]
	e.requestsSeen = e.requestsSeen || !r.Polled && !r.Probe
	delete(e.running, r.ID)
	if e.ended != nil {
		e.ended[r.ID] = true
	}
	e.mu.Unlock()
	if !counted && r.First != 0 {
		e.requestMetrics.firstToken(s, r)
	}
	e.requestMetrics.requestEnd(s, r)
	e.spans.add(s, r, e.now)
}

// refresh takes a snapshot and counts the running requests that have received their first token since the last one.
func (e *EngineExporter) refresh() *store.Snapshot {
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
		if r.State.Final() || r.First == 0 || r.ColdLater || e.ended[r.ID] {
			continue
		}
		if !e.running[r.ID] {
			e.requestsSeen = e.requestsSeen || !r.Probe
			e.requestMetrics.firstToken(e.labelsOf(r), r)
		}
		live[r.ID] = true
	}
	e.running, e.ended = live, nil
	return v
}

// maxLabel is the longest label value from outside, in bytes.
const maxLabel = 128

// cleanLabel makes a text from outside valid as a label value.
func cleanLabel(s string) string {
	s = clean.Line(strings.ToValidUTF8(s[:min(len(s), 4*maxLabel)], ""))
	for len(s) > maxLabel {
		_, size := utf8.DecodeLastRuneInString(s)
		s = s[:len(s)-size]
	}
	return s
}
