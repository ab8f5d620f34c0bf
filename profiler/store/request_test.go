package store

import (
	"slices"
	"testing"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
)

// playTypical plays a request of 10 prompt tokens, 4 of them cached, and 4 generated tokens. TTFT: queue 3 ms, tokenize
// 1 ms, embed 2 ms, prompt 12 ms, first token 4 ms, and 2 ms without a stage: 24 ms. Then gaps of 5, 5 and 8 ms, the
// last after 20 ms of pacing.
func playTypical(p *session, info *event.Request) {
	p.state(0, 1, event.StateQueued, info)
	p.stage(1, event.StageQueue, 3*ms, 0)
	p.state(0, 1, event.StateDispatched, nil)
	p.stage(1, event.StageTokenize, 1*ms, 10)
	p.stage(1, event.StageEmbed, 2*ms, 6)
	for layer := range int16(2) {
		for _, s := range []event.Stage{event.StageAttention, event.StageRouter, event.StageExperts} {
			p.emit(2*ms, event.Event{Kind: event.KindStage, Stage: s, Req: 1, Layer: layer, Dur: 2 * ms, N: 6})
		}
	}
	p.emit(0, event.Event{Kind: event.KindStage, Stage: event.StagePrompt, Req: 1, Layer: -1, Dur: 12 * ms, N: 6})
	p.stage(1, event.StageFirst, 4*ms, 1)
	p.token(2*ms, 1, 1)
	p.token(5*ms, 1, 1)
	p.token(5*ms, 1, 1)
	p.stage(1, event.StagePace, 20*ms, 1)
	p.token(8*ms, 1, 1)
}

func endTypical(p *session, how event.State, reason string) {
	p.state(0, 1, how, &event.Outcome{Reason: reason, Prompt: 10, Cached: 4, Padding: 2, Generated: 4})
}

func TestMetricsOfARequest(t *testing.T) {
	p := newSession()
	p.engine(event.CapQueue | event.CapStages)
	playTypical(p, &event.Request{Group: "tenant", Label: "code", MaxTokens: 4})
	endTypical(p, event.StateFinished, "length")
	r := p.request(t, 1)
	for _, c := range []struct {
		name     string
		got      event.Reading
		expected any
	}{
		{"TTFT", r.TTFT, .024},
		{"STIL", r.STIL, .003},
		{"prefill time", r.Prefill, .012},
		{"decode time", r.Decode, .018}, // without the 20 ms of pacing
		{"E2EL", r.E2EL, .042},          // TTFT + decode time
		{"TPOT", r.TPOT, .006},          // 18 ms / 3
		{"paced", r.Paced, .020},
		{"prefill rate", r.PrefillRate, 6 / .012}, // computed prompt tokens only
		{"decode rate", r.DecodeRate, 3 / .018},   // the first token belongs to TTFT
		{"TPS", r.TPS, 4 / .042},
		{"overall", r.Overall, 14 / .042},
	} {
		want(t, c.name, c.got, c.expected)
	}
	if r.PromptTokens != 10 || r.CachedTokens != 4 || r.PadTokens != 2 || r.Generated != 4 || r.MaxTokens != 4 {
		t.Errorf("tokens %d, %d, %d, %d of %d; want 10, 4, 2, 4 of 4", r.PromptTokens, r.CachedTokens, r.PadTokens, r.Generated, r.MaxTokens)
	}
	if r.State != event.StateFinished || r.Reason != "length" || r.Group != "tenant" || r.Label != "code" || r.Text != "wwww" {
		t.Errorf("%v %q %q %q %q", r.State, r.Reason, r.Group, r.Label, r.Text)
	}
	if gaps := r.Gaps; len(gaps) != 3 || gaps[0] != 5*ms || gaps[1] != 5*ms || gaps[2] != 8*ms || r.ITL.Count != 3 || r.ITL.Max != 8*ms {
		t.Errorf("gaps %v, %+v; want 5, 5 and 8 ms", gaps, r.ITL)
	}
	if !r.HitTarget || r.Targets.TTFT != DefaultTTFTTarget {
		t.Errorf("24 ms did not meet the target of %v", r.Targets.TTFT)
	}
	if len(p.ended) != 1 || p.ended[0] != r {
		t.Errorf("OnRequest was called %d times, want once, with this request", len(p.ended))
	}
}

