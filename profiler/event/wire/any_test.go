package wire

import (
	"math"
	"slices"
	"strings"

	"pgregory.net/rapid"

	"github.com/llmtop/llmtop/profiler/event"
)

// The generators make all events that come back as they were: those whose numbers mean something.

func anyEvent(r *rapid.T) event.Event {
	return anyOf(r, event.Kind(rapid.IntRange(0, int(event.NumKinds)-1).Draw(r, "kind")))
}

func anyOf(r *rapid.T, kind event.Kind) event.Event {
	e := event.Event{Kind: kind, Layer: -1, At: event.Time(rapid.Int64Range(-1<<62, 1<<62).Draw(r, "at"))}
	switch kind {
	case event.KindToken:
		anyToken(r, &e)
	case event.KindStep:
		e.Dur, e.Step, e.N, e.Prompt, e.Split = count(r), uint64(count(r)), small(r), small(r), anySplit(r)
		if rapid.Bool().Draw(r, "pass") {
			e.Data = anyPass(r)
		}
	case event.KindStage:
		e.Dur, e.Req, e.N, e.Layer = count(r), event.RequestID(rapid.Uint64().Draw(r, "req")), small(r), int16(small(r)%512)-1
		e.Stage = event.Stage(rapid.IntRange(0, int(event.NumStages)-1).Draw(r, "stage"))
		if e.Stage == event.StageNone || rapid.Bool().Draw(r, "named") {
			e.Text = "own_" + str(r)
		}
	case event.KindRequest:
		anyRequest(r, &e)
	case event.KindLog:
		e.Text = str(r)
	case event.KindModel:
		e.Dur, e.Data = count(r), anyModel(r)
	default:
		e.Data = anyPayload(r, kind, e.At)
	}
	return e
}

func anyToken(r *rapid.T, e *event.Event) {
	e.Req = event.RequestID(rapid.Uint64Range(1, math.MaxUint64).Draw(r, "req"))
	e.ID, e.Index, e.N, e.Step = small(r)-1, small(r)-1, small(r), uint64(count(r))
	e.HasLogP = rapid.Bool().Draw(r, "told")
	if e.HasLogP {
		e.LogP = rapid.Float32().Draw(r, "logp")
	}
	e.Split = anySplit(r)
	if rapid.Bool().Draw(r, "raw") {
		e.Text = string(rapid.SliceOf(rapid.Byte()).Draw(r, "bytes"))
	} else {
		e.Text = str(r)
	}
	for range rapid.IntRange(0, 3).Draw(r, "tops") {
		e.Top = append(e.Top, event.TopProb{ID: small(r), LogP: rapid.Float32().Draw(r, "logp"), Text: str(r)})
	}
	if p := rapid.SliceOf(rapid.Uint16()).Draw(r, "picks"); len(p) > 0 {
		e.Picks = p
	}
}

func anyRequest(r *rapid.T, e *event.Event) {
	e.Req = event.RequestID(rapid.Uint64Range(1, math.MaxUint64).Draw(r, "req"))
	e.State = event.State(rapid.IntRange(1, int(event.NumStates)-1).Draw(r, "state"))
	switch {
	case e.State == event.StateQueued:
		e.Data = &event.Request{
			Group: str(r), Label: str(r), Name: str(r), Prompt: str(r), MaxTokens: int(small(r)),
			Cold: rapid.Bool().Draw(r, "cold"), Probe: rapid.Bool().Draw(r, "probe"), Told: rapid.Bool().Draw(r, "told"),
		}
	case e.State.Final():
		e.Data = &event.Outcome{
			Reason: str(r), Prompt: int(small(r)), Cached: int(small(r)), Padding: int(small(r)), Generated: int(small(r)), Decode: count(r), Answer: anyAnswer(r, e.At),
		}
	}
}

func anyAnswer(r *rapid.T, at event.Time) *event.Answer {
	if !rapid.Bool().Draw(r, "over HTTP") {
		return nil
	}
	a := &event.Answer{Began: at, Chat: rapid.Bool().Draw(r, "chat")}
	for range rapid.IntRange(0, 4).Draw(r, "messages") {
		at += event.Time(small(r))
		a.Messages = append(a.Messages, event.Message{At: at, Kind: event.MessageKind(rapid.Uint8Range(0, 31).Draw(r, "kind"))})
	}
	return a
}

