package wire

import (
	"math"
	"reflect"
	"slices"
	"strings"

	"pgregory.net/rapid"

	"github.com/llmtop/llmtop/profiler/event"
)

// The generators return random events that round-trip: all their numbers are plausible.

func anyEvent(r *rapid.T) event.Event {
	return anyOfKind(r, event.Kind(rapid.IntRange(0, int(event.NumKinds)-1).Draw(r, "kind")))
}

func anyOfKind(r *rapid.T, kind event.Kind) event.Event {
	e := event.Event{Kind: kind, Layer: -1, At: event.Time(rapid.Int64Range(-int64(event.MaxTime), int64(event.MaxTime)).Draw(r, "at"))}
	switch kind {
	case event.KindToken:
		anyToken(r, &e)
	case event.KindStep:
		e.Dur, e.Step, e.N, e.Prompt, e.Split = anyCount(r), uint64(anyCount(r)), anyInt32(r), anyInt32(r), anySplit(r)
		switch rapid.IntRange(0, 2).Draw(r, "payload") {
		case 0:
			e.Data = anyPass(r)
		case 1:
			e.Data = anyCalls(r)
		}
	case event.KindStage:
		e.Dur, e.Req, e.N, e.Layer = anyCount(r), event.RequestID(rapid.Uint64().Draw(r, "req")), anyInt32(r), int16(anyInt32(r)%512)-1
		e.Stage = event.Stage(rapid.IntRange(0, int(event.NumStages)-1).Draw(r, "stage"))
		if e.Stage == event.StageNone || rapid.Bool().Draw(r, "named") {
			e.Text = "own_" + anyString(r)
		}
		if c := anyCalls(r); *c != (event.Calls{}) {
			e.Data = c
		}
	case event.KindRequest:
		anyRequest(r, &e)
	case event.KindLog:
		e.Text = anyString(r)
	case event.KindModel:
		e.Dur, e.Data = anyCount(r), anyModel(r)
	default:
		e.Data = anyPayload(r, kind, e.At)
	}
	return e
}

func anyToken(r *rapid.T, e *event.Event) {
	e.Req = event.RequestID(rapid.Uint64Range(1, math.MaxUint64).Draw(r, "req"))
	e.ID, e.Index, e.N, e.Step = anyInt32(r)-1, anyInt32(r)-1, anyInt32(r), uint64(anyCount(r))
	e.HasLogP = rapid.Bool().Draw(r, "set")
	if e.HasLogP {
		e.LogP = rapid.Float32Range(-event.MaxNumber/2, event.MaxNumber/2).Draw(r, "logp")
	}
	e.Split, e.Choice, e.Handover = anySplit(r), rapid.Uint16().Draw(r, "choice"), rapid.Uint32().Draw(r, "handover")
	e.Reasoning = rapid.Int32Range(0, math.MaxInt32).Draw(r, "reasoning")
	if rapid.Bool().Draw(r, "raw") {
		e.Text = string(rapid.SliceOf(rapid.Byte()).Draw(r, "bytes"))
	} else {
		e.Text = anyString(r)
	}
	for range rapid.IntRange(0, 3).Draw(r, "tops") {
		e.Top = append(e.Top, event.TopProb{ID: anyInt32(r), LogP: rapid.Float32Range(-event.MaxNumber/2, event.MaxNumber/2).Draw(r, "logp"), Text: anyString(r)})
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
			Group: anyString(r), Label: anyString(r), Name: anyString(r), Prompt: anyString(r), PromptTokens: int(anyInt32(r)), MaxTokens: int(anyInt32(r)),
			Model: anyString(r), Chat: rapid.Bool().Draw(r, "chat"), ColdLater: rapid.Bool().Draw(r, "cold later"),
			Cold: rapid.Bool().Draw(r, "cold"), Probe: rapid.Bool().Draw(r, "probe"), Retrospective: rapid.Bool().Draw(r, "set"),
		}
	case e.State.Final():
		o := &event.Outcome{
			Reason: anyString(r), Prompt: int(anyInt32(r)), AnyCached: rapid.Bool().Draw(r, "any cached"), Cold: rapid.Bool().Draw(r, "cold"), Padding: int(anyInt32(r)), Generated: int(anyInt32(r)), Decode: anyCount(r), Asked: e.At,
			Reasoning: int(anyInt32(r)), Answered: int(anyInt32(r)), AnyReasoning: rapid.Bool().Draw(r, "any reasoning"), Drafted: int(anyInt32(r)), Accepted: int(anyInt32(r)),
		}
		if !o.AnyCached {
			o.Cached = int(anyInt32(r))
		}
		e.Data = o
	}
}

