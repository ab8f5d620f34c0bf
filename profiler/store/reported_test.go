package store

import (
	"math"
	"testing"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
)

func stated(v float64) event.Reading { return event.Reading{V: v, Origin: event.Reported} }

// reports is a store that is told reports, with the clock at the last one.
func reports(at []float64, list ...*event.Report) *Snapshot {
	now := event.Time(0)
	s := New(Options{Now: func() event.Time { return now }})
	s.Emit(event.Event{Kind: event.KindEngine, At: 1, Layer: -1, Data: &event.Engine{Name: "server", Caps: event.CapReports, State: event.EngineReady}})
	for i, p := range list {
		now = event.Time(at[i] * 1e9)
		s.Emit(event.Event{Kind: event.KindReport, At: now, Layer: -1, Data: p})
	}
	return s.Snapshot()
}

// Of an engine that was never reached the counts are absent, whatever it may tell.
func TestCountsOfAnEngineThatWasNeverReached(t *testing.T) {
	s := New(Options{Now: func() event.Time { return 2 }})
	s.Emit(event.Event{Kind: event.KindEngine, Layer: -1, Data: &event.Engine{Remote: event.Remote{Link: event.LinkDisconnected, Since: 1}}})
	if v := s.Snapshot(); !v.Unreached() || v.Sums().Finished.Origin != event.NotYet {
		t.Errorf("its counts are %+v", v.Sums())
	}
	s.Emit(event.Event{Kind: event.KindEngine, Layer: -1, Data: &event.Engine{State: event.EngineReady, Remote: event.Remote{Link: event.LinkDisconnected, Since: 1}}})
	if v := s.Snapshot(); v.Unreached() || !v.Sums().Finished.OK() {
		t.Errorf("of one that was, they are %+v", v.Sums())
	}
}

func TestReportsFillTheSnapshot(t *testing.T) {
	times := []event.Times{
		{Name: event.TimesTTFT, Count: 2, Sum: int64(400 * time.Millisecond)},
		{Name: event.TimesQueue, Count: 2, Sum: int64(100 * time.Millisecond)},
		{Name: event.TimesPrefill, Count: 2, Sum: int64(240 * time.Millisecond)},
	}
	v := reports([]float64{1, 2}, &event.Report{Running: stated(1)}, &event.Report{
		Interval: 1e9, Running: stated(6), Waiting: stated(2), Decode: event.From(310), KVUsage: stated(0.5), KVUsed: stated(100), KVTotal: stated(200),
		Finished: event.From(3), Failed: event.From(1), Prompt: event.From(900), Cached: event.From(400), Generated: event.From(310), Times: times,
	})
	if c := v.Counts; c.Finished != 3 || c.Failed != 1 || c.PromptTokens != 900 || c.CachedTokens != 400 || c.GeneratedTokens != 310 {
		t.Errorf("the counts are %+v", c)
	}
	if x := v.Throughput; x.Decode.V != 310 || x.Prefill.OK() || x.Running != 6 || x.Queued != 2 || x.BusyShare.Origin != event.NotReported {
		t.Errorf("the throughput is %+v", x)
	}
	if k := v.KV; k.Usage.V != 0.5 || k.Used != 100 || k.Total != 200 {
		t.Errorf("the KV cache is %+v", k)
	}
	parts, total := v.Reported.Parts(metric.Session)
	if total != 2e8 || len(parts) != 3 || parts[0].Dur != 50*time.Millisecond || parts[1].Dur != 120*time.Millisecond || parts[2].Dur != 30*time.Millisecond ||
		parts[2].Stage != event.StageNone || parts[1].Share != 0.6 {
		t.Errorf("the parts of %v are %+v", total, parts)
	}
	if v.Reported.Over("nobody knows", metric.Session) != nil || len(v.Requests) != 0 {
		t.Error("there is something that nobody told")
	}
}

// TestRequestsInSlotsAreNoTotal: how many have finished is not known of what is seen now and then, neither before one was seen nor after.
func TestRequestsInSlotsAreNoTotal(t *testing.T) {
	idle, busy := &event.Report{Interval: 1e9, Slots: []event.Slot{{}}}, &event.Report{Interval: 1e9, Slots: []event.Slot{{Request: 1, Generated: 3}}}
	counted := &event.Report{Interval: 1e9, Slots: []event.Slot{{}}, Finished: event.From(4)}
	for _, c := range []struct {
		told   []*event.Report
		polled uint64
		want   event.Reading
	}{
		{[]*event.Report{idle}, 0, event.Absent(event.NotReported)},
		{[]*event.Report{busy, idle}, 1, event.Absent(event.NotReported)},
		{[]*event.Report{busy, counted}, 1, event.From(4)},
	} {
		v := reports([]float64{1, 2}, c.told...)
		if got := v.Sums().Finished; got != c.want || v.Counts.Polled != c.polled || v.Latency.Goodput.OK() && !c.want.OK() {
			t.Errorf("of %d looks: finished %+v, want %+v; %d were seen, want %d; goodput %+v", len(c.told), got, c.want, v.Counts.Polled, c.polled, v.Latency.Goodput)
		}
	}
}

