package store

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/profiler/verdict"
)

// reported returns a reading reported by the engine.
func reported(v float64) event.Reading { return event.Reading{V: v, Origin: event.Reported} }

// snapshotAfter returns the snapshot at the time of the last report. at is the time of each report, in s.
func snapshotAfter(at []float64, list ...*event.Aggregates) *Snapshot {
	now := event.Time(0)
	s := New(Options{Now: func() event.Time { return now }})
	s.Emit(event.Event{Kind: event.KindEngine, At: 1, Layer: -1, Data: &event.EngineInfo{Name: "server", Caps: event.CapAggregates, State: event.EngineReady}})
	for i, p := range list {
		now = event.Time(at[i] * 1e9)
		s.Emit(event.Event{Kind: event.KindAggregates, At: now, Layer: -1, Data: p})
	}
	return s.Snapshot()
}

// TestTotalsOfUnreachedEngine checks that totals are absent until the engine has responded once.
func TestTotalsOfUnreachedEngine(t *testing.T) {
	s := New(Options{Now: func() event.Time { return 2 }})
	s.Emit(event.Event{Kind: event.KindEngine, Layer: -1, Data: &event.EngineInfo{Remote: event.Remote{Link: event.LinkDisconnected, Since: 1}}})
	if v := s.Snapshot(); !v.NeverReached() || v.Totals().Finished.Origin != event.NotYet {
		t.Errorf("totals %+v", v.Totals())
	}
	s.Emit(event.Event{Kind: event.KindEngine, Layer: -1, Data: &event.EngineInfo{State: event.EngineReady, Remote: event.Remote{Link: event.LinkDisconnected, Since: 1}}})
	if v := s.Snapshot(); v.NeverReached() || !v.Totals().Finished.OK() {
		t.Errorf("totals after a response %+v", v.Totals())
	}
}

func TestAggregatesFillSnapshot(t *testing.T) {
	times := []event.Histogram{
		{Name: event.HistogramTTFT, Count: 2, Sum: int64(400 * time.Millisecond)},
		{Name: event.HistogramQueue, Count: 2, Sum: int64(100 * time.Millisecond)},
		{Name: event.HistogramPrefill, Count: 2, Sum: int64(240 * time.Millisecond)},
	}
	v := snapshotAfter([]float64{1, 2}, &event.Aggregates{Running: reported(1)}, &event.Aggregates{
		Interval: 1e9, Running: reported(6), Waiting: reported(2), Decode: event.DerivedValue(310), KVUsage: reported(0.5), KVUsed: reported(100), KVTotal: reported(200),
		Finished: event.DerivedValue(3), Failed: event.DerivedValue(1), Prompt: event.DerivedValue(900), Cached: event.DerivedValue(400), Generated: event.DerivedValue(310), Histograms: times,
	})
	if c := v.Counts; c.Finished != 3 || c.Failed != 1 || c.PromptTokens != 900 || c.CachedTokens != 400 || c.GeneratedTokens != 310 {
		t.Errorf("counts %+v", c)
	}
	if x := v.Throughput; x.Decode.V != 310 || x.Prefill.OK() || x.Running != 6 || x.Queued != 2 || x.BusyShare.Origin != event.NotReported {
		t.Errorf("throughput %+v", x)
	}
	if k := v.KV; k.Usage.V != 0.5 || k.Used != 100 || k.Total != 200 {
		t.Errorf("KV cache %+v", k)
	}
	p := v.Aggregates.Parts(metric.Session)
	parts, total := p.Parts, p.Total
	if total != 2e8 || len(parts) != 3 || parts[0].Dur != 50*time.Millisecond || parts[1].Dur != 120*time.Millisecond || parts[2].Dur != 30*time.Millisecond ||
		parts[2].Stage != event.StageNone || parts[1].Share != 0.6 {
		t.Errorf("parts of %v: %+v", total, parts)
	}
	if d := v.Aggregates.Summary("unknown", metric.Session); d.Origin != event.NotReported || len(v.Requests) != 0 {
		t.Error("there is data that was not reported")
	}
}

