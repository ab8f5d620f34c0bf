package store

import (
	"math"
	"strings"
	"testing"

	"github.com/llmtop/llmtop/profiler/event"
)

func TestKVCache(t *testing.T) {
	p := newSession()
	want(t, "usage before a report", p.store.Snapshot().KV.Usage, "not reported")
	for _, kv := range []event.KV{
		{Used: 30, Total: 100}, {Used: 10, Total: 100, Freed: 20, Residency: 40 * ms}, {Used: 25, Total: 100, Freed: 5, Residency: 80 * ms},
	} {
		p.emit(ms, event.Event{Kind: event.KindKV, Data: &kv})
	}
	k := p.store.Snapshot().KV
	want(t, "usage", k.Usage, .25)
	if k.Used != 25 || k.Total != 100 || k.Residency.Count != 2 || k.Residency.Min != 40*ms || k.Residency.Max != 80*ms {
		t.Errorf("%+v, want 25 of 100 cells and two pins of 40 and 80 ms", k)
	}
	p.emit(0, event.Event{Kind: event.KindKV, Data: &event.KV{Used: -4, Total: 0}})
	if k = p.store.Snapshot().KV; k.Used != 0 {
		t.Errorf("%d cells used, want 0", k.Used)
	}
	want(t, "usage of a cache without cells", k.Usage, "not reported")
}

func TestHostSamples(t *testing.T) {
	p := newSession()
	if h := p.store.Snapshot().Host; h.Sampled || len(h.Series) != 0 {
		t.Errorf("machine without samples: %+v", h)
	}
	p.emit(0, event.Event{Kind: event.KindHost, Data: &event.Host{CPU: event.MeasuredValue(.5), Engine: event.Process{Read: event.Absent(event.NotPermitted)}}})
	for range 2 * SeriesLen {
		p.emit(sec, event.Event{Kind: event.KindHost, Data: &event.Host{CPU: event.MeasuredValue(.25), Engine: event.Process{RSS: event.MeasuredValue(5e6)}}})
	}
	h := p.store.Snapshot().Host
	if last := h.Series[len(h.Series)-1]; !h.Sampled || h.At != p.now || last.V[event.GaugeCPU] != .25 || last.V[event.GaugeRSS] != 5e6 || !math.IsNaN(last.V[event.GaugeRead]) {
		t.Errorf("last point %+v at %d, want 25 %%, 5 MB and a gap for the reading without permission", last, h.At)
	}
	if n := len(h.Series); n > SeriesLen || n < SeriesLen*3/4 {
		t.Errorf("%d points, want about %d", n, SeriesLen)
	}
}

func TestLogIsBounded(t *testing.T) {
	p := newSession()
	for range MaxLog + 1 {
		p.emit(0, event.Event{Kind: event.KindLog, Text: strings.Repeat("x", 2*MaxLine)})
	}
	s := p.store.Snapshot()
	if kept := len(s.Log); kept > MaxLog || uint64(kept)+s.Counts.OmittedLogLines != MaxLog+1 || len(s.Log[0].Text) != MaxLine {
		t.Errorf("%d lines of %d bytes kept and %d dropped, together not %d", kept, len(s.Log[0].Text), s.Counts.OmittedLogLines, MaxLog+1)
	}
}

func TestDropsOfSourcesAndQueueAddUp(t *testing.T) {
	p := newSession()
	drops := event.Drops{event.KindToken: 7}
	p.emit(0, event.Event{Kind: event.KindDrops, Data: &drops})
	for range event.DefaultQueue*7/8 + 2 { // the last eighth is reserved for other kinds
		p.emit(0, event.Event{Kind: event.KindToken, Req: 1})
	}
	s := p.store.Snapshot()
	if s.Drops[event.KindToken] != 7+3 || s.Drops.Total() != 10 {
		t.Errorf("dropped %v, want 7 tokens by the source and 3 by the queue", s.Drops)
	}
	if len(s.Verdicts) == 0 || s.Verdicts[0].Topic != "dropped events" || !strings.Contains(s.Verdicts[0].Text, "token 10") {
		t.Errorf("verdicts %+v, want one of 10 dropped tokens", s.Verdicts)
	}
}