func TestComponentsOfTTFT(t *testing.T) {
	p := newSession()
	p.engine(event.CapQueue | event.CapStages)
	playTypical(p, nil)
	endTypical(p, event.StateFinished, "stop")
	r := p.request(t, 1)
	expected := []Part{
		{event.StageQueue, 3 * time.Millisecond, 3. / 24, 0, 0},
		{event.StageTokenize, 1 * time.Millisecond, 1. / 24, 1e6 / 6., 0},
		{event.StageEmbed, 2 * time.Millisecond, 2. / 24, 2e6 / 6., 0},
		{event.StagePrompt, 12 * time.Millisecond, .5, 2e6, 0},
		{event.StageFirst, 4 * time.Millisecond, 4. / 24, 0, 0},
		{event.StageNone, 2 * time.Millisecond, 2. / 24, 0, 0},
	}
	if len(r.Parts) != len(expected) {
		t.Fatalf("parts %+v, want %+v", r.Parts, expected)
	}
	for i, part := range expected {
		if r.Parts[i] != part {
			t.Errorf("part %d is %+v, want %+v", i, r.Parts[i], part)
		}
	}
	if r.Dominant != expected[3] {
		t.Errorf("dominant part %+v, want the prompt", r.Dominant)
	}
	if layer := (LayerPart{2 * time.Millisecond, 2 * time.Millisecond, 2 * time.Millisecond}); len(r.Layers) != 2 || r.Layers[1] != layer {
		t.Errorf("layers %+v, want two of %+v", r.Layers, layer)
	}
}

// TestOverlappingStagesAreCut checks that stages are cut at TTFT, and that no part is negative.
func TestOverlappingStagesAreCut(t *testing.T) {
	p := newSession()
	p.state(0, 1, event.StateQueued, nil)
	p.emit(4*ms, event.Event{Kind: event.KindStage, Stage: event.StageEmbed, Req: 1, Layer: -1, Dur: 4 * ms})
	p.emit(2*ms, event.Event{Kind: event.KindStage, Stage: event.StagePrompt, Req: 1, Layer: -1, Dur: 5 * ms, N: 3})
	p.token(0, 1, 1)
	var sum time.Duration
	for _, part := range p.request(t, 1).Parts {
		sum += part.Dur
		if part.Dur < 0 || part.Stage == event.StagePrompt && part.Dur != 2*time.Millisecond {
			t.Errorf("part %+v", part)
		}
	}
	if sum != 6*time.Millisecond {
		t.Errorf("parts add up to %v, want 6 ms", sum)
	}
}

func TestColdTTFTIncludesLoad(t *testing.T) {
	for name, waited := range map[string]int64{"arrived after the load": 0, "waited for part of it": 30 * ms} {
		p := newSession()
		p.stage(0, event.StageLoadOpen, 70*ms, 0)
		if waited > 0 {
			p.state(0, 1, event.StateQueued, &event.Request{Cold: true})
			p.stage(1, event.StageLoad, waited, 0)
		}
		p.emit(0, event.Event{Kind: event.KindModel, Dur: 100 * ms, Data: &event.Model{Name: "m"}})
		if waited == 0 {
			p.state(0, 1, event.StateQueued, &event.Request{Cold: true})
		}
		p.state(5*ms, 1, event.StateDispatched, nil)
		want(t, name+": queue time", p.store.Snapshot().Requests[0].STIL, .005)
		p.token(5*ms, 1, 1)
		s := p.store.Snapshot()
		r := s.Requests[0]
		want(t, name+": TTFT", r.TTFT, .110)
		want(t, name+": queue time after the first token", r.STIL, .005)
		if part := r.Parts[0]; part.Stage != event.StageLoad || part.Dur != 100*time.Millisecond || r.Dominant != part {
			t.Errorf("%s: first part %+v, want 100 ms of load, dominant", name, part)
		}
		if l := &s.Latency; l.Of[ColdTTFT][0].Count != 1 || l.Of[TTFT][0].Count != 0 {
			t.Errorf("%s: %d cold and %d warm, want 1 and 0", name, l.Of[ColdTTFT][0].Count, l.Of[TTFT][0].Count)
		}
		if len(s.Load) != 1 || s.Load[0].Dur() != 70*time.Millisecond {
			t.Errorf("%s: load %+v, want one stage of 70 ms", name, s.Load)
		}
	}
}