func anyPayload(r *rapid.T, kind event.Kind, at event.Time) any {
	switch kind {
	case event.KindEngine:
		return &event.Engine{
			Name: str(r), Version: str(r), PID: int(small(r)), Device: event.Device{Name: str(r), Kernels: str(r), Host: true, Threads: int(small(r))},
			Caps: event.Caps(rapid.Uint32Range(0, 1<<len(caps)-1).Draw(r, "caps")), Slots: int(small(r)),
			Pace: rapid.Float64Range(0, 1e9).Draw(r, "pace"), Reason: str(r),
			State:  event.EngineState(rapid.IntRange(0, int(event.EnginePaused)).Draw(r, "state")),
			Remote: event.Remote{Address: str(r), Link: event.LinkStale, Since: at, Why: str(r), Restarts: int(small(r)), Missing: -3, Garbage: 7},
		}
	case event.KindExperts:
		return anyExperts(r)
	case event.KindKV:
		return &event.KV{Used: count(r), Total: count(r), Freed: count(r), Residency: count(r), Page: count(r), Pinned: at}
	case event.KindHost:
		return anyHost(r)
	case event.KindReport:
		return anyReport(r)
	case event.KindLost:
		var l event.Lost
		for k := range l {
			l[k] = rapid.Uint64().Draw(r, "lost")
		}
		return &l
	case event.KindOps:
		return anyOps(r)
	}
	p := new(event.Counters)
	for range rapid.IntRange(0, 5).Draw(r, "counters") {
		p.Values = append(p.Values, event.Counter{Name: str(r), Value: rapid.Float64().Draw(r, "value")})
	}
	slices.SortFunc(p.Values, func(a, b event.Counter) int { return strings.Compare(a.Name, b.Name) })
	p.Values = slices.CompactFunc(p.Values, func(a, b event.Counter) bool { return a.Name == b.Name })
	return p
}

func anyModel(r *rapid.T) *event.Model {
	p := &event.Model{Name: str(r), Path: str(r), Architecture: str(r), Quantisation: str(r)}
	for _, n := range modelNumbers(p) {
		if n.whole != nil {
			*n.whole = int(small(r))
		} else {
			*n.large = count(r)
		}
	}
	return p
}

func anyExperts(r *rapid.T) *event.Experts {
	p := &event.Experts{
		Layers: rapid.IntRange(1, 4).Draw(r, "layers"), Experts: rapid.IntRange(1, 5).Draw(r, "experts"), Used: int(small(r)),
		EveryN: int(small(r)), PromptTokens: rapid.Uint64().Draw(r, "pt"), DecodeTokens: rapid.Uint64().Draw(r, "dt"),
	}
	n := p.Layers * p.Experts
	if rapid.Bool().Draw(r, "prompt") {
		p.Prompt = rapid.SliceOfN(rapid.Uint64(), n, n).Draw(r, "picks")
	}
	if rapid.Bool().Draw(r, "decode") {
		p.Decode = rapid.SliceOfN(rapid.Uint64(), n, n).Draw(r, "picks")
	}
	return p
}

func anyOps(r *rapid.T) *event.Ops {
	p := &event.Ops{Passes: max(count(r), 1), Slowdown: event.Absent(event.NotYet)}
	if rapid.Bool().Draw(r, "compared") {
		p.Slowdown = event.Of(rapid.Float64Range(0, 1e9).Draw(r, "slowdown"))
	}
	for range rapid.IntRange(0, 6).Draw(r, "operations") {
		layer := rapid.IntRange(-1, MaxLayers-1).Draw(r, "layer")
		p.Times = append(p.Times, event.OpTime{Op: str(r), Layer: layer, Calls: count(r), Dur: count(r)})
	}
	return p
}