func anyPayload(r *rapid.T, kind event.Kind, at event.Time) any {
	switch kind {
	case event.KindEngine:
		return &event.EngineInfo{
			Name: anyString(r), Provider: anyString(r), Version: anyString(r), PID: int(anyInt32(r)), Device: event.Device{Name: anyString(r), Kernels: anyString(r), Host: true, Threads: int(anyInt32(r))},
			Caps: event.Caps(rapid.Uint32Range(0, 1<<len(caps)-1).Draw(r, "caps")), Slots: int(anyInt32(r)),
			Pace: anyNumber(r), Reason: anyString(r),
			State:  event.EngineState(rapid.IntRange(0, int(event.EnginePaused)).Draw(r, "state")),
			Remote: event.Remote{Address: anyString(r), Link: event.LinkStale, Since: at, Reason: anyString(r), Restarts: int(anyInt32(r)), Missed: -3, Malformed: 7},
		}
	case event.KindExperts:
		return anyExperts(r)
	case event.KindKV:
		return &event.KV{Used: anyCount(r), Total: anyCount(r), Freed: anyCount(r), Residency: anyCount(r), Page: anyCount(r), Pinned: at}
	case event.KindHost:
		return anyHost(r)
	case event.KindAggregates:
		return anyAggregates(r)
	case event.KindDrops:
		var l event.Drops
		for k := range l {
			l[k] = rapid.Uint64Range(0, event.MaxNumber).Draw(r, "lost")
		}
		return &l
	case event.KindOps:
		return anyOps(r)
	case event.KindSpeculation:
		return anySpeculation(r)
	case event.KindUsage:
		p := new(event.Usage)
		anyFields(r, p)
		return p
	}
	p := new(event.Counters)
	for range rapid.IntRange(0, 5).Draw(r, "counters") {
		p.Values = append(p.Values, event.Counter{Name: anyString(r), Value: rapid.Float64Range(-event.MaxNumber, event.MaxNumber).Draw(r, "value")})
	}
	slices.SortFunc(p.Values, func(a, b event.Counter) int { return strings.Compare(a.Name, b.Name) })
	p.Values = slices.CompactFunc(p.Values, func(a, b event.Counter) bool { return a.Name == b.Name })
	return p
}

func anyModel(r *rapid.T) *event.Model {
	p := new(event.Model)
	anyFields(r, p)
	return p
}

// anyFields fills the texts, numbers and readings of a struct, so that one without a row in its table fails the tests.
func anyFields(r *rapid.T, p any) {
	v := reflect.ValueOf(p).Elem()
	for i := range v.NumField() {
		switch f := v.Field(i).Addr().Interface().(type) {
		case *string:
			*f = anyString(r)
		case *int:
			*f = int(anyInt32(r))
		case *int64:
			*f = anyCount(r)
		case *bool:
			*f = rapid.Bool().Draw(r, "flag")
		case *event.Reading:
			anyReading(r, f)
		}
	}
}

func anyExperts(r *rapid.T) *event.Experts {
	p := &event.Experts{
		Layers: rapid.IntRange(1, 4).Draw(r, "layers"), Experts: rapid.IntRange(1, 5).Draw(r, "experts"), Used: int(anyInt32(r)),
		EveryN: int(anyInt32(r)), PromptTokens: rapid.Uint64Range(0, event.MaxNumber).Draw(r, "pt"), DecodeTokens: rapid.Uint64Range(0, event.MaxNumber).Draw(r, "dt"),
	}
	n := p.Layers * p.Experts
	if rapid.Bool().Draw(r, "prompt") {
		p.Prompt = rapid.SliceOfN(rapid.Uint64Range(0, event.MaxNumber), n, n).Draw(r, "picks")
	}
	if rapid.Bool().Draw(r, "decode") {
		p.Decode = rapid.SliceOfN(rapid.Uint64Range(0, event.MaxNumber), n, n).Draw(r, "picks")
	}
	return p
}