// TestLoadByItsStages checks that the load in a TTFT is known from the stages of the engine alone, whether a request came
// before, while or after the model was loaded; and that none is claimed if none is reported.
func TestLoadByItsStages(t *testing.T) {
	const load, prompt = 100 * ms, 10 * ms
	for name, c := range map[string]struct {
		stages     []event.Stage // one after the other, of 100 ms together
		came       int64         // since the load began
		cold       bool
		ttft, part int64
	}{
		"cold, after":                 {[]event.Stage{event.StageLoad}, load, true, load + prompt, load},
		"cold, after, in parts":       {[]event.Stage{event.StageLoadOpen, event.StageLoadWeights}, load, true, load + prompt, load},
		"cold, in the middle":         {[]event.Stage{event.StageLoad}, 40 * ms, true, load + prompt, load},
		"cold, before the load":       {[]event.Stage{event.StageLoad}, 0, true, load + prompt, load},
		"warm, in the middle":         {[]event.Stage{event.StageLoad}, 40 * ms, false, 60*ms + prompt, 60 * ms},
		"warm, after":                 {[]event.Stage{event.StageLoad}, load, false, prompt, 0},
		"cold, of an unreported load": {nil, load, true, prompt, 0},
	} {
		p := newSession()
		began := p.now
		arrive := func() { p.state(0, 1, event.StateQueued, &event.Request{Cold: c.cold}) }
		p.now += event.Time(c.came)
		arrive()
		for i, s := range c.stages {
			took := load / int64(len(c.stages))
			p.store.Emit(event.Event{Kind: event.KindStage, Stage: s, Layer: -1, At: began + event.Time(int64(i+1)*took), Dur: took})
		}
		p.emit(0, event.Event{Kind: event.KindModel, Data: &event.Model{Name: "m"}}) // without its length
		p.now = began + event.Time(load)
		p.state(0, 1, event.StateDispatched, nil)
		p.token(prompt, 1, 1)
		p.stage(0, event.StageLoad, load/2, 0) // of another model
		r := p.request(t, 1)
		want(t, name+": TTFT", r.TTFT, float64(c.ttft)/1e9)
		want(t, name+": queue", r.STIL, 0.)
		want(t, name+": prefill", r.Prefill, float64(prompt)/1e9)
		if got := r.LoadTime(); got != c.part {
			t.Errorf("%s: %d ns of load, want %d", name, got, c.part)
		}
	}
}

// TestCachedTokensThatNobodyReports checks that unset cached tokens are absent, in totals too, and that 0 is not.
func TestCachedTokensThatNobodyReports(t *testing.T) {
	p := newSession()
	p.engine(0)
	end := func(id event.RequestID, o *event.Outcome) {
		p.state(0, id, event.StateQueued, nil)
		p.token(ms, id, 1)
		if !p.request(t, id).AnyCached {
			t.Error("cached tokens of a running request are known")
		}
		if o == nil {
			p.state(0, id, event.StateFinished, nil)
		} else {
			p.state(0, id, event.StateFinished, o)
		}
	}
	end(1, &event.Outcome{Prompt: 4, Generated: 1})
	if r, n := p.request(t, 1), p.store.Snapshot().Totals().Cached; r.AnyCached || !n.OK() || n.V != 0 {
		t.Errorf("cached 0 is %v, unknown %v", n, r.AnyCached)
	}
	end(2, &event.Outcome{Prompt: 4, AnyCached: true, Generated: 1})
	end(3, nil)
	for id := event.RequestID(2); id <= 3; id++ {
		if !p.request(t, id).AnyCached {
			t.Errorf("#%d: unset cached tokens are known", id)
		}
	}
	if n := p.store.Snapshot().Totals().Cached; n.Origin != event.NotReported {
		t.Errorf("total of cached tokens %v, one is unknown", n)
	}
}

