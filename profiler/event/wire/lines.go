package wire

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/llmtop/llmtop/profiler/event"
)

// lineType is how events of one kind are written and read.
type lineType struct {
	name   string
	append func(dst []byte, e *event.Event) ([]byte, bool) // appends the members; false if the payload is invalid
	read   func(d *Decoder) bool                           // reads the members; false if there are no events
}

// lineTypes are the types of lines with events.
var lineTypes = [event.NumKinds]lineType{
	event.KindEngine:      payload("engine", appendEngineLine, readEngineLine),
	event.KindModel:       payload("model", appendModelLine, readModelLine),
	event.KindRequest:     {"req", appendRequest, readRequest},
	event.KindStage:       {"stage", appendStage, readStage},
	event.KindToken:       {"tok", appendToken, readTokens},
	event.KindExperts:     payload("experts", appendExperts, readExperts),
	event.KindKV:          payload("kv", always(kvFields.append), readKV),
	event.KindStep:        {"step", appendStep, readSteps},
	event.KindHost:        payload("host", always(appendHost), (*Decoder).readHost),
	event.KindLog:         {"log", appendLog, readLog},
	event.KindDrops:       payload("lost", always(appendDrops), readSession), // also a line about the connection
	event.KindCounters:    payload("count", always(appendCounters), readCounters),
	event.KindAggregates:  payload("report", always(aggregatesFields.append), readAggregates),
	event.KindOps:         payload("ops", appendOps, readOps),
	event.KindSpeculation: payload("draft", appendSpeculation, readSpeculation),
	event.KindUsage:       payload("usage", always(appendUsage), (*Decoder).readUsage),
}

// payload is a line with the members of a payload. appendTo returns false if they are inconsistent.
func payload[T any](name string, appendTo func([]byte, *event.Event, *T) ([]byte, bool), read func(d *Decoder) bool) lineType {
	return lineType{name, func(dst []byte, e *event.Event) ([]byte, bool) {
		p, ok := e.Data.(*T)
		if !ok || p == nil {
			return dst, false
		}
		return appendTo(dst, e, p)
	}, read}
}

// always adapts a function that appends every payload.
func always[T any](appendTo func(dst []byte, p *T) []byte) func([]byte, *event.Event, *T) ([]byte, bool) {
	return func(dst []byte, _ *event.Event, p *T) ([]byte, bool) { return appendTo(dst, p), true }
}

// appendEvent appends the line of an event; false if its payload is missing or inconsistent.
func appendEvent(dst []byte, e *event.Event) ([]byte, bool) {
	if e.Kind >= event.NumKinds {
		return dst, false
	}
	t := &lineTypes[e.Kind]
	dst = append(append(append(dst, `{"t":"`...), t.name...), `","a":`...)
	dst, ok := t.append(appendTime(dst, e.At), e)
	return append(dst, '}'), ok
}

// A stage and a log line have no payload: the event itself has their members.

func appendStage(dst []byte, e *event.Event) ([]byte, bool) {
	name, more := e.Text, ""
	if e.Stage != event.StageNone {
		name, more = e.Stage.String(), e.Text
	}
	dst = appendInt(key(dst, "dur"), max(e.Dur, 0))
	dst = word(word(dst, "stage", name), "name", more)
	dst = identifier(dst, "r", uint64(e.Req))
	if e.Layer >= 0 {
		dst = strconv.AppendInt(key(dst, "l"), int64(e.Layer), 10)
	}
	return natural(dst, "n", e.N), name != ""
}

func readStage(d *Decoder) bool {
	d.event.Kind = event.KindStage
	s, timed, name, more := &d.scan, false, "", ""
	d.members(func(key []byte) bool {
		switch string(key) {
		case "name":
			more = d.string()
		case "dur":
			v, ok := s.signed()
			if d.event.Dur, timed = v, ok && v >= 0; timed && !event.PlausibleCount(v) {
				d.implausible()
			}
		case "stage":
			name = d.string()
		case "r":
			d.event.Req = event.RequestID(d.identifier())
		case "l":
			if v, ok := s.signed(); ok && v >= 0 && v <= math.MaxInt16 {
				d.event.Layer = int16(v)
			}
		case "n":
			d.event.N = d.int32()
		default:
			return false
		}
		return true
	})
	stage, known := event.StageByName(name)
	d.event.Stage, d.event.Text = stage, more
	if !known {
		d.event.Text = name
	}
	return d.require(timed, "duration") && d.require(name != "", "stage")
}

func appendLog(dst []byte, e *event.Event) ([]byte, bool) {
	return appendString(key(dst, "m"), e.Text), true
}