func anyOps(r *rapid.T) *event.Ops {
	p := &event.Ops{Passes: max(anyCount(r), 1), Slowdown: event.Absent(event.NotYet)}
	if rapid.Bool().Draw(r, "compared") {
		p.Slowdown = event.MeasuredValue(anyNumber(r))
	}
	for range rapid.IntRange(0, 6).Draw(r, "operations") {
		layer := rapid.IntRange(-1, MaxLayers-1).Draw(r, "layer")
		p.Times = append(p.Times, event.OpTime{Op: anyString(r), Layer: layer, Calls: anyCount(r), Dur: anyCount(r)})
	}
	return p
}

func anySpeculation(r *rapid.T) *event.Speculation {
	n := rapid.IntRange(0, event.MaxDraft).Draw(r, "positions")
	p := &event.Speculation{DraftTime: anyCount(r)}
	if n > 0 {
		p.Drafted = rapid.SliceOfN(rapid.Uint64Range(0, event.MaxNumber), n, n).Draw(r, "drafted")
		p.Accepted = rapid.SliceOfN(rapid.Uint64Range(0, event.MaxNumber), n, n).Draw(r, "accepted")
	}
	for range rapid.IntRange(0, 6).Draw(r, "shapes") {
		requests := rapid.IntRange(1, 40).Draw(r, "requests")
		p.Shapes = append(p.Shapes, event.PassShape{
			Drafting: rapid.Bool().Draw(r, "drafting"), Requests: requests, Rows: rapid.IntRange(requests, event.MaxTokens).Draw(r, "rows"),
			Passes: uint64(anyCount(r)), Dur: anyCount(r), Tokens: uint64(anyCount(r)),
		})
	}
	return p
}

func anyHost(r *rapid.T) *event.Host {
	p := &event.Host{
		Interval: anyCount(r), Limited: rapid.Bool().Draw(r, "limited"), NoGPU: anyString(r),
		Engine: event.Process{PID: int(anyInt32(r))}, Self: event.Process{PID: int(anyInt32(r)), Interval: anyCount(r)},
	}
	for range rapid.IntRange(0, 3).Draw(r, "cores") {
		p.Cores = append(p.Cores, anyNumber(r))
		p.ReadBandwidth = append(p.ReadBandwidth, rapid.Float64Range(1, 1e12).Draw(r, "read"))
		p.Clocks = append(p.Clocks, anyNumber(r))
	}
	for range rapid.IntRange(0, 3).Draw(r, "experts") {
		p.ExpertsCached = append(p.ExpertsCached, rapid.SampledFrom([]uint8{0, 1, 99, 100, event.UnknownShare}).Draw(r, "cached"))
	}
	for range rapid.IntRange(0, 2).Draw(r, "gpus") {
		g := event.GPU{Name: anyString(r)}
		anyRows(r, event.GPUFields[:], &g)
		p.GPUs = append(p.GPUs, g)
	}
	anyRows(r, event.MachineFields[:], p)
	anyRows(r, event.ProcessFields[:], &p.Engine)
	anyRows(r, event.ProcessFields[:], &p.Self)
	return p
}