// TestPolledRequestsAreNotTotalled checks that the number of finished requests is not derived from polled slots, since
// polling may miss some.
func TestPolledRequestsAreNotTotalled(t *testing.T) {
	idle, busy := &event.Aggregates{Interval: 1e9, Slots: []event.Slot{{}}}, &event.Aggregates{Interval: 1e9, Slots: []event.Slot{{Request: 1, Generated: 3}}}
	counted := &event.Aggregates{Interval: 1e9, Slots: []event.Slot{{}}, Finished: event.DerivedValue(4)}
	for _, c := range []struct {
		list   []*event.Aggregates
		polled uint64
		want   event.Reading
	}{
		{[]*event.Aggregates{idle}, 0, event.Absent(event.NotReported)},
		{[]*event.Aggregates{busy, idle}, 1, event.Absent(event.NotReported)},
		{[]*event.Aggregates{busy, counted}, 1, event.DerivedValue(4)},
	} {
		v := snapshotAfter([]float64{1, 2}, c.list...)
		if got := v.Totals().Finished; got != c.want || v.Counts.Polled != c.polled || v.Latency.Goodput.OK() && !c.want.OK() {
			t.Errorf("after %d reports: finished %+v, want %+v; %d polled, want %d; goodput %+v", len(c.list), got, c.want, v.Counts.Polled, c.polled, v.Latency.Goodput)
		}
	}
}

// TestPartsOfTTFT: parts divide TTFT only if they are of about the same requests and do not exceed it.
func TestPartsOfTTFT(t *testing.T) {
	for name, c := range map[string]struct {
		ttft, queue, prefill event.Histogram
		total                float64
		apart                bool
		parts                int
	}{
		"all of the same":    {event.Histogram{Count: 10, Sum: 1000}, event.Histogram{Count: 10, Sum: 200}, event.Histogram{Count: 10, Sum: 700}, 100, false, 3},
		"a few still run":    {event.Histogram{Count: 10, Sum: 1000}, event.Histogram{Count: 9, Sum: 180}, event.Histogram{Count: 9, Sum: 630}, 100, false, 3},
		"of others":          {event.Histogram{Count: 10, Sum: 1000}, event.Histogram{Count: 8, Sum: 160}, event.Histogram{Count: 9, Sum: 630}, 0, true, 2},
		"above the whole":    {event.Histogram{Count: 1, Sum: 100}, event.Histogram{Count: 1, Sum: 80}, event.Histogram{Count: 1, Sum: 90}, 0, true, 2},
		"parts of others":    {event.Histogram{}, event.Histogram{Count: 11, Sum: 80}, event.Histogram{Count: 24, Sum: 90}, 0, true, 2},
		"no TTFT":            {event.Histogram{}, event.Histogram{Count: 1, Sum: 80}, event.Histogram{}, 0, false, 1},
		"no request in them": {event.Histogram{Count: 1, Sum: 100}, event.Histogram{}, event.Histogram{}, 100, false, 1},
	} {
		c.ttft.Name, c.queue.Name, c.prefill.Name = event.HistogramTTFT, event.HistogramQueue, event.HistogramPrefill
		v := snapshotAfter([]float64{1}, &event.Aggregates{Interval: 1e9, Histograms: []event.Histogram{c.ttft, c.queue, c.prefill}})
		p := v.Aggregates.Parts(metric.Session)
		if p.Total != c.total || p.Apart != c.apart || len(p.Parts) != c.parts {
			t.Errorf("%s: %+v", name, p)
		}
		if alone := name == "no request in them"; p.Undivided() != alone {
			t.Errorf("%s: undivided is %v", name, !alone)
		}
	}
}

// TestImpossibleNumbersAreAbsent: a quotient by almost nothing, and a negative share, are no numbers of the session.
func TestImpossibleNumbersAreAbsent(t *testing.T) {
	ratio := func(part, whole float64) event.Ratio {
		return event.Ratio{Name: "x", Part: event.MeasuredValue(part), Whole: event.MeasuredValue(whole)}
	}
	percent := snapshotAfter([]float64{1}, &event.Aggregates{Interval: 1e9, KVUsage: event.ReportedValue(25), CacheHits: event.ReportedValue(1.01), KVUsed: event.ReportedValue(9), KVTotal: event.ReportedValue(5)})
	if a := percent.Aggregates; a.KVUsage.OK() || a.CacheHits.V != 1 || a.KVUsed.OK() || a.KVTotal.OK() || percent.KV.Used != 0 {
		t.Errorf("KV usage %+v, want none of a percentage; cache hits %+v; %+v of %+v cells: %+v", a.KVUsage, a.CacheHits, a.KVUsed, a.KVTotal, percent.KV)
	}
	for _, r := range []event.Ratio{ratio(5, 5e-324), ratio(5, 0), ratio(-5, 2), ratio(0, 0), ratio(5, math.Inf(1))} {
		v := snapshotAfter([]float64{1}, &event.Aggregates{Interval: 1e9, Ratios: []event.Ratio{r}, KVUsage: event.ReportedValue(-0.5), CacheHits: event.ReportedValue(math.NaN())})
		if len(v.Aggregates.Numbers) > 0 || v.Aggregates.KVUsage.OK() || v.Aggregates.CacheHits.OK() {
			t.Errorf("%+v: %+v, KV usage %+v", r, v.Aggregates.Numbers, v.Aggregates.KVUsage)
		}
	}
}

