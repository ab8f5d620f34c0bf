package fleet

import (
	"bytes"
	"cmp"
	"slices"
	"strconv"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime/scrape/gather"
	"github.com/llmtop/llmtop/runtime/scrape/identify"
)

// replica is one engine of the fleet.
type replica struct {
	sink    event.Sink
	kind    identify.Kind
	from    *gather.Gatherer // nil: nothing was read
	engine  event.Engine
	told    event.Engine // as the sink knows it
	model   string
	sampled float64 // s since 1970, when Prometheus scraped what was read last; 0: nothing was
	up      float64 // s since 1970, when it answered last; 0: not known
}

// kindOf is the kind of engine that most of the lines are of.
func kindOf(lines []line) (best identify.Kind) {
	counts := make(map[identify.Kind]int)
	for i := range lines {
		if k, ok := gather.KindOf(lines[i].name); ok {
			if counts[k]++; counts[k] > counts[best] {
				best = k
			}
		}
	}
	return best
}

// read takes in what Prometheus scraped at a time, on its clock and on that of the session. The text of it is written into a buffer that all share.
func (r *replica) read(kind identify.Kind, lines []line, text *bytes.Buffer, at float64, moment event.Time) {
	if r.from == nil || r.kind != kind {
		r.kind, r.from, r.sampled = kind, gather.New(kind), 0
		r.engine.Name, r.engine.State = string(kind), event.EngineReady
	}
	write(text, lines)
	if err := r.from.Read(text); err != nil {
		return // of this scrape there is nothing of the engine
	}
	since := int64(0)
	if r.sampled > 0 {
		since = int64((at - r.sampled) * 1e9)
	}
	r.sampled, r.up = at, at
	if name := named(r.from.Models()); name != "" && name != r.model {
		r.model = name
		r.sink.Emit(event.Event{Kind: event.KindModel, At: moment, Layer: -1, Data: &event.Model{Name: name}})
	}
	r.engine.Remote.Restarts = r.from.Restarts
	r.sink.Emit(event.Event{Kind: event.KindReport, At: moment, Layer: -1, Data: r.from.Report(since)})
}

// named is the name of several models as one.
func named(models []string) string {
	switch len(models) {
	case 0:
		return ""
	case 1:
		return models[0]
	}
	return models[0] + " and " + strconv.Itoa(len(models)-1) + " more"
}

// write makes the text of the samples that a scrape of the replica would have had: series by series, buckets ascending.
func write(text *bytes.Buffer, lines []line) {
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

// link tells how it stands, where that has changed.
func (r *replica) link(link event.Link, since, now event.Time, why string) {
	e := &r.engine
	e.Remote.Turn(link, why, since)
	if *e == r.told {
		return
	}
	r.told = *e
	tell := *e
	r.sink.Emit(event.Event{Kind: event.KindEngine, At: now, Layer: -1, Data: &tell})
}
