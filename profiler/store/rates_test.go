package store

import (
	"fmt"
	"testing"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
)

func TestThroughput(t *testing.T) {
	p := newSession() // at 1 s
	p.engine(event.CapSteps)
	p.emit(0, event.Event{Kind: event.KindModel, Data: &event.Model{Name: "m", WeightBytes: 1000, KVBytes: 10}})
	p.emit(0, event.Event{Kind: event.KindHost, Data: &event.Host{ReadBandwidth: []float64{1e6}}})
	p.emit(0, event.Event{Kind: event.KindKV, Data: &event.KV{Used: 20, Total: 100}})
	p.state(0, 1, event.StateQueued, nil)
	p.step(100*ms, 0, 50) // 50 prompt tokens in 100 ms
	p.token(0, 1, 1)
	p.step(100*ms, 1, 30) // prompt and decode together: prompt work
	p.token(0, 1, 1)
	for range 3 { // 2 decode tokens in 20 ms each
		p.step(20*ms, 2, 0)
		p.token(0, 1, 2)
	}
	p.now += event.Time(140 * ms) // 400 ms in total
	v := p.store.Snapshot().Throughput
	want(t, "prefill", v.Prefill, 80/.2)
	want(t, "decode", v.Decode, 6/.06)
	want(t, "TTPS", v.TTPS, 8/.4)
	want(t, "TTPS of the session", v.SessionTTPS, 8/.4)
	want(t, "busy", v.BusyShare, .26/.4)
	want(t, "bandwidth", v.Bandwidth, (1000+10*20)*3/.06) // weights and KV once a pass
	want(t, "read bandwidth", v.ReadBandwidth, 1e6)
	want(t, "share", v.ReadShare, 60_000/1e6)
	if v.Running != 1 || v.Queued != 0 || v.Slots != 2 {
		t.Errorf("running %d, queued %d, slots %d; want 1, 0, 2", v.Running, v.Queued, v.Slots)
	}

	p.now = event.Time(10*sec + 999*ms) // the first second is the last of ten
	v = p.store.Snapshot().Throughput
	want(t, "TTPS after ten seconds", v.TTPS, 8/9.999)
	p.now = event.Time(12*sec + 500*ms)
	v = p.store.Snapshot().Throughput
	want(t, "decode after the window", v.Decode, "not yet")
	want(t, "TTPS after the window", v.TTPS, 0.)
	want(t, "TTPS of the session", v.SessionTTPS, 8/11.5)
}

// TestBandwidthOfUnknownSizes checks that no bandwidth is given where a pass reads what nobody knows the size of.
func TestBandwidthOfUnknownSizes(t *testing.T) {
	for name, m := range map[string]event.Model{"weights": {KVBytes: 10}, "KV cache": {WeightBytes: 1000}} {
		p := newSession()
		p.engine(event.CapSteps)
		p.emit(0, event.Event{Kind: event.KindModel, Data: &m})
		p.emit(0, event.Event{Kind: event.KindKV, Data: &event.KV{Used: 20, Total: 100}})
		p.state(0, 1, event.StateQueued, nil)
		p.step(20*ms, 1, 0)
		p.token(0, 1, 1)
		want(t, name, p.store.Snapshot().Throughput.Bandwidth, "not reported")
	}
}

// TestReadBandwidthOfThreads checks which measured bandwidth is the wall of an engine.
func TestReadBandwidthOfThreads(t *testing.T) {
	for _, c := range []struct {
		list    []float64 // of 1, 2, 4 and all 6 cores
		threads int
		host    bool
		want    any
	}{
		{[]float64{10, 18, 25, 27}, 1, true, 10.},
		{[]float64{10, 18, 25, 27}, 2, true, 18.},
		{[]float64{10, 18, 25, 27}, 3, true, 25.},
		{[]float64{10, 18, 25, 27}, 6, true, 27.},
		{[]float64{10, 18, 25, 27}, 64, true, 27.},
		{[]float64{10, 18, 25, 27}, 0, true, 27.},
		{nil, 1, true, "not yet"},
		{[]float64{-1}, 1, true, "not yet"},
		{[]float64{10}, 1, false, "not reported"},
	} {
		p := newSession()
		p.emit(0, event.Event{Kind: event.KindEngine, Data: &event.EngineInfo{Device: event.Device{Host: c.host, Threads: c.threads}}})
		p.emit(0, event.Event{Kind: event.KindHost, Data: &event.Host{ReadBandwidth: c.list}})
		want(t, fmt.Sprint(c), p.store.Snapshot().Throughput.ReadBandwidth, c.want)
	}
}