func anyAggregates(r *rapid.T) *event.Aggregates {
	p := new(event.Aggregates)
	anyFields(r, p)
	for range rapid.IntRange(0, 3).Draw(r, "times") {
		t := event.Histogram{Name: anyString(r), Count: rapid.Uint64Range(0, event.MaxNumber).Draw(r, "n"), Sum: anyCount(r)}
		if n := rapid.IntRange(0, 4).Draw(r, "bounds"); n > 0 {
			bound := int64(-1)
			for range n {
				bound += 1 + int64(anyInt32(r))
				t.Bounds = append(t.Bounds, bound)
			}
			t.Counts = rapid.SliceOfN(rapid.Uint64Range(0, event.MaxNumber), n+1, n+1).Draw(r, "counts")
		}
		p.Histograms = append(p.Histograms, t)
	}
	for range rapid.IntRange(0, 3).Draw(r, "slots") {
		s := event.Slot{Request: event.RequestID(rapid.Uint64().Draw(r, "req")), End: rapid.SampledFrom([]event.State{event.StateNone, event.StateFinished, event.StateCancelled, event.StateFailed}).Draw(r, "end")}
		anyFields(r, &s)
		p.Slots = append(p.Slots, s)
	}
	for range rapid.IntRange(0, 2).Draw(r, "models") {
		m := event.LoadedModel{Until: event.Time(anyCount(r))}
		anyFields(r, &m)
		p.Models = append(p.Models, m)
	}
	for range rapid.IntRange(0, 3).Draw(r, "more") {
		v := anyNumber(r)
		p.More = append(p.More, event.NamedReading{Name: anyString(r), Reading: event.Reading{V: v, Origin: event.Reported}})
	}
	for range rapid.IntRange(0, 3).Draw(r, "sources") {
		p.Endpoints = append(p.Endpoints, event.Endpoint{Name: anyString(r), Reason: anyString(r)})
	}
	slices.SortFunc(p.More, func(a, b event.NamedReading) int { return strings.Compare(a.Name, b.Name) })
	p.More = slices.CompactFunc(p.More, func(a, b event.NamedReading) bool { return a.Name == b.Name })
	for range rapid.IntRange(0, 2).Draw(r, "ratios") {
		t := event.Ratio{Name: anyString(r)}
		anyReported(r, &t)
		p.Ratios = append(p.Ratios, t)
		rank := event.Rank{Name: anyString(r)}
		anyFields(r, &rank)
		p.ExpertRanks = append(p.ExpertRanks, event.LayerRanks{
			Layer: rapid.IntRange(0, 100).Draw(r, "layer"), Picks: rapid.SliceOfN(rapid.Uint64Range(0, 1e9), 1, 4).Draw(r, "picks"),
		})
		p.Ranks, p.ByModel, p.Adapters = append(p.Ranks, rank), append(p.ByModel, rank), append(p.Adapters, anyString(r))
	}
	p.Counts = p.More
	if rapid.Bool().Draw(r, "earlier") {
		p.Earlier = &event.Earlier{Counts: p.More, Histograms: p.Histograms}
		anyFields(r, p.Earlier)
	}
	return p
}

func anyPass(r *rapid.T) *event.Pass {
	p := &event.Pass{Worker: anyString(r)}
	anyReported(r, p)
	anyReported(r, &p.Scheduled)
	anyReported(r, &p.Queued)
	return p
}

func anyCalls(r *rapid.T) *event.Calls {
	c := new(event.Calls)
	for _, reading := range c.Readings() {
		anyReading(r, reading)
	}
	return c
}

// anyReported fills some of the readings of a struct with values that the engine reported.
func anyReported(r *rapid.T, p any) {
	v := reflect.ValueOf(p).Elem()
	for i := range v.NumField() {
		if f, ok := v.Field(i).Addr().Interface().(*event.Reading); ok && rapid.Bool().Draw(r, "set") {
			*f = event.ReportedValue(anyNumber(r))
		}
	}
}

func anyRows[T any](r *rapid.T, rows []event.Field[T], of *T) {
	for i := range rows {
		anyReading(r, rows[i].At(of))
	}
}

func anyReading(r *rapid.T, to *event.Reading) {
	to.Origin = event.Origin(rapid.IntRange(0, int(event.Derived)).Draw(r, "origin"))
	if to.Origin >= event.Measured {
		to.V = anyNumber(r)
	}
}

func anyNumber(r *rapid.T) float64 {
	return rapid.OneOf(rapid.Just(0.), rapid.Float64Range(1/event.MaxNumber, event.MaxNumber)).Draw(r, "value")
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

func anyCount(r *rapid.T) int64 { return rapid.Int64Range(0, event.MaxNumber).Draw(r, "count") }

func anyInt32(r *rapid.T) int32 { return rapid.Int32Range(0, math.MaxInt32).Draw(r, "small") }

func anyString(r *rapid.T) string {
	return strings.ToValidUTF8(rapid.StringN(0, 12, 40).Draw(r, "string"), "?")
}
