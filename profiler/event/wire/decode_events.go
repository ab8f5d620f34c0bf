package wire

import (
	"math"
	"slices"
	"strings"

	"github.com/llmtop/llmtop/profiler/event"
)

func (d *Decoder) readStage() bool {
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
			v, _ := s.unsigned()
			d.event.Req = event.RequestID(v)
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

func (d *Decoder) readRequest() bool {
	d.event.Kind = event.KindRequest
	s, state := &d.scan, ""
	var q event.Request
	var o event.Outcome
	d.members(func(key []byte) bool {
		switch string(key) {
		case "r":
			v, _ := s.unsigned()
			d.event.Req = event.RequestID(v)
		case "state":
			state = d.string()
		case "group":
			q.Group = d.string()
		case "label":
			q.Label = d.string()
		case "name":
			q.Name = d.string()
		case "prompt":
			q.Prompt = string(d.text(nil, MaxString))
		case "max":
			q.MaxTokens = int(d.int32())
		case "cold":
			q.Cold = s.boolean()
		case "probe":
			q.Probe = s.boolean()
		case "told":
			q.Retrospective = s.boolean()
		case "why":
			o.Reason = d.string()
		case "in":
			o.Prompt = int(d.int32())
		case "cached":
			o.Cached = int(d.int32())
		case "pad":
			o.Padding = int(d.int32())
		case "out":
			o.Generated = int(d.int32())
		case "decode":
			o.Decode = d.count()
		case "sse":
			o.Answer = d.readAnswer()
		default:
			return false
		}
		return true
	})
	if !d.require(d.event.Req != 0, "request") || !d.require(state != "", "state") {
		return false
	}
	d.event.State = event.State(max(slices.Index(states[:], state), 0))
	switch {
	case d.event.State == event.StateQueued:
		d.event.Data = &q
	case d.event.State.Final():
		d.event.Data = &o
	}
	return d.event.State != event.StateNone
}

func (d *Decoder) readExperts() bool {
	p := new(event.Experts)
	d.event.Kind, d.event.Data = event.KindExperts, p
	d.members(func(key []byte) bool {
		switch string(key) {
		case "layers":
			p.Layers = int(d.int32())
		case "experts":
			p.Experts = int(d.int32())
		case "used":
			p.Used = int(d.int32())
		case "every":
			p.EveryN = int(d.int32())
		case "p":
			p.Prompt = d.counts(p.Prompt)
		case "d":
			p.Decode = d.counts(p.Decode)
		case "pt":
			p.PromptTokens, _ = d.unsigned()
		case "dt":
			p.DecodeTokens, _ = d.unsigned()
		default:
			return false
		}
		return true
	})
	n := p.Layers * p.Experts
	fits := p.Layers >= 1 && p.Layers <= MaxLayers && p.Experts >= 1 && p.Experts <= MaxExperts &&
		(len(p.Prompt) == n || p.Prompt == nil) && (len(p.Decode) == n || p.Decode == nil)
	return d.require(fits, "layers and experts that match the counts")
}

// counts reads an array of cumulative counts; nil if there is none.
func (d *Decoder) counts(list []uint64) []uint64 {
	s := &d.scan
	list = list[:0]
	if !s.open('[') {
		return nil
	}
	for s.more(']') {
		v, ok := d.unsigned()
		if !ok {
			s.fail("expected a count")
		}
		list = append(list, v)
	}
	return list
}

func (d *Decoder) readKV() bool {
	p := new(event.KV)
	d.event.Kind, d.event.Data = event.KindKV, p
	var used, total bool
	d.members(func(key []byte) bool {
		switch string(key) {
		case "used":
			p.Used, used = d.cells()
		case "total":
			p.Total, total = d.cells()
		case "page":
			p.Page = d.count()
		case "pinned":
			p.Pinned, _ = d.time()
		case "freed":
			p.Freed = d.count()
		case "held":
			p.Residency = d.count()
		default:
			return false
		}
		return true
	})
	return d.require(used && total, "cells")
}

// cells reads a number of cells; false if there is none.
func (d *Decoder) cells() (int64, bool) {
	v, ok := d.unsigned()
	return int64(v), ok
}

func (d *Decoder) readLog() bool {
	d.event.Kind = event.KindLog
	d.members(func(key []byte) bool {
		if string(key) != "m" {
			return false
		}
		d.event.Text = d.string()
		return true
	})
	return d.require(true, "")
}

func (d *Decoder) readCounters() bool {
	p := new(event.Counters)
	d.event.Kind, d.event.Data = event.KindCounters, p
	s := &d.scan
	d.members(func(key []byte) bool {
		if string(key) != "c" {
			return false
		}
		if !s.open('{') {
			return true
		}
		for s.more('}') {
			name := valid(s.key())
			if v, ok := d.float(); ok && len(p.Values) < MaxCount {
				p.Values = append(p.Values, event.Counter{Name: name, Value: v})
			}
		}
		return true
	})
	slices.SortStableFunc(p.Values, func(a, b event.Counter) int { return strings.Compare(a.Name, b.Name) })
	slices.Reverse(p.Values) // keep the last of duplicate names
	p.Values = slices.CompactFunc(p.Values, func(a, b event.Counter) bool { return a.Name == b.Name })
	slices.Reverse(p.Values)
	return d.require(true, "")
}