// TestBytesOfToken checks that only the pass of one token says what that token read.
func TestBytesOfToken(t *testing.T) {
	p := newSession()
	p.engine(event.CapSteps)
	p.emit(0, event.Event{Kind: event.KindModel, Data: &event.Model{Name: "m", WeightBytes: 1000, KVBytes: 10}})
	p.emit(0, event.Event{Kind: event.KindKV, Data: &event.KV{Used: 20, Total: 100}})
	p.state(0, 1, event.StateQueued, nil)
	for step, n := range []int32{1, 2, 1} {
		p.emit(10*ms, event.Event{Kind: event.KindStep, Dur: 10 * ms, N: n, Step: uint64(step + 1)})
		p.emit(0, event.Event{Kind: event.KindToken, Req: 1, N: 1, Step: uint64(step + 1)})
	}
	for i, tok := range p.store.Snapshot().Requests[0].Tokens {
		if want := []float64{1200, 0, 1200}[i]; tok.Read != want {
			t.Errorf("token %d read %v bytes, want %v", i, tok.Read, want)
		}
	}
}

func TestThroughputWithoutReports(t *testing.T) {
	p := newSession()
	v := p.store.Snapshot().Throughput
	want(t, "TTPS without events", v.TTPS, "not yet")
	want(t, "prefill without events", v.Prefill, "not yet")
	for name, r := range map[string]event.Reading{"decode": v.Decode, "busy": v.BusyShare, "bandwidth": v.Bandwidth, "read": v.ReadBandwidth, "share": v.ReadShare} {
		want(t, name+" without steps", r, "not reported")
	}
	p.engine(event.CapSteps)
	want(t, "decode before a step", p.store.Snapshot().Throughput.Decode, "not yet")
	want(t, "bandwidth of an unknown model", p.store.Snapshot().Throughput.Bandwidth, "not reported")
}

// TestPrefillOfSourcesWithoutSteps checks that prompt stages give the prefill rate if no forward passes are reported.
func TestPrefillOfSourcesWithoutSteps(t *testing.T) {
	p := newSession()
	p.state(0, 1, event.StateQueued, nil)
	p.stage(1, event.StagePrompt, 200*ms, 100)
	want(t, "prefill", p.store.Snapshot().Throughput.Prefill, 500.)
	p.step(100*ms, 0, 10)
	p.stage(1, event.StagePrompt, 100*ms, 100) // reported twice, counts once
	want(t, "prefill", p.store.Snapshot().Throughput.Prefill, 110/.3)
}

// TestSeriesAreClosedBySecond checks that there is one point per ended second, with and without snapshots in between.
func TestSeriesAreClosedBySecond(t *testing.T) {
	for _, snapshots := range []bool{true, false} {
		p := newSession() // at 1 s
		p.engine(event.CapSteps)
		p.state(0, 1, event.StateQueued, nil)
		for range 30 {
			p.step(100*ms, 2, 0)
			p.token(0, 1, 2)
			if snapshots {
				p.store.Snapshot()
			}
		}
		p.state(0, 1, event.StateFinished, nil)
		p.now += event.Time(2 * sec) // 6 s
		s := p.store.Snapshot()
		points, gaps := s.Throughput.Series.Points(nil), s.Latency.Series
		if len(points) != 5 || len(gaps) != 5 {
			t.Fatalf("%d and %d points, want the 5 seconds from 1 s to 6 s", len(points), len(gaps))
		}
		for i, tokens := range []uint64{18, 20, 20, 2, 0} { // tokens at the end of a second count in the next one
			at := event.Time(int64(i+1) * sec)
			if points[i].At != at || points[i].Generated != tokens || gaps[i].At != at {
				t.Errorf("snapshots %v: second %d has %+v, want %d tokens at %d", snapshots, i, points[i], tokens, at)
			}
			if tokens > 0 && (gaps[i].Count != tokens-uint64(2*max(1-i, 0)) || gaps[i].P50 == 0) {
				t.Errorf("snapshots %v: second %d has the gaps %+v of %d tokens", snapshots, i, gaps[i], tokens)
			}
		}
		if points[1].Decode != 20 || points[1].Running != 1 || points[4].Running != 0 || points[4].Decode != 0 {
			t.Errorf("snapshots %v: points %+v", snapshots, points)
		}
	}
}

func TestSeriesAreBounded(t *testing.T) {
	p := newSession()
	p.engine(0)
	p.now += event.Time(10 * SeriesLen * sec)
	s := p.store.Snapshot()
	if n := s.Throughput.Series.Len(); n > SeriesLen || n < SeriesLen*3/4 {
		t.Errorf("%d points, want about %d", n, SeriesLen)
	}
	if last := s.Throughput.Series.Last(); last.At != p.now-event.Time(sec) {
		t.Errorf("the last point is at %d, want %d", last.At, p.now-event.Time(sec))
	}
}

