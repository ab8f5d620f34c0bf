package wire

import (
	"math"
	"slices"
	"strconv"

	"github.com/llmtop/llmtop/profiler/event"
)

// lineType is how lines of one type are written and read.
type lineType struct {
	name   string
	append func(dst []byte, e *event.Event) ([]byte, bool) // appends the members; false if the event does not fit a line
	read   func(d *Decoder) (missing string)               // reads the members into d.event
}

// lineTypes are the types of lines with events.
var lineTypes = [event.NumKinds]lineType{
	event.KindEngine:      line("engine", engineOf, event.EngineInfo{State: event.EngineReady}, setEngine),
	event.KindModel:       line("model", modelOf, modelLine{}, setModel),
	event.KindRequest:     {"req", appendRequest, readRequest},
	event.KindStage:       line("stage", stageOf, stageLine{Layer: -1, Dur: -1}, setStage),
	event.KindToken:       {"tok", appendToken, readTokens},
	event.KindExperts:     payload("experts", misfit),
	event.KindKV:          line("kv", cellsOf, event.KV{Used: -1, Total: -1}, setCells),
	event.KindStep:        {"step", appendStep, readSteps},
	event.KindHost:        payload[event.Host]("host", nil),
	event.KindLog:         {"log", appendLog, readLog},
	event.KindDrops:       line("lost", dropsOf, sessionLine{Events: -1}, setDrops), // also a line about the connection
	event.KindCounters:    payload[event.Counters]("count", nil),
	event.KindAggregates:  payload[event.Aggregates]("report", nil),
	event.KindOps:         line("ops", opsOf, opsLine{}, setOps),
	event.KindSpeculation: line("draft", draftsOf, draftLine{}, setDrafts),
	event.KindUsage:       payload[event.Usage]("usage", nil),
}

// line is a type of line whose members are those of a T. of returns it, or nil if the event does not fit a line. set
// completes the event with what was read, beginning with blank, and returns what is missing.
func line[T any](name string, of func(*event.Event) *T, blank T, set func(d *Decoder, p *T) (missing string)) lineType {
	return lineType{name, func(dst []byte, e *event.Event) ([]byte, bool) {
		p := of(e)
		if p == nil {
			return dst, false
		}
		return appendMembers(dst, p), true
	}, func(d *Decoder) string {
		p := new(T)
		*p = blank
		d.readMembers(p)
		return set(d, p)
	}}
}

// payload is a line whose members are those of the payload. misfit, if any, returns what is inconsistent.
func payload[T any](name string, misfit func(*T) string) lineType {
	var blank T
	return line(name, func(e *event.Event) *T {
		p := dataOf[T](e)
		if p == nil || misfit != nil && misfit(p) != "" {
			return nil
		}
		return p
	}, blank, func(d *Decoder, p *T) string {
		if d.event.Data = p; misfit != nil {
			return misfit(p)
		}
		return ""
	})
}

