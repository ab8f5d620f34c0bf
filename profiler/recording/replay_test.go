package recording

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/event/eventtest"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/profiler/store/storetest"
)

const ms = event.Time(time.Millisecond)

// busySession simulates overlapping requests with everything that an engine reports.
type busySession struct {
	now    event.Time
	rand   *rand.Rand
	sink   event.Sink
	picks  event.Experts
	queued event.RequestID
	tokens map[event.RequestID]int32
}

func (b *busySession) emit(e event.Event) {
	e.At = b.now - event.Time(b.rand.IntN(1000)) // sources stamp slightly before they emit
	b.sink.Emit(e)
}

func (b *busySession) begin() {
	b.tokens = make(map[event.RequestID]int32)
	b.picks = event.Experts{Layers: 2, Experts: 4, Used: 2}
	caps := event.CapStages | event.CapTokens | event.CapText | event.CapExperts | event.CapKV | event.CapSteps | event.CapQueue
	b.emit(event.Event{Kind: event.KindEngine, Layer: -1, Data: &event.EngineInfo{Name: "native", Caps: caps, Slots: 4, State: event.EngineReady}})
	b.emit(event.Event{Kind: event.KindStage, Stage: event.StageLoadOpen, Layer: -1, Dur: 5e5})
	b.emit(event.Event{Kind: event.KindModel, Layer: -1, Dur: 1e6, Data: &event.Model{Name: "m", Architecture: "mixtral", Layers: 2, Experts: 4, ExpertsUsed: 2, WeightBytes: 1e6, KVBytes: 10}})
}

// step advances by a few milliseconds, calls first, and then emits what happened.
func (b *busySession) step(first func()) {
	b.now += event.Time(b.rand.IntN(9e6)) + 1
	first()
	if len(b.tokens) < 5 && b.rand.IntN(20) == 0 {
		b.queue()
	}
	prompt := int32(0)
	for id := range b.queued + 1 {
		n, ok := b.tokens[id]
		switch {
		case !ok:
		case n < 0:
			b.dispatch(id)
			prompt += 16
		case b.rand.IntN(40) == 0:
			b.end(id, n)
		default:
			b.emit(event.Event{Kind: event.KindToken, Layer: -1, Req: id, ID: b.rand.Int32N(32000), N: 1, Index: n, Text: b.word(), LogP: -b.rand.Float32(), HasLogP: true})
			b.tokens[id] = n + 1
		}
	}
	if len(b.tokens) > 0 {
		b.emit(event.Event{Kind: event.KindStep, Layer: -1, Dur: 2e6, N: int32(len(b.tokens)), Prompt: prompt})
		b.count(uint64(len(b.tokens)))
	}
	if b.rand.IntN(30) == 0 {
		b.emit(event.Event{Kind: event.KindHost, Layer: -1, Data: &event.Host{Interval: 1e9, Cores: []float64{.5, b.rand.Float64()}, CPU: event.MeasuredValue(.4), MemUsed: event.MeasuredValue(1e9), MemTotal: event.MeasuredValue(2e9)}})
		b.emit(event.Event{Kind: event.KindLog, Layer: -1, Text: "a line of the log"})
	}
}

// word returns a random word, as a model would generate it.
func (b *busySession) word() string {
	w := []byte{' '}
	for range 1 + b.rand.IntN(7) {
		w = append(w, byte('a'+b.rand.IntN(26)))
	}
	return string(w)
}

func (b *busySession) queue() {
	b.queued++
	b.tokens[b.queued] = -1
	b.emit(event.Event{Kind: event.KindRequest, Layer: -1, Req: b.queued, State: event.StateQueued, Data: &event.Request{Group: fmt.Sprint("g", b.queued%3), Prompt: "hi", MaxTokens: 64}})
}

func (b *busySession) dispatch(id event.RequestID) {
	b.emit(event.Event{Kind: event.KindRequest, Layer: -1, Req: id, State: event.StateDispatched})
	b.emit(event.Event{Kind: event.KindStage, Layer: -1, Req: id, Stage: event.StagePrompt, Dur: 4e5, N: 16})
	b.tokens[id] = 0
}

func (b *busySession) end(id event.RequestID, n int32) {
	delete(b.tokens, id)
	b.emit(event.Event{Kind: event.KindRequest, Layer: -1, Req: id, State: event.StateFinished, Data: &event.Outcome{Reason: "stop", Prompt: 16, Generated: int(n)}})
	b.emit(event.Event{Kind: event.KindKV, Layer: -1, Data: &event.KV{Used: int64(16 * len(b.tokens)), Total: 640, Freed: 16, Residency: 3e6}})
}