// TestNumbersOfTheSession: counts are totalled, quotients are of totals, other values have a mean over time and a
// largest value, and what the last report lacks keeps its last value.
func TestNumbersOfTheSession(t *testing.T) {
	ratio := func(part, whole float64) []event.Ratio {
		return []event.Ratio{{Name: event.RatioCacheHits, Part: reported(part), Whole: reported(whole)}}
	}
	more := func(name string, v float64) []event.NamedReading {
		return []event.NamedReading{{Name: name, Reading: reported(v)}}
	}
	v := snapshotAfter([]float64{1, 2, 5, 6},
		&event.Aggregates{Running: reported(50), Earlier: &event.Earlier{Finished: reported(102)}},
		&event.Aggregates{Interval: 1e9, Running: reported(2), Counts: more("preemptions", 50), Ratios: ratio(300, 600), CacheHits: event.DerivedValue(0.5)},
		&event.Aggregates{Interval: 3e9, Running: reported(6), More: more("preemptions", 6), Ratios: ratio(22, 76), CacheHits: event.DerivedValue(22. / 76)},
		&event.Aggregates{Interval: 1e9, Running: reported(2), Counts: more("preemptions", 0), Ratios: ratio(0, 0), CacheHits: event.Absent(event.NotYet)},
	)
	r := v.Aggregates
	if n := r.Number("running"); n == nil || n.Value.V != (2.+3*6+2)/5 || n.Max.V != 50 || n.Last.V != 2 {
		t.Errorf("running %+v", n)
	}
	if n := r.Number("preemptions"); n == nil || n.Kind != CountedTotal || n.Value.V != 56 || n.Last.V != 0 || n.Max.OK() {
		t.Errorf("preemptions %+v", n)
	}
	if n := r.Number(event.RatioCacheHits); n == nil || n.Value.V != 322./676 || n.Last.V != 22./76 || n.At != 5e9 {
		t.Errorf("cache hits %+v", n)
	}
	if r.Number("waiting") != nil || len(r.Numbers) != 3 {
		t.Errorf("numbers %+v", r.Numbers)
	}
	if r.Earlier == nil || r.Earlier.Finished.V != 102 || v.Totals().Finished.OK() {
		t.Errorf("earlier %+v, totals %+v", r.Earlier, v.Totals())
	}
}

func TestPolledRequests(t *testing.T) {
	slot := func(prompt, done, out int) []event.Slot {
		return []event.Slot{{Slot: 3, Request: 9, Prompt: prompt, Processed: done, Generated: out, Max: 64}, {Slot: 4}}
	}
	list := []*event.Aggregates{{Slots: slot(80, 40, 0)}, {Slots: slot(80, 80, 10)}, {Slots: slot(80, 80, 30)}, {Slots: []event.Slot{{Slot: 3}, {Slot: 4}}}}
	at := []float64{1, 2, 4, 5}
	v := snapshotAfter(at[:1], list[0])
	if r := v.Requests[0]; len(v.Requests) != 1 || r.ID != 9 || !r.Polled || r.Slot != 3 || r.PromptDone != 40 || r.State != event.StateDispatched || r.TTFT.Origin != event.NotReported {
		t.Errorf("after the first report %+v", r)
	}
	v = snapshotAfter(at[:3], list[:3]...)
	if r := v.Current; r.Generated != 30 || r.DecodeRate.V != 10 || r.TPOT.V != 0.1 || r.DecodeRate.Origin != event.Derived || r.ITL.Count != 0 || v.Counts.GeneratedTokens != 0 {
		t.Errorf("while it decodes %+v", r)
	}
	v = snapshotAfter(at, list...)
	r := v.Requests[0]
	if r.State != event.StateFinished || r.Reason != unknownReason || r.E2EL.OK() || v.Counts.Polled != 1 || v.Counts.Running != 0 || v.Latency.Of[ITL][metric.Session].Count != 0 {
		t.Errorf("at its end %+v", r)
	}
	cut := slot(80, 80, 42)
	cut[0].End = event.StateCancelled
	v = snapshotAfter(at, list[0], list[1], &event.Aggregates{Slots: cut}, list[3])
	if r := v.Requests[0]; len(v.Requests) != 1 || r.State != event.StateCancelled || r.Reason != "cancelled" || r.Generated != 42 || v.Counts.Polled != 1 {
		t.Errorf("cut off %+v", r)
	}
}