func readLog(d *Decoder) bool {
	d.event.Kind = event.KindLog
	d.members(func(name []byte) bool {
		if string(name) != "m" {
			return false
		}
		d.event.Text = d.string()
		return true
	})
	return d.require(true, "")
}

// A req line has the members of a request or of its outcome.
var (
	requestFields = fields[event.Request]{
		member("group", texts, func(p *event.Request) *string { return &p.Group }),
		member("label", texts, func(p *event.Request) *string { return &p.Label }),
		member("name", texts, func(p *event.Request) *string { return &p.Name }),
		member("model", texts, func(p *event.Request) *string { return &p.Model }),
		member("chat", flags, func(p *event.Request) *bool { return &p.Chat }),
		member("prompt", prompts, func(p *event.Request) *string { return &p.Prompt }),
		member("max", sizes, func(p *event.Request) *int { return &p.MaxTokens }),
		member("cold", flags, func(p *event.Request) *bool { return &p.Cold }),
		member("cold_later", flags, func(p *event.Request) *bool { return &p.ColdLater }),
		member("probe", flags, func(p *event.Request) *bool { return &p.Probe }),
		member("told", flags, func(p *event.Request) *bool { return &p.Retrospective }),
	}
	reuseFields = fields[event.Reuse]{
		member("with", requestIDs, func(p *event.Reuse) *event.RequestID { return &p.With }),
		member("why", enum(event.BreakNone, event.BreakTokens), func(p *event.Reuse) *event.BreakKind { return &p.Kind }),
		member("place", texts, func(p *event.Reuse) *string { return &p.Place }),
		member("at", sizes, func(p *event.Reuse) *int { return &p.At }),
		member("common", sizes, func(p *event.Reuse) *int { return &p.Common }),
		member("same", sizes, func(p *event.Reuse) *int { return &p.Same }),
		member("bytes", sizes, func(p *event.Reuse) *int { return &p.Bytes }),
	}
	outcomeFields = fields[event.Outcome]{
		member("why", texts, func(p *event.Outcome) *string { return &p.Reason }),
		member("in", totals, func(p *event.Outcome) *int { return &p.Prompt }),
		{"cached", appendCached, readCached},
		member("pad", sizes, func(p *event.Outcome) *int { return &p.Padding }),
		member("out", totals, func(p *event.Outcome) *int { return &p.Generated }),
		member("later", sizes, func(p *event.Outcome) *int { return &p.Later }),
		member("any_later", flags, func(p *event.Outcome) *bool { return &p.AnyLater }),
		member("was_cold", flags, func(p *event.Outcome) *bool { return &p.Cold }),
		member("decode", counts, func(p *event.Outcome) *int64 { return &p.Decode }),
		object("reuse", reuseFields, false, func(p *event.Outcome) *event.Reuse { return &p.Reuse }),
		member("asked", moments, func(p *event.Outcome) *event.Time { return &p.Asked }),
	}
)

// appendCached appends the cached tokens, 0 included, unless they are unknown.
func appendCached(dst []byte, p *event.Outcome) []byte {
	if p.AnyCached {
		return dst
	}
	return totals.append(dst, "cached", p.Cached)
}

func readCached(d *Decoder, p *event.Outcome) {
	v, ok := d.scan.signed()
	if ok = ok && v >= 0; ok && !event.PlausibleCount(v) {
		d.implausible()
	}
	p.Cached, p.AnyCached = int(min(max(v, 0), math.MaxInt32)), !ok
}

func appendRequest(dst []byte, e *event.Event) ([]byte, bool) {
	if e.State == event.StateNone || e.State >= event.NumStates || e.Req == 0 {
		return dst, false
	}
	dst = word(identifier(dst, "r", uint64(e.Req)), "state", states[e.State])
	switch p := e.Data.(type) {
	case *event.Request:
		if p != nil {
			dst = requestFields.append(dst, p)
		}
	case *event.Outcome:
		if p != nil {
			dst = outcomeFields.append(dst, p)
		}
	}
	return dst, true
}

func readRequest(d *Decoder) bool {
	d.event.Kind = event.KindRequest
	state, q, o, next := "", new(event.Request), &event.Outcome{AnyCached: true}, 0
	requestFields.members(d, q, func(name []byte) bool {
		switch string(name) {
		case "r":
			d.event.Req = event.RequestID(d.identifier())
			return true
		case "state":
			state = d.string()
			return true
		}
		return outcomeFields.member(d, o, name, &next)
	})
	if !d.require(d.event.Req != 0, "request") || !d.require(state != "", "state") {
		return false
	}
	d.event.State = event.State(max(slices.Index(states[:], state), 0))
	switch {
	case d.event.State == event.StateQueued:
		d.event.Data = q
	case d.event.State.Final():
		d.event.Data = o
	}
	return d.event.State != event.StateNone
}