func anyHost(r *rapid.T) *event.Host {
	p := &event.Host{
		Interval: count(r), Limited: rapid.Bool().Draw(r, "limited"), NoGPU: str(r),
		Engine: event.Process{PID: int(small(r))}, Self: event.Process{PID: int(small(r))},
	}
	for range rapid.IntRange(0, 3).Draw(r, "cores") {
		p.Cores = append(p.Cores, rapid.Float64Range(0, 1).Draw(r, "core"))
		p.Clocks = append(p.Clocks, rapid.Float64Range(0, 5e9).Draw(r, "clock"))
	}
	for range rapid.IntRange(0, 2).Draw(r, "gpus") {
		g := event.GPU{Name: str(r)}
		anyReadings(r, gpuReadings(&g))
		p.GPUs = append(p.GPUs, g)
	}
	anyReadings(r, hostReadings(p))
	anyReadings(r, processReadings(&p.Engine))
	anyReadings(r, processReadings(&p.Self))
	return p
}

func anyReport(r *rapid.T) *event.Report {
	p := &event.Report{Interval: count(r)}
	anyReadings(r, reportReadings(p))
	for range rapid.IntRange(0, 3).Draw(r, "times") {
		t := event.Times{Name: str(r), Count: rapid.Uint64().Draw(r, "n"), Sum: count(r)}
		if n := rapid.IntRange(0, 4).Draw(r, "bounds"); n > 0 {
			bound := int64(-1)
			for range n {
				bound += 1 + int64(small(r))
				t.Bounds = append(t.Bounds, bound)
			}
			t.Counts = rapid.SliceOfN(rapid.Uint64(), n+1, n+1).Draw(r, "counts")
		}
		p.Times = append(p.Times, t)
	}
	for range rapid.IntRange(0, 3).Draw(r, "slots") {
		var s event.Slot
		s.Request = event.RequestID(rapid.Uint64().Draw(r, "req"))
		for _, n := range slotNumbers(&s) {
			*n.v = int(small(r))
		}
		p.Slots = append(p.Slots, s)
	}
	for range rapid.IntRange(0, 3).Draw(r, "more") {
		v := rapid.Float64().Draw(r, "value")
		p.More = append(p.More, event.Number{Name: str(r), Reading: event.Reading{V: v, Origin: event.Reported}})
	}
	for range rapid.IntRange(0, 3).Draw(r, "sources") {
		p.Sources = append(p.Sources, event.Source{Name: str(r), Why: str(r)})
	}
	slices.SortFunc(p.More, func(a, b event.Number) int { return strings.Compare(a.Name, b.Name) })
	p.More = slices.CompactFunc(p.More, func(a, b event.Number) bool { return a.Name == b.Name })
	return p
}

func anyPass(r *rapid.T) *event.Pass {
	p := &event.Pass{Worker: str(r)}
	for _, list := range [][]named{passReadings(p), loadReadings(&p.Scheduled), loadReadings(&p.Queued)} {
		for _, n := range list {
			if rapid.Bool().Draw(r, "told") {
				*n.r = event.Reading{V: rapid.Float64().Draw(r, "value"), Origin: event.Reported}
			}
		}
	}
	return p
}

func anyReadings(r *rapid.T, list []named) {
	for _, n := range list {
		n.r.Origin = event.Origin(rapid.IntRange(0, int(event.Derived)).Draw(r, "origin"))
		if n.r.Origin >= event.Measured {
			n.r.V = rapid.Float64().Draw(r, "value")
		}
	}
}

func anySplit(r *rapid.T) event.Split {
	if rapid.Bool().Draw(r, "no split") {
		return event.Split{}
	}
	part := rapid.Uint32()
	return event.Split{
		Embed: part.Draw(r, "e"), Attention: part.Draw(r, "a"), Router: part.Draw(r, "r"),
		Experts: part.Draw(r, "x"), Head: part.Draw(r, "h"), Sample: part.Draw(r, "s"),
	}
}

func count(r *rapid.T) int64 { return rapid.Int64Range(0, math.MaxInt64).Draw(r, "count") }

func small(r *rapid.T) int32 { return rapid.Int32Range(0, math.MaxInt32).Draw(r, "small") }

func str(r *rapid.T) string {
	return strings.ToValidUTF8(rapid.StringN(0, 12, 40).Draw(r, "string"), "?")
}