// TestOutagesAreNotZeros checks that a second without reports is Silent, and that an absent KV usage is not 0.
func TestOutagesAreNotZeros(t *testing.T) {
	busy := func() *event.Aggregates {
		return &event.Aggregates{Interval: 1e9, Running: reported(3), Waiting: reported(1), Decode: event.DerivedValue(50), Generated: event.DerivedValue(50), KVUsage: reported(0.5)}
	}
	v := snapshotAfter([]float64{1.5, 2.5, 9.5, 10.5}, busy(), busy(), busy(), busy())
	for _, p := range v.Throughput.Series.Points(nil) {
		second := int64(p.At) / 1e9
		silent := second >= 5 && second < 9
		if p.Silent != silent || math.IsNaN(p.KVShare) != silent && second >= 1 {
			t.Errorf("second %d is %+v", second, p)
		}
	}
	if n := v.Throughput.Series.Len(); n < 9 {
		t.Fatalf("%d seconds, want at least 9", n)
	}
	withoutKV := busy()
	withoutKV.KVUsage = event.Reading{}
	v = snapshotAfter([]float64{1.5, 2.5, 3.5}, withoutKV, withoutKV, withoutKV)
	if p := v.Throughput.Series.Points(nil)[1]; !math.IsNaN(p.KVShare) || p.Silent || p.Running != 3 {
		t.Errorf("point without KV usage: %+v", p)
	}
}

// TestUnevenRanks: an insight names the rank that queues requests while another one is free.
func TestUnevenRanks(t *testing.T) {
	ranks := []event.Rank{{Name: "0", Running: reported(5), Waiting: reported(0)}, {Name: "1", Running: reported(11), Waiting: reported(8)}}
	v := snapshotAfter([]float64{1.5}, &event.Aggregates{Interval: 1e9, Running: reported(16), Waiting: reported(8), Ranks: ranks})
	const want = "8 requests waiting, 16 running: rank 1 has 8 of those waiting, 1 of 2 ranks none and at most half as many running"
	if !slices.ContainsFunc(v.Verdicts, func(x verdict.Verdict) bool { return x.Topic == "queue" && x.Text == want }) {
		t.Errorf("verdicts %+v", v.Verdicts)
	}
}

// TestReportedNumbersOverTime checks the numbers that only servers report, second by second.
func TestReportedNumbersOverTime(t *testing.T) {
	report := func(hits, drafted, accepted, preempted float64) *event.Aggregates {
		return &event.Aggregates{
			Interval: 2e9, Running: reported(3), CacheHits: event.DerivedValue(hits),
			Ratios: []event.Ratio{{Name: event.RatioAccepted, Part: event.DerivedValue(accepted), Whole: event.DerivedValue(drafted)}},
			Counts: []event.NamedReading{{Name: event.CountPreemptions, Reading: event.DerivedValue(preempted)}},
		}
	}
	v := snapshotAfter([]float64{2.5, 4.5, 6.5}, report(0.25, 8, 6, 4), report(0.5, 0, 0, 0), &event.Aggregates{Interval: 2e9, Running: reported(3)})
	none := math.NaN()
	want := [][3]float64{2: {0.25, 0.75, 2}, 3: {0.25, 0.75, 2}, 4: {0.5, none, 0}, 5: {0.5, none, 0}}
	for _, p := range v.Throughput.Series.Points(nil) {
		second := int(p.At) / 1e9
		got := [3]float64{float64(p.CacheHits), float64(p.Accepted), float64(p.Preempted)}
		if second < 2 {
			want[second] = [3]float64{none, none, none}
		}
		for i := range got {
			if w := want[second][i]; got[i] != w && !(math.IsNaN(got[i]) && math.IsNaN(w)) {
				t.Errorf("second %d is %v, want %v", second, got, want[second])
				break
			}
		}
	}
	if n := v.Throughput.Series.Len(); n != 6 {
		t.Errorf("%d seconds, want 6", n)
	}
}

// TestServersAreJudgedByTargetsThatWereSet: the default target is that of a short prompt, and a server's TTFT is of
// prompts of any length.
func TestServersAreJudgedByTargetsThatWereSet(t *testing.T) {
	slow := &event.Aggregates{Interval: 1e9, Histograms: []event.Histogram{
		{Name: event.HistogramTTFT, Count: 9, Sum: 9e9, Bounds: []int64{5e8, 2e9}, Counts: []uint64{0, 9, 0}},
	}}
	for target, want := range map[time.Duration]int{0: 0, 200 * time.Millisecond: 1} {
		s := New(Options{Now: func() event.Time { return 2e9 }, Targets: Targets{TTFT: target}})
		s.Emit(event.Event{Kind: event.KindAggregates, At: 1e9, Layer: -1, Data: slow})
		if got := s.Snapshot().Verdicts; len(got) != want {
			t.Errorf("target %v: %+v, want %d verdicts", target, got, want)
		}
	}
}