var expertsFields = fields[event.Experts]{
	member("layers", sizes, func(p *event.Experts) *int { return &p.Layers }),
	member("experts", sizes, func(p *event.Experts) *int { return &p.Experts }),
	member("used", sizes, func(p *event.Experts) *int { return &p.Used }),
	member("every", sizes, func(p *event.Experts) *int { return &p.EveryN }),
	member("p", countLists, func(p *event.Experts) *[]uint64 { return &p.Prompt }),
	member("d", countLists, func(p *event.Experts) *[]uint64 { return &p.Decode }),
	member("pt", unsigned, func(p *event.Experts) *uint64 { return &p.PromptTokens }),
	member("dt", unsigned, func(p *event.Experts) *uint64 { return &p.DecodeTokens }),
}

// fits reports whether the counts of experts match its layers and experts.
func fits(p *event.Experts) bool {
	n := p.Layers * p.Experts
	return p.Layers >= 1 && p.Layers <= MaxLayers && p.Experts >= 1 && p.Experts <= MaxExperts &&
		(len(p.Prompt) == n || len(p.Prompt) == 0) && (len(p.Decode) == n || len(p.Decode) == 0)
}

func appendExperts(dst []byte, _ *event.Event, p *event.Experts) ([]byte, bool) {
	if !fits(p) {
		return dst, false
	}
	return expertsFields.append(dst, p), true
}

func readExperts(d *Decoder) bool {
	p := new(event.Experts)
	d.event.Kind, d.event.Data = event.KindExperts, p
	expertsFields.members(d, p, unknownMember)
	return d.require(fits(p), "layers and experts that match the counts")
}

// noCells marks a missing number of cells.
const noCells = -1

// cells are required. Negative ones are missing.
var cells = value[int64]{
	func(dst []byte, name string, v int64) []byte { return appendInt(key(dst, name), max(v, 0)) },
	func(d *Decoder) int64 {
		if v, ok := d.unsigned(); ok {
			return int64(v)
		}
		return noCells
	},
}

var kvFields = fields[event.KV]{
	member("used", cells, func(p *event.KV) *int64 { return &p.Used }),
	member("total", cells, func(p *event.KV) *int64 { return &p.Total }),
	member("page", counts, func(p *event.KV) *int64 { return &p.Page }),
	member("pinned", moments, func(p *event.KV) *event.Time { return &p.Pinned }),
	member("freed", counts, func(p *event.KV) *int64 { return &p.Freed }),
	member("held", counts, func(p *event.KV) *int64 { return &p.Residency }),
}

func readKV(d *Decoder) bool {
	p := &event.KV{Used: noCells, Total: noCells}
	d.event.Kind, d.event.Data = event.KindKV, p
	kvFields.members(d, p, unknownMember)
	return d.require(p.Used != noCells && p.Total != noCells, "cells")
}

// A lost line has an object of counts by kind, a count line one of numbers by name.

func appendDrops(dst []byte, p *event.Drops) []byte {
	dst = append(key(dst, "by"), '{')
	for k, n := range p {
		if n > 0 {
			dst = appendCount(key(dst, event.Kind(k).String()), n)
		}
	}
	return append(dst, '}')
}

func readDrops(d *Decoder, p *event.Drops) {
	for name := range d.names() {
		k := kindByName(name)
		v, _ := d.unsigned()
		p[k] = event.AddCount(p[k], v)
	}
}

func appendCounters(dst []byte, p *event.Counters) []byte {
	dst = append(key(dst, "c"), '{')
	for _, c := range p.Values[:min(len(p.Values), MaxCount)] {
		dst = appendFloat(anyKey(dst, c.Name), c.Value, 64)
	}
	return append(dst, '}')
}

func readCounters(d *Decoder) bool {
	p := new(event.Counters)
	d.event.Kind, d.event.Data = event.KindCounters, p
	d.members(func(name []byte) bool {
		if string(name) != "c" {
			return false
		}
		for name := range d.names() {
			name := valid(name)
			if v, ok := d.float(); ok && len(p.Values) < MaxCount {
				p.Values = append(p.Values, event.Counter{Name: name, Value: v})
			}
		}
		return true
	})
	p.Values = lastByName(p.Values, func(c event.Counter) string { return c.Name })
	return d.require(true, "")
}

// lastByName sorts a list by name and keeps the last of duplicate names.
func lastByName[T any](list []T, name func(T) string) []T {
	slices.SortStableFunc(list, func(a, b T) int { return strings.Compare(name(a), name(b)) })
	slices.Reverse(list)
	list = slices.CompactFunc(list, func(a, b T) bool { return name(a) == name(b) })
	slices.Reverse(list)
	return list
}
