package fleet

import (
	"bytes"
	"cmp"
	"slices"
	"strconv"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime/source/scrape/engine"
	"github.com/llmtop/llmtop/runtime/source/scrape/gather"
)

// replica is one engine of the fleet.
type replica struct {
	sink      event.Sink
	gatherer  *gather.Gatherer // nil: nothing was read yet
	engine    event.EngineInfo
	sent      event.EngineInfo // as last emitted
	model     string
	source    target  // of the last scrape that was read
	scrapedAt float64 // Unix time in s of it; 0: none
	lastUp    float64 // Unix time in s when it was last up; 0: unknown
}

// tableOf returns the metrics of the engine that has most of the lines, as they are named there; nil: none. Names without a
// stem, which engines share, count only if there are no others, and then for the first engine.
func (s *Poller) tableOf(lines []line) (best *gather.Table) {
	counts := make(map[*gather.Table]int)
	for i := range lines {
		t := s.tables[lines[i].name]
		if t == nil {
			continue
		}
		counts[t]++
		switch {
		case best == nil, best.IsBare() && !t.IsBare(),
			best.IsBare() && slices.Index(engine.Engines, s.engines[t]) < slices.Index(engine.Engines, s.engines[best]),
			!t.IsBare() && counts[t] > counts[best]:
			best = t
		}
	}
	return best
}

// read processes a scrape. at is its time on Prometheus' clock, moment on the session's. text is a buffer shared by all
// replicas.
func (r *replica) read(e *engine.Engine, as *gather.Table, lines []line, text *bytes.Buffer, at float64, moment event.Time) {
	if r.gatherer == nil || r.gatherer.Table != as {
		r.gatherer, r.scrapedAt = gather.New(as), 0
		r.engine.Name, r.engine.State = string(e.Kind), event.EngineReady
	}
	writeText(text, lines)
	r.gatherer.Now = at
	if err := r.gatherer.Read(text); err != nil {
		return // the scrape has no metrics of the engine
	}
	since := int64(0)
	if r.scrapedAt > 0 {
		since = int64((at - r.scrapedAt) * 1e9)
	}
	r.scrapedAt, r.lastUp = at, at
	if models := r.gatherer.Models(); len(models) > 0 {
		if name := engine.NameOf(models[0], len(models)); name != r.model {
			r.model = name
			r.sink.Emit(event.Event{Kind: event.KindModel, At: moment, Layer: -1, Data: &event.Model{Name: name}})
		}
	}
	r.engine.Remote.Restarts, r.engine.Remote.Malformed = r.gatherer.Restarts, uint64(r.gatherer.Malformed)
	report := r.gatherer.Report(since)
	why := ""
	if r.gatherer.Several() {
		why = gather.SeveralProcesses
	}
	if why != "" || as.Spelling != "" {
		report.Endpoints = []event.Endpoint{{Name: as.Named("target " + r.source.instance), Reason: why}}
	}
	r.sink.Emit(event.Event{Kind: event.KindAggregates, At: moment, Layer: -1, Data: report})
}

// writeText writes samples as a metrics text: series by series, buckets in ascending order.
func writeText(text *bytes.Buffer, lines []line) {
	slices.SortFunc(lines, func(a, b line) int {
		return cmp.Or(cmp.Compare(a.name, b.name), cmp.Compare(a.labels, b.labels), cmp.Compare(a.bound, b.bound))
	})
	text.Reset()
	for i := range lines {
		l := &lines[i]
		text.WriteString(l.name)
		text.WriteByte('{')
		text.WriteString(l.labels)
		if l.le != "" {
			text.WriteString(`le="` + escape.Replace(l.le) + `"`)
		}
		text.WriteString("} ")
		text.Write(strconv.AppendFloat(text.AvailableBuffer(), l.value, 'g', -1, 64))
		text.WriteByte('\n')
	}
}

// setLink emits the connection state if it has changed.
func (r *replica) setLink(link event.Link, since, now event.Time, why string) {
	e := &r.engine
	e.Remote.Update(link, why, since)
	if *e == r.sent {
		return
	}
	r.sent = *e
	info := *e
	r.sink.Emit(event.Event{Kind: event.KindEngine, At: now, Layer: -1, Data: &info})
}