// TestTotalsOfServers: a number that a server does not report is absent in the whole catalogue, before its first
// report and after it, and while nothing is known of an engine.
func TestTotalsOfServers(t *testing.T) {
	now := event.Time(1e9)
	s := New(Options{Now: func() event.Time { return now }})
	check := func(when string) {
		t.Helper()
		v := s.Snapshot()
		for _, n := range slices.Concat(Rates, Totalled) {
			if n.Of == nil || n.Name == "dropped" {
				continue
			}
			if r := n.Of(v, metric.Session); r.OK() {
				t.Errorf("%s: %s is %v", when, n.Name, r.V)
			}
		}
	}
	check("without an engine")
	s.Emit(event.Event{Kind: event.KindEngine, At: 1, Layer: -1, Data: &event.EngineInfo{Name: "server", Caps: event.CapAggregates, State: event.EngineReady}})
	check("before the first report")
	for range 2 {
		now += 1e9
		s.Emit(event.Event{Kind: event.KindAggregates, At: now, Layer: -1, Data: &event.Aggregates{
			Interval: 1e9, Histograms: []event.Histogram{{Name: event.HistogramTTFT, Count: 3, Sum: 3e9}},
		}})
		check("with a histogram only")
	}
}

// TestPollsMissShortRequests: of polled requests only the long ones have a TPOT, so that no distribution is made of them,
// and the number of those seen to finish is a lower bound.
func TestPollsMissShortRequests(t *testing.T) {
	slot := func(id event.RequestID, out int) *event.Aggregates {
		return &event.Aggregates{Interval: 1e9, Slots: []event.Slot{{Request: id, Prompt: 8, Processed: 8, Generated: out}}}
	}
	cut := slot(4, 9)
	cut.Slots[0].End = event.StateCancelled
	v := snapshotAfter([]float64{1, 2, 3, 4, 5, 6}, slot(1, 10), slot(1, 60), slot(2, 5), slot(3, 5), slot(4, 9), cut)
	if n := v.Latency.Of[TPOT][metric.Session].Count; n != 0 || !v.Requests[len(v.Requests)-1].TPOT.OK() {
		t.Errorf("%d requests in the distribution of TPOT, want none; the long request has %+v", n, v.Requests[len(v.Requests)-1].TPOT)
	}
	if got := v.Totals(); got.Finished.OK() || got.FinishedSeen != event.DerivedValue(3) || got.Cancelled.OK() {
		t.Errorf("finished %+v, at least %+v; cancelled %+v", got.Finished, got.FinishedSeen, got.Cancelled)
	}
	counted := slot(5, 1)
	counted.Finished = event.DerivedValue(18)
	v = snapshotAfter([]float64{1, 2, 3}, slot(1, 10), slot(2, 5), counted)
	if got := v.Totals(); got.Finished.V != 18 || got.FinishedSeen.OK() {
		t.Errorf("the server counts: finished %+v, at least %+v", got.Finished, got.FinishedSeen)
	}
}

// TestCacheHitShare: it is a quotient of the session, not of the last poll; a share of the engine's own is the last one.
func TestCacheHitShare(t *testing.T) {
	hits := func(part, whole float64) *event.Aggregates {
		return &event.Aggregates{Interval: 1e9, Ratios: []event.Ratio{{Name: event.RatioCacheHits, Part: event.ReportedValue(part), Whole: event.ReportedValue(whole)}}}
	}
	v := snapshotAfter([]float64{1, 2, 3}, hits(740, 1000), hits(0, 100), &event.Aggregates{Interval: 1e9, CacheHits: event.DerivedValue(0)})
	if got := v.Aggregates.CacheHitShare(); got.V != 740.0/1100 {
		t.Errorf("of two counters %+v", got)
	}
	v = snapshotAfter([]float64{1, 2}, &event.Aggregates{Interval: 1e9, CacheHits: event.ReportedValue(0.2)}, &event.Aggregates{Interval: 1e9, CacheHits: event.ReportedValue(0.6)})
	if got := v.Aggregates.CacheHitShare(); got.V != 0.6 {
		t.Errorf("of its own %+v", got)
	}
}