// dataOf returns the payload of an event; nil if it has no T.
func dataOf[T any](e *event.Event) *T {
	p, _ := e.Data.(*T)
	return p
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

// engineOf returns the engine with the wall clock at the time of the line instead of its epoch.
func engineOf(e *event.Event) *event.EngineInfo {
	p := dataOf[event.EngineInfo](e)
	if p == nil || p.Epoch == 0 {
		return p
	}
	engine := *p
	engine.Epoch = event.Add(p.Epoch, int64(bounded(e.At)))
	return &engine
}

func setEngine(d *Decoder, p *event.EngineInfo) string {
	if d.event.Kind, d.event.Data = event.KindEngine, p; p.Epoch != 0 {
		p.Epoch -= int64(d.event.At)
	}
	return ""
}

// modelLine is a model with the ns that loading it took.
type modelLine struct {
	LoadTime int64 `wire:"dur"`
	event.Model
}

func modelOf(e *event.Event) *modelLine {
	if p := dataOf[event.Model](e); p != nil {
		return &modelLine{e.Dur, *p}
	}
	return nil
}

func setModel(d *Decoder, p *modelLine) string {
	d.event.Dur, d.event.Data = p.LoadTime, &p.Model
	return ""
}

// stageLine is a stage. The event itself has its members.
type stageLine struct {
	Dur   int64           `wire:"dur,optional"`
	Stage string          `wire:"stage"`
	Name  string          `wire:"name"`
	Req   event.RequestID `wire:"r"`
	Layer int32           `wire:"l,optional"`
	N     int32           `wire:"n"`
	Calls event.Calls     `wire:"cuda"`
}

func stageOf(e *event.Event) *stageLine {
	p := &stageLine{Dur: max(e.Dur, 0), Stage: e.Text, Req: e.Req, Layer: int32(e.Layer), N: e.N}
	if c := dataOf[event.Calls](e); c != nil {
		p.Calls = *c
	}
	if e.Stage != event.StageNone {
		p.Stage, p.Name = e.Stage.String(), e.Text
	}
	if p.Stage == "" {
		return nil
	}
	return p
}

func setStage(d *Decoder, p *stageLine) string {
	e, ok := &d.event, false
	if e.Stage, ok = event.StageByName(p.Stage); !ok {
		p.Name = p.Stage
	}
	e.Dur, e.Text, e.Req, e.N = p.Dur, p.Name, p.Req, p.N
	if p.Calls != (event.Calls{}) {
		e.Data = &p.Calls
	}
	if p.Layer <= math.MaxInt16 {
		e.Layer = int16(p.Layer)
	}
	switch {
	case p.Dur < 0:
		return "duration"
	case p.Stage == "":
		return "stage"
	}
	return ""
}

func appendLog(dst []byte, e *event.Event) ([]byte, bool) {
	return appendString(key(dst, "m"), e.Text), true
}

func readLog(d *Decoder) string {
	var p struct {
		Text string `wire:"m"`
	}
	d.readMembers(&p)
	d.event.Text = p.Text
	return ""
}

func appendRequest(dst []byte, e *event.Event) ([]byte, bool) {
	if e.State == event.StateNone || e.State >= event.NumStates || e.Req == 0 {
		return dst, false
	}
	dst = appendString(key(strconv.AppendUint(key(dst, "r"), uint64(e.Req), 10), "state"), states[e.State])
	if p := dataOf[event.Request](e); p != nil {
		dst = appendMembers(dst, p)
	}
	if p := dataOf[event.Outcome](e); p != nil {
		o := *p
		if o.Cached = max(o.Cached, 0); o.AnyCached {
			o.Cached = -1
		}
		dst = appendMembers(dst, &o)
	}
	return dst, true
}

func readRequest(d *Decoder) string {
	var p struct {
		Req   event.RequestID `wire:"r"`
		State string          `wire:"state"`
		event.Request
		event.Outcome
	}
	p.Cached = -1
	d.readMembers(&p)
	e := &d.event
	e.Req, e.State = p.Req, stateByName(p.State)
	switch q, o := p.Request, p.Outcome; {
	case p.Req == 0:
		return "request"
	case p.State == "":
		return "state"
	case e.State == event.StateQueued:
		q.PromptTokens = max(q.PromptTokens, o.Prompt)
		e.Data = &q
	case e.State.Final():
		o.Prompt = max(q.PromptTokens, o.Prompt) // both have this member
		o.Cached, o.AnyCached = max(o.Cached, 0), o.Cached < 0
		e.Data = &o
	default:
		d.silent = e.State == event.StateNone
	}
	return ""
}

// states are the names of request states in lines.
var states = [event.NumStates]string{"", "queued", "dispatched", "finished", "cancelled", "failed", "unseen"}

// stateByName returns the state of a name; event.StateNone if it is unknown.
func stateByName[T string | []byte](name T) event.State {
	return event.State(max(slices.Index(states[:], string(name)), 0))
}

// misfit returns what the counts of experts do not match.
func misfit(p *event.Experts) string {
	n := p.Layers * p.Experts
	if p.Layers < 1 || p.Layers > MaxLayers || p.Experts < 1 || p.Experts > MaxExperts ||
		len(p.Prompt) != n && len(p.Prompt) != 0 || len(p.Decode) != n && len(p.Decode) != 0 {
		return "layers and experts that match the counts"
	}
	return ""
}

// cellsOf returns the state of the cache with cells that readers take.
func cellsOf(e *event.Event) *event.KV {
	p := dataOf[event.KV](e)
	if p == nil {
		return nil
	}
	kv := *p
	kv.Used, kv.Total = max(kv.Used, 0), max(kv.Total, 0)
	return &kv
}

func setCells(d *Decoder, p *event.KV) string {
	if d.event.Data = p; p.Used < 0 || p.Total < 0 {
		return "cells"
	}
	return ""
}