// TestSessionBeginsWithItsEarliestEvent checks that Started is the earliest stamp, even if that event arrives later.
func TestSessionBeginsWithItsEarliestEvent(t *testing.T) {
	p := newSession()
	p.engine(0)
	p.store.Emit(event.Event{Kind: event.KindRequest, Req: 1, State: event.StateQueued, At: p.now - 5})
	if s := p.store.Snapshot(); s.Started != p.now-5 || s.Requests[0].Enqueued != s.Started {
		t.Errorf("session starts at %d, request 1 at %d, want both at %d", s.Started, s.Requests[0].Enqueued, p.now-5)
	}
}

// TestPrefillWithoutItsStage checks that without a prompt stage, prefill is the time from dispatch to first token less
// the other stages.
func TestPrefillWithoutItsStage(t *testing.T) {
	p := newSession()
	p.state(0, 1, event.StateQueued, nil)
	p.state(1*ms, 1, event.StateDispatched, nil)
	p.stage(1, event.StageTokenize, 2*ms, 8)
	p.stage(1, event.StageFirst, 3*ms, 1)
	p.token(8*ms, 1, 1)
	r := p.request(t, 1)
	want(t, "prefill time", r.Prefill, .008)
	want(t, "prefill rate while cached tokens are unknown", r.PrefillRate, "not reported")
	p.state(ms, 1, event.StateFinished, &event.Outcome{Prompt: 8, Generated: 1})
	want(t, "prefill rate", p.request(t, 1).PrefillRate, 1000.)
}

// TestPartsByDispatch checks that queue and prompt are known from the dispatch alone, without the stages that lie before
// and after it, in any order of arrival; and that without a dispatch neither is.
func TestPartsByDispatch(t *testing.T) {
	type part = struct {
		stage event.Stage
		ns    int64
	}
	at := func(p *session, s event.Stage, name string, from, to int64) {
		p.store.Emit(event.Event{Kind: event.KindStage, Stage: s, Text: name, Req: 1, Layer: -1, At: p.now + event.Time(to), Dur: to - from})
	}
	for name, c := range map[string]struct {
		stages     func(*session)
		dispatched bool
		want       []part
	}{
		"dispatch alone": {func(*session) {}, true, []part{{event.StageQueue, 300 * ms}, {event.StagePrompt, 400 * ms}, {event.StageNone, 0}}},
		"no dispatch":    {func(*session) {}, false, []part{{event.StageNone, 700 * ms}}},
		"tokenized before": {func(p *session) { at(p, event.StageTokenize, "", 10*ms, 60*ms) }, true, []part{
			{event.StageQueue, 250 * ms}, {event.StageTokenize, 50 * ms}, {event.StagePrompt, 400 * ms}, {event.StageNone, 0},
		}},
		"tokenized after, and a stage of its own": {func(p *session) {
			at(p, event.StageNone, "cache_lookup", 300*ms, 320*ms)
			at(p, event.StageTokenize, "", 310*ms, 340*ms)
			at(p, event.StageFirst, "", 690*ms, 700*ms)
			at(p, event.StageNone, "sample", 695*ms, 700*ms)
		}, true, []part{
			{event.StageQueue, 300 * ms}, {event.StageTokenize, 30 * ms}, {event.StagePrompt, 350 * ms}, {event.StageFirst, 10 * ms}, {event.StageNone, 10 * ms},
		}},
		"a stamped prompt": {func(p *session) { at(p, event.StagePrompt, "", 350*ms, 650*ms) }, true, []part{
			{event.StageQueue, 300 * ms}, {event.StagePrompt, 300 * ms}, {event.StageNone, 100 * ms},
		}},
	} {
		p := newSession()
		p.state(0, 1, event.StateQueued, nil)
		c.stages(p)
		if p.now += event.Time(300 * ms); c.dispatched {
			p.state(0, 1, event.StateDispatched, nil)
		}
		p.token(400*ms, 1, 1)
		r := p.request(t, 1)
		var got []part
		for _, x := range r.Parts {
			got = append(got, part{x.Stage, int64(x.Dur)})
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: parts %v, want %v", name, got, c.want)
		}
		if r.STIL.OK() != c.dispatched || r.Prefill.OK() != c.dispatched {
			t.Errorf("%s: queue %v, prefill %v", name, r.STIL, r.Prefill)
		}
	}
}