func (b *busySession) count(n uint64) {
	x := b.picks
	x.Decode, x.Prompt = make([]uint64, 8), make([]uint64, 8)
	for i := range x.Decode {
		x.Decode[i] = uint64(b.queued) * uint64(i+1) // grows with the session
	}
	x.DecodeTokens = b.picks.DecodeTokens + n
	b.picks = x
	b.emit(event.Event{Kind: event.KindExperts, Layer: -1, Data: &x})
}

// live plays a session of the given steps into a store and a recording, and returns the snapshot of every frame.
func live(t testing.TB, steps int, opt RecordOptions) (path string, frames []*store.Snapshot) {
	t.Helper()
	b := &busySession{now: ms, rand: rand.New(rand.NewPCG(1, 2))}
	opt.Flush = time.Hour
	tp := record(t, opt)
	tp.now.Store(int64(ms))
	s := store.New(store.Options{Now: tp.time, Wall: func() time.Time { return wallOf(tp.time()) }})
	b.sink = event.Tee{s, tp.Recorder}
	b.begin()
	const every = 100 * ms
	for range steps {
		from := b.now
		b.step(func() {
			for at := from/every*every + every; at < b.now; at += every { // frames before this step
				tp.now.Store(int64(at))
				frames = append(frames, s.Snapshot())
			}
			tp.now.Store(int64(b.now))
		})
	}
	frames = append(frames, s.Snapshot())
	tp.end(t)
	return tp.path, frames
}

func wallOf(at event.Time) time.Time {
	return time.Unix(0, 1_700_000_000_000_000_000).Add(time.Duration(at))
}

// same fails the test if two snapshots differ.
func same(t testing.TB, what string, want, got *store.Snapshot) {
	t.Helper()
	if d := storetest.Diff(want, got); d != "" {
		t.Fatalf("%s at %v (-live +replayed):\n%s", what, time.Duration(want.Now), d)
	}
}

// replayTest plays a recording into a store in a synctest bubble.
type replayTest struct {
	*Player
	store *store.Store
	fresh int
	stop  func()
}

func newReplay(t testing.TB, path string, opt PlayOptions) *replayTest {
	t.Helper()
	rec, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	r := &replayTest{}
	opt.Reset = func() event.Sink {
		r.fresh++
		r.store = store.New(store.Options{Now: r.Now, Wall: r.Wall})
		return r.store
	}
	if r.Player, err = NewPlayer(rec, opt); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx, opt.Reset()) }()
	r.stop = func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if err := rec.Close(); err != nil {
			t.Error(err)
		}
	}
	synctest.Wait()
	return r
}

// TestAdvanceMatchesLive checks that a caller of Advance gets at each time what was shown live, immediately and without
// a goroutine.
func TestAdvanceMatchesLive(t *testing.T) {
	path, frames := live(t, 500/eventtest.Step(5), RecordOptions{})
	for _, speed := range []float64{1, 50} {
		rec, err := Open(path)
		if err != nil {
			t.Fatal(err)
		}
		begin := time.Unix(0, 0)
		now := begin
		r := &replayTest{}
		if r.Player, err = NewPlayer(rec, PlayOptions{Speed: speed, Clock: func() time.Time { return now }}); err != nil {
			t.Fatal(err)
		}
		s := store.New(store.Options{Now: r.Now, Wall: r.Wall})
		if err := r.Begin(s); err != nil {
			t.Fatal(err)
		}
		exact := 0
		for _, want := range frames {
			now = begin.Add(time.Duration(float64(want.Now-rec.Begin) / speed))
			if err := r.Advance(); err != nil {
				t.Fatal(err)
			}
			if got := s.Snapshot(); got.Now == want.Now {
				exact++
				same(t, "frame", want, got)
			} else if off := want.Now - r.Now(); off < 0 || off > event.Time(speed) { // the clock has a resolution of 1 ns
				t.Fatalf("at speed %v the replay is at %v, want %v", speed, r.Now(), want.Now)
			}
		}
		if exact < len(frames)/2 {
			t.Errorf("at speed %v only %d of %d frames have the exact time", speed, exact, len(frames))
		}
		if err := rec.Close(); err != nil {
			t.Error(err)
		}
	}
}
