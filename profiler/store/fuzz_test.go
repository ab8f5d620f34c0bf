package store

import (
	"math"
	"testing"

	"github.com/llmtop/llmtop/profiler/event"
)

// script turns bytes into a sequence of events, valid or not, eight bytes each.
type script struct {
	now   event.Time
	store *Store
}

func newScript() *script {
	c := &script{now: 1}
	c.store = New(Options{Now: func() event.Time { return c.now }})
	return c
}

// payloads are values of Data; most do not match the kind they are used with.
var payloads = []any{
	nil, (*event.Outcome)(nil), (*event.EngineInfo)(nil), "a string", 7,
	&event.EngineInfo{Caps: event.CapSteps | event.CapQueue, State: event.EngineReady},
	&event.EngineInfo{State: event.EngineFailed, Reason: "no memory"},
	&event.Model{Name: "m", WeightBytes: 1 << 20, KVBytes: 100, Experts: 4},
	&event.Model{Name: "moe", Layers: 1, Experts: 300, ExpertsUsed: 2},
	&event.Model{Name: "absurd", Layers: math.MaxInt, Experts: math.MaxInt, ExpertsUsed: math.MaxInt},
	&event.Request{Group: "g", MaxTokens: -5, Cold: true},
	&event.Request{},
	&event.Outcome{Reason: "stop", Prompt: 8, Cached: 2, Generated: 5},
	&event.Outcome{Prompt: math.MaxInt, Cached: math.MinInt, Padding: -1, Generated: math.MaxInt},
	&event.Experts{Layers: 1, Experts: 2, Used: 1, Prompt: []uint64{1, 2}, Decode: []uint64{3, math.MaxUint64}, DecodeTokens: 3},
	&event.Experts{Layers: 1, Experts: 2, Used: 1, Prompt: []uint64{2, 2}, Decode: []uint64{1, 1}, DecodeTokens: 9, PromptTokens: 1},
	&event.Experts{Layers: math.MaxInt, Experts: 2},
	&event.KV{Used: 5, Total: 10, Freed: 1, Residency: 1e6},
	&event.KV{Used: math.MinInt64, Total: math.MaxInt64, Freed: 1, Residency: math.MinInt64},
	&event.Host{
		Interval: math.MinInt64, Cores: []float64{math.NaN()}, MemUsed: event.MeasuredValue(9), MemTotal: event.MeasuredValue(10),
		Engine: event.Process{CPU: event.MeasuredValue(math.Inf(1)), RunWait: event.MeasuredValue(.5)},
	},
	&event.Drops{event.KindToken: 3},
}

// play emits the event that eight bytes encode: kind, request, state, stage and layer, time, duration, count, payload
// and text.
func (c *script) play(b []byte) {
	wait := int64(int8(b[4])) * 3 * ms // may be negative
	if b[4] == 0x7f {
		wait = 20 * sec
	}
	c.now = max(c.now+event.Time(max(wait, 0)), 1)
	e := event.Event{
		Kind: event.Kind(b[0] % 14), Req: event.RequestID(b[1] % 8), State: event.State(b[2] % 9), Stage: event.Stage(b[3] % 24),
		Layer: int16(b[3]) - 24, At: c.now + event.Time(min(wait, 0)), Dur: (int64(b[5]) - 4) << (b[5] % 60),
		N: int32(int8(b[6])), Index: int32(b[6]), Prompt: int32(int8(b[6])) / 2, Text: string(b),
		Data: payloads[int(b[7])%len(payloads)],
	}
	if b[5]%2 == 0 {
		e.Picks = []uint16{uint16(b[5]), uint16(b[6]) << (b[5] % 9)}
	}
	if b[4] == 0x80 {
		e.At = event.Time(math.MinInt64) >> (b[5] % 2) // long before the session
	} else if b[4] == 0x81 {
		e.At = math.MaxInt64
	}
	c.store.Emit(e)
}

// FuzzStoreEvents checks that no sequence of events makes the store panic, exceed its bounds or report negative times.
func FuzzStoreEvents(f *testing.F) {
	kind := func(k event.Kind, rest ...byte) []byte { return append([]byte{byte(k)}, rest...) }
	join := func(events ...[]byte) (out []byte) {
		for _, e := range events {
			out = append(out, append(e, make([]byte, 8-len(e))...)...)
		}
		return out
	}
	request := func(s event.State, wait, data byte) []byte {
		return kind(event.KindRequest, 1, byte(s), 0, wait, 0, 0, data)
	}
	f.Add(join(
		kind(event.KindEngine, 0, 0, 0, 1, 0, 0, 5), request(event.StateQueued, 1, 9), request(event.StateDispatched, 2, 0),
		kind(event.KindStage, 1, 0, byte(event.StagePrompt), 5, 20, 8), kind(event.KindToken, 1, 0, 0, 3, 0, 1),
		kind(event.KindStage, 1, 0, byte(event.StagePace), 5, 20), kind(event.KindToken, 1, 0, 0, 0x7f, 0, 5),
		kind(event.KindStep, 0, 0, 0, 2, 16, 4), request(event.StateFinished, 1, 10),
	))
	f.Add(join(
		kind(event.KindModel, 0, 0, 0, 1, 59, 0, 7), request(event.StateQueued, 1, 8), kind(event.KindToken, 1, 0, 0, 0x80), kind(event.KindToken, 1, 0, 0, 0x81),
		request(event.StateFailed, 0, 11), kind(event.KindKV, 0, 0, 0, 0, 0, 0, 16), kind(event.KindExperts, 0, 0, 0, 0, 0, 0, 12),
		kind(event.KindExperts, 0, 0, 0, 0, 0, 0, 13), kind(event.KindHost, 0, 0, 0, 0, 0, 0, 17), kind(event.KindDrops, 0, 0, 0, 0, 0, 0, 18), kind(13),
	))
	f.Fuzz(func(t *testing.T, data []byte) {
		c := newScript()
		for i := 0; len(data) >= 8 && i < 2000; i++ {
			c.play(data[:8])
			if data = data[8:]; i%16 == 15 {
				if err := checkSnapshot(c.store.Snapshot()); err != nil {
					t.Fatal(err)
				}
			}
		}
		c.now += 1 + event.Time(2*sec)
		if err := checkSnapshot(c.store.Snapshot()); err != nil {
			t.Fatal(err)
		}
	})
}