// TestTokensOfOneChunk checks that a gap before k tokens counts as k gaps of gap / k, and that TPOT counts none of the
// tokens that came with the first.
func TestTokensOfOneChunk(t *testing.T) {
	p := newSession()
	p.state(0, 1, event.StateQueued, nil)
	p.token(10*ms, 1, 2)
	p.token(9*ms, 1, 3)
	p.state(0, 1, event.StateFinished, &event.Outcome{Prompt: 1, Generated: 5})
	r := p.request(t, 1)
	want(t, "TPOT", r.TPOT, .009/3)
	if r.Generated != 5 || r.ITL.Count != 3 || r.ITL.Min != 3*ms || r.ITL.Max != 3*ms || len(r.Tokens) != 2 {
		t.Errorf("%d tokens in %d events, gaps %+v; want 5 in 2 and 3 gaps of 3 ms", r.Generated, len(r.Tokens), r.ITL)
	}
}

func TestUndefinedMetrics(t *testing.T) {
	p := newSession()
	p.state(0, 1, event.StateQueued, nil)
	queued := p.request(t, 1)
	want(t, "TTFT of a queued request", queued.TTFT, "not yet")
	want(t, "STIL of an engine without a queue", queued.STIL, "not reported")
	p.engine(event.CapQueue)
	want(t, "STIL of a queued request", p.request(t, 1).STIL, "not yet")
	p.token(5*ms, 1, 1)
	running := p.request(t, 1)
	want(t, "TTFT", running.TTFT, .005)
	want(t, "E2EL of a running request", running.E2EL, "not yet")
	want(t, "prefill time of an engine without stages", running.Prefill, "not reported")
	p.state(0, 1, event.StateFinished, &event.Outcome{Prompt: 3, Generated: 1})
	one := p.request(t, 1)
	want(t, "E2EL of one token", one.E2EL, .005)
	want(t, "TPS of one token", one.TPS, 200.)
	for name, r := range map[string]event.Reading{"TPOT": one.TPOT, "decode time": one.Decode, "decode rate": one.DecodeRate} {
		want(t, name+" of one token", r, "undefined")
	}
	p.state(0, 2, event.StateQueued, nil)
	p.token(5*ms, 2, 3)
	p.state(0, 2, event.StateFinished, nil)
	want(t, "TPOT of tokens with one stamp", p.request(t, 2).TPOT, "undefined")
	p.state(0, 3, event.StateQueued, nil)
	p.state(0, 3, event.StateCancelled, nil)
	want(t, "TTFT of a request without tokens", p.request(t, 3).TTFT, "undefined")
}

// TestDispatchedAfterTheFirstToken checks that a request waits in the queue no longer than for its first token, where an
// engine reports it as dispatched, for the first time or again, after that.
func TestDispatchedAfterTheFirstToken(t *testing.T) {
	for _, again := range []bool{false, true} {
		p := newSession()
		p.engine(event.CapQueue | event.CapTokens)
		p.state(0, 1, event.StateQueued, nil)
		if again {
			p.state(10*ms, 1, event.StateDispatched, nil)
		}
		p.token(20*ms, 1, 1)
		p.state(50*ms, 1, event.StateDispatched, nil)
		p.token(10*ms, 1, 1)
		p.state(0, 1, event.StateFinished, &event.Outcome{Generated: 2})
		if r := p.request(t, 1); r.STIL.OK() != again || again && r.STIL.V != 0.01 || r.Dispatched > r.First {
			t.Errorf("dispatched before, too: %t: queue time %+v, dispatched at %d, first token at %d", again, r.STIL, r.Dispatched, r.First)
		}
	}
}

// TestMoreCachedThanPrompt checks that more cached tokens than the prompt has are not reported.
func TestMoreCachedThanPrompt(t *testing.T) {
	for cached, absent := range map[int]bool{0: false, 10: false, 11: true} {
		p := newSession()
		p.state(0, 1, event.StateQueued, nil)
		p.token(20*ms, 1, 1)
		p.state(0, 1, event.StateFinished, &event.Outcome{Prompt: 10, Cached: cached, Generated: 1})
		if r := p.request(t, 1); r.AnyCached != absent || absent && (r.CachedTokens != 0 || r.Computed != 0) {
			t.Errorf("%d of 10 tokens cached: %+v", cached, r)
		}
	}
}