func TestPartsThatAreLongerThanTheWholeAreCut(t *testing.T) {
	v := reports([]float64{1}, &event.Report{Interval: 1e9, Times: []event.Times{
		{Name: event.TimesTTFT, Count: 1, Sum: 100}, {Name: event.TimesQueue, Count: 1, Sum: 80}, {Name: event.TimesPrefill, Count: 1, Sum: 90},
	}})
	parts, _ := v.Reported.Parts(metric.Session)
	if len(parts) != 3 || parts[1].Dur != 20 || parts[2].Dur != 0 {
		t.Errorf("the parts are %+v", parts)
	}
	v = reports([]float64{1}, &event.Report{Interval: 1e9, Times: []event.Times{{Name: event.TimesQueue, Count: 1, Sum: 80}}})
	if parts, total := v.Reported.Parts(metric.Session); total != 0 || len(parts) != 1 || parts[0].Dur != 80 {
		t.Errorf("without TTFT the parts are %+v of %v", parts, total)
	}
}

func TestRequestsInSlots(t *testing.T) {
	slot := func(prompt, done, out int) []event.Slot {
		return []event.Slot{{Slot: 3, Request: 9, Prompt: prompt, Processed: done, Generated: out, Max: 64}, {Slot: 4}}
	}
	list := []*event.Report{{Slots: slot(80, 40, 0)}, {Slots: slot(80, 80, 10)}, {Slots: slot(80, 80, 30)}, {Slots: []event.Slot{{Slot: 3}, {Slot: 4}}}}
	at := []float64{1, 2, 4, 5}
	v := reports(at[:1], list[0])
	if r := v.Requests[0]; len(v.Requests) != 1 || r.ID != 9 || !r.Polled || r.Slot != 3 || r.PromptDone != 40 || r.State != event.StateDispatched || r.TTFT.Origin != event.NotReported {
		t.Errorf("at first %+v", r)
	}
	v = reports(at[:3], list[:3]...)
	if r := v.Current; r.Generated != 30 || r.DecodeRate.V != 10 || r.TPOT.V != 0.1 || r.DecodeRate.Origin != event.Derived || r.ITL.Count != 0 || v.Counts.GeneratedTokens != 0 {
		t.Errorf("then %+v", r)
	}
	v = reports(at, list...)
	r := v.Requests[0]
	if r.State != event.StateFinished || r.Reason != unseenEnd || r.E2EL.OK() || v.Counts.Polled != 1 || v.Counts.Running != 0 || v.Latency.ITL[metric.Session].Count != 0 {
		t.Errorf("in the end %+v", r)
	}
}

// TestOutagesAreNoZeros: of a second in which a server has told nothing, nothing is known; what it does not tell of its KV cache is not 0 either.
func TestOutagesAreNoZeros(t *testing.T) {
	busy := func() *event.Report {
		return &event.Report{Interval: 1e9, Running: stated(3), Waiting: stated(1), Decode: event.From(50), Generated: event.From(50), KVUsage: stated(0.5)}
	}
	v := reports([]float64{1.5, 2.5, 9.5, 10.5}, busy(), busy(), busy(), busy())
	for _, p := range v.Throughput.Series {
		second := int64(p.At) / 1e9
		dark := second >= 5 && second < 9
		if p.Silent != dark || math.IsNaN(p.KVShare) != dark && second >= 1 {
			t.Errorf("second %d is %+v", second, p)
		}
	}
	if n := len(v.Throughput.Series); n < 9 {
		t.Fatalf("there are %d seconds", n)
	}
	untold := busy()
	untold.KVUsage = event.Reading{}
	v = reports([]float64{1.5, 2.5, 3.5}, untold, untold, untold)
	if p := v.Throughput.Series[1]; !math.IsNaN(p.KVShare) || p.Silent || p.Running != 3 {
		t.Errorf("of a KV cache that nobody tells of it has %+v", p)
	}
}