func TestLatencyWindows(t *testing.T) {
	p := newSession()
	p.state(0, 1, event.StateQueued, nil)
	p.token(10*ms, 1, 1)
	p.token(20*ms, 1, 1)
	p.now = event.Time(5 * sec)
	p.state(0, 2, event.StateQueued, nil)
	p.token(40*ms, 2, 1)
	p.token(80*ms, 2, 1)
	l := &p.store.Snapshot().Latency
	for w, n := range [metric.NumWindows]uint64{1, 2, 2, 2} {
		if l.Of[TTFT][w].Count != n || l.Of[ITL][w].Count != n || l.Of[ITL][w].Max != 80*ms || l.Of[TTFT][w].Max != 40*ms {
			t.Errorf("%v: TTFT %+v and ITL %+v, want %d of each", metric.Window(w), l.Of[TTFT][w], l.Of[ITL][w], n)
		}
	}
	p.now = event.Time(12 * sec)
	l = &p.store.Snapshot().Latency
	for w, n := range [metric.NumWindows]uint64{0, 1, 2, 2} {
		if l.Of[ITL][w].Count != n {
			t.Errorf("%v after 12 s: %d gaps, want %d", metric.Window(w), l.Of[ITL][w].Count, n)
		}
	}
}

// TestPassExperts checks the bytes of decode passes of a model of known sizes: 1000 bytes that every token reads, and
// 2 layers of 4 experts of 100 bytes each, of which a token picks one.
func TestPassExperts(t *testing.T) {
	p := newSession()
	p.engine(event.CapSteps)
	p.emit(0, event.Event{Kind: event.KindModel, Data: &event.Model{Layers: 2, Experts: 4, ExpertsUsed: 1, Bytes: 1800, WeightBytes: 1200, KVBytes: 10}})
	p.emit(0, event.Event{Kind: event.KindExperts, Data: &event.Experts{Layers: 2, Experts: 4, Used: 1, Prompt: make([]uint64, 8), Decode: make([]uint64, 8)}})
	p.state(0, 1, event.StateQueued, nil)
	pass := uint64(0)
	step := func(picks ...[]uint16) {
		pass++
		p.emit(10*ms, event.Event{Kind: event.KindStep, Dur: 10 * ms, N: int32(len(picks)), Step: pass})
		for _, x := range picks {
			p.emit(0, event.Event{Kind: event.KindToken, Req: 1, N: 1, Step: pass, Picks: x})
		}
	}
	check := func(when string, experts any, bytes float64, passes int) {
		t.Helper()
		v := p.store.Snapshot().Throughput
		want(t, when+": experts", v.PassExperts, experts)
		want(t, when+": bandwidth", v.Bandwidth, bytes/(float64(passes)*.01))
	}
	want(t, "before a pass", p.store.Snapshot().Throughput.PassExperts, "not yet")
	step([]uint16{0, 1})
	check("one token", 2., 1200, 1)
	step(nil, nil)
	check("without picks", "not reported", 2*1200, 2)
	step([]uint16{0, 1}, []uint16{0, 2}) // 3 experts; stands for the pass before, too
	check("two tokens share one", (2+3+3)/3., 1200+1300+1300, 3)
	step([]uint16{0, 1}, []uint16{0, 1}, []uint16{3, 1}) // 3 experts
	step([]uint16{0, 1}, []uint16{0, 1})                 // 2 experts
	check("all pass sizes", 2+float64(1+1+0)/3*4/5, 1200*5+4*100*2/3., 5)
}

// TestDecodeOfPassesThatNameTheirTokens: a row of a decode pass may make several tokens, and drafted ones may be refused.
// Tokens may come before or after their pass.
func TestDecodeOfPassesThatNameTheirTokens(t *testing.T) {
	for name, c := range map[string]struct {
		rows, made, passes int
		before             bool
		want               float64
	}{
		"a row makes four tokens":      {1, 4, 5, false, 4 / .04},
		"two of five rows are drafts":  {5, 3, 5, false, 3 / .04},
		"tokens come before the pass":  {5, 3, 5, true, 3 / .04},
		"tokens do not name the pass":  {2, 0, 5, false, 2 / .04},
		"the last of a second's ticks": {1, 4, 40, false, 4 / .04},
	} {
		p := newSession()
		p.engine(event.CapSteps)
		p.state(0, 1, event.StateQueued, nil)
		token := func(step uint64, n int) {
			p.emit(0, event.Event{Kind: event.KindToken, Req: 1, N: int32(n), Step: step})
		}
		p.emit(100*ms, event.Event{Kind: event.KindStep, Step: 1, Dur: 100 * ms, Prompt: 10})
		token(1, 1)
		for i := range c.passes {
			step := uint64(i + 2)
			p.now += event.Time(40 * ms)
			if c.before {
				token(step, c.made)
			}
			p.emit(0, event.Event{Kind: event.KindStep, Step: step, Dur: 40 * ms, N: int32(c.rows)})
			switch {
			case c.made == 0:
				token(0, c.rows)
			case !c.before:
				token(step, c.made)
			}
		}
		want(t, name, p.store.Snapshot().Throughput.Decode, c.want)
	}
}
