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

// EngineExporter exports one engine. It is a sink of the engine's events and receives its requests as they end; Watch
// provides the snapshots.
type EngineExporter struct {
	label          *dto.LabelPair
	requestMetrics *requestMetrics
	spans          *spanQueue
	cells          cells // guarded by Exporter.gather, like epochs
	epochs         map[counterKey]epoch

	mu           sync.Mutex          // guards what follows; held for well below a microsecond
	labels       labelSet            // the engine's latest name and model
	seenLabels   map[labelSet]bool   // label sets seen so far
	itl          prometheus.Observer // for labels; nil before their first gap
	requestsSeen bool                // the engine reports single requests, not only polled ones and probes
	gaps         gaps
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
		requestMetrics: o, epochs: make(map[counterKey]epoch), seenLabels: make(map[labelSet]bool), histograms: make(map[string]*histogramTotals),
		gaps: gaps{now: now, requests: make(map[event.RequestID]*trackedRequest)},
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
	case event.KindToken:
		e.mu.Lock()
		n, ns := e.gaps.token(&ev)
		var into prometheus.Observer
		if n > 0 {
			into = e.itlOf(e.gaps.requests[ev.Req].model)
			e.chunk(&ev, int64(n)*ns)
		}
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
	case event.KindAggregates:
		if p, ok := ev.Data.(*event.Aggregates); ok && p != nil {
			e.mu.Lock()
			defer e.mu.Unlock()
			e.addHistograms(p)
		}
	case event.KindEngine:
		if p, ok := ev.Data.(*event.EngineInfo); ok && p != nil {
			e.mu.Lock()
			defer e.mu.Unlock()
			e.labels.provider, e.labels.proxied, e.itl = cleanLabel(cmp.Or(p.Provider, p.Name)), p.Provider != "", nil
		}
	case event.KindModel:
		if p, ok := ev.Data.(*event.Model); ok && p != nil {
			e.mu.Lock()
			defer e.mu.Unlock()
			e.labels.model, e.itl = cleanLabel(p.Name), nil
		}
	}
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

// itlOf returns the histogram of gaps for a model; "": the loaded one. The caller holds the lock.
func (e *EngineExporter) itlOf(model string) prometheus.Observer {
	s := e.labels
	if model != "" {
		s.model = model
		return e.requestMetrics.latency(store.ITL, e.bounded(s))
	}
	if e.itl == nil {
		e.itl = e.requestMetrics.latency(store.ITL, e.bounded(s))
	}
	return e.itl
}

// chunk counts the ns between two chunks that a client received. The caller holds the lock.
func (e *EngineExporter) chunk(ev *event.Event, ns int64) {
	if !e.labels.proxied {
		return
	}
	r := e.gaps.requests[ev.Req]
	s := e.labels
	s.operation, s.model = operationOf(r.chat), cmp.Or(r.model, s.model)
	e.requestMetrics.chunk.WithLabelValues(e.bounded(s).genAI()...).Observe(float64(ns) / 1e9)
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
	e.spans.add(s, r, e.gaps.now)
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
