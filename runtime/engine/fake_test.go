package engine_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime/engine"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// loaded returns a Load for an engine that is already open.
func loaded(e engine.Engine) engine.Load {
	return func(context.Context, func(engine.LoadStage)) (engine.Engine, error) { return e, nil }
}

// Virtual time that the fake engine's work takes, per batch or per row. Virtual time makes timestamps exact.
const (
	fakeEmbed     = 1 * time.Microsecond  // per row
	fakeAttention = 10 * time.Microsecond // per row and layer
	fakeRouter    = 2 * time.Microsecond  // per row and layer
	fakeExperts   = 20 * time.Microsecond // per row and layer
	fakeHead      = 50 * time.Microsecond // per batch with logits
	fakeSample    = 5 * time.Microsecond  // per token
	fakeTokenize  = 3 * time.Microsecond  // per text
	fakeLayers    = 2
	fakeVocab     = 257
	fakeEOG       = 256
	fakeUsed      = 2 // experts per token and layer
)

// fakeEngine continues the alphabet: after byte b comes b+1; after 'z' the end of the text, then 'a'.
type fakeEngine struct {
	t              testing.TB
	slots, context int
	batch          int
	fail           map[int]error // errors by number of the Forward call, from 1
	panicIn        string        // name of the method that panics
	closeErr       error         // error of Close
	pieceTime      time.Duration // of Piece

	mu       sync.Mutex
	hooks    engine.Hooks
	batches  [][]engine.Row
	filled   []int
	prompt   uint64
	decode   uint64
	closed   bool
	released []int

	logits [][]float32
	picks  [][]uint16
	layers []engine.LayerTime
}

func newFake(t testing.TB, slots, context, batch int) *fakeEngine {
	e := &fakeEngine{t: t, slots: slots, context: context, batch: batch, filled: make([]int, slots)}
	for range batch {
		e.logits = append(e.logits, make([]float32, fakeVocab))
		e.picks = append(e.picks, make([]uint16, fakeLayers*fakeUsed))
	}
	e.layers = make([]engine.LayerTime, fakeLayers)
	return e
}

func (e *fakeEngine) Info() event.EngineInfo {
	return event.EngineInfo{Name: "fake", Device: event.Device{Name: "CPU", Host: true}}
}

func (e *fakeEngine) Model() event.Model {
	return event.Model{Name: "alphabet", Layers: fakeLayers, Vocab: fakeVocab, Experts: 4, ExpertsUsed: fakeUsed, Context: e.context}
}

func (e *fakeEngine) Encode(dst []int32, text string, _ bool) []int32 {
	time.Sleep(fakeTokenize)
	e.fall("Encode")
	for _, b := range []byte(text) {
		dst = append(dst, int32(b))
	}
	return dst
}

var fakePieces = func() (pieces [fakeVocab]string) {
	for i := range fakeEOG {
		pieces[i] = string([]byte{byte(i)})
	}
	pieces[fakeEOG] = "<end>"
	return pieces
}()

func (e *fakeEngine) Piece(id int32) string   { time.Sleep(e.pieceTime); return fakePieces[id] }
func (e *fakeEngine) IsEOG(id int32) bool     { return id == fakeEOG }
func (e *fakeEngine) Slots() int              { return e.slots }
func (e *fakeEngine) Context() int            { return e.context }
func (e *fakeEngine) MaxBatch() int           { return e.batch }
func (e *fakeEngine) SetHooks(h engine.Hooks) { e.mu.Lock(); e.hooks = h; e.mu.Unlock() }
func (e *fakeEngine) Keep(int, int) int       { e.t.Error("reused a slot"); return 0 }
func (e *fakeEngine) Ops() *event.Ops         { return nil }
func (e *fakeEngine) Threads() []int          { return nil }

func (e *fakeEngine) Close() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.closed = true
	e.fall("Close")
	return e.closeErr
}

// fall panics if method is set to panic.
func (e *fakeEngine) fall(method string) {
	if e.panicIn == method {
		panic("fake engine panicked\nin " + method)
	}
}

func (e *fakeEngine) Release(slot int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.fall("Release")
	e.filled[slot] = 0
	e.released = append(e.released, slot)
}

func (e *fakeEngine) Router() *event.Experts {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.fall("Router")
	return &event.Experts{Layers: fakeLayers, Experts: 4, Used: fakeUsed, PromptTokens: e.prompt, DecodeTokens: e.decode}
}

// Forward checks the rows against the content of the slots, and returns logits that favour the next letter.
func (e *fakeEngine) Forward(b *engine.Batch) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.batches = append(e.batches, append([]engine.Row(nil), b.Rows...))
	if err := e.fail[len(e.batches)]; err != nil {
		return err
	}
	e.fall("Forward")
	if len(b.Rows) == 0 || len(b.Rows) > e.batch {
		e.t.Errorf("batch of %d rows, want 1 to %d", len(b.Rows), e.batch)
	}
	b.Logits, b.Picks = b.Logits[:0], b.Picks[:0]
	for i, r := range b.Rows {
		if int(r.Pos) != e.filled[r.Slot] || int(r.Pos) >= e.context {
			e.t.Errorf("slot %d gets position %d, holds %d of %d", r.Slot, r.Pos, e.filled[r.Slot], e.context)
		}
		e.filled[r.Slot]++
		e.count(r)
		if r.Logits {
			b.Logits = append(b.Logits, e.next(len(b.Logits), r.Token))
		}
		if e.hooks.Picks {
			e.picks[i][0] = uint16(r.Pos)
			b.Picks = append(b.Picks, e.picks[i])
		}
	}
	e.work(b)
	return nil
}

func (e *fakeEngine) count(r engine.Row) {
	if r.Prompt {
		e.prompt++
	} else {
		e.decode++
	}
}

// next returns the logits after a token.
func (e *fakeEngine) next(i int, token int32) []float32 {
	logits := e.logits[i]
	clear(logits)
	switch token {
	case 'z':
		logits[fakeEOG] = 1
	case fakeEOG:
		logits['a'] = 1
	default:
		logits[token+1] = 1
	}
	return logits
}

// work lets the time of a batch pass and reports it.
func (e *fakeEngine) work(b *engine.Batch) {
	rows := time.Duration(len(b.Rows))
	b.Time = engine.BatchTime{Embed: int64(rows * fakeEmbed)}
	if len(b.Logits) > 0 {
		b.Time.Head = int64(fakeHead)
	}
	layer := engine.LayerTime{
		Attention: int64(rows * fakeAttention), Router: int64(rows * fakeRouter), Experts: int64(rows * fakeExperts),
	}
	for i := range e.layers {
		e.layers[i] = layer
	}
	if e.hooks.Split {
		b.Time.Layers = e.layers
	}
	time.Sleep(time.Duration(b.Time.Embed + b.Time.Head + fakeLayers*(layer.Attention+layer.Router+layer.Experts)))
}

// fakeSampler picks the highest logit.
type fakeSampler struct{}

func (fakeSampler) Sample(logits []float32, _ []int32) (int32, float32) {
	time.Sleep(fakeSample)
	best := 0
	for i, v := range logits {
		if v > logits[best] {
			best = i
		}
	}
	return int32(best), -0.5
}

func (fakeSampler) TopLogprobs(dst []event.TopProb, _ []float32, k int) []event.TopProb {
	for i := range k {
		dst = append(dst, event.TopProb{ID: int32('a' + i), LogP: float32(-i)})
	}
	return dst
}

// recorder is a Sink that keeps all events.
type recorder struct {
	mu     sync.Mutex
	events []event.Event
}

func (r *recorder) Emit(e event.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, e)
}

// byKind returns the events of one kind, of one request or (0) of all.
func (r *recorder) byKind(kind event.Kind, req event.RequestID) (found []event.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range r.events {
		if e.Kind == kind && (req == 0 || e.Req == req) {
			found = append(found, e)
		}
	}
	return found
}

// bench is a scheduler that runs on a fake engine in virtual time.
type bench struct {
	*engine.Scheduler
	*recorder
	engine *fakeEngine
	clock  engine.Clock
	stop   func() error // ends Run and returns its error
}

// run starts a scheduler on e and passes it to body, in virtual time.
func run(t *testing.T, e *fakeEngine, opt engine.Options, body func(t *testing.T, b *bench)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		e.t = t
		opt.Clock = engine.NewClock()
		b := start(e, opt, loaded(e))
		synctest.Wait()
		body(t, b)
		if err := b.stop(); err != nil {
			t.Errorf("Run ended with %v", err)
		}
	})
}

// start runs a scheduler on its own goroutine.
func start(e *fakeEngine, opt engine.Options, load engine.Load) *bench {
	if opt.Sampler == nil {
		opt.Sampler = func(engine.Params, int) engine.Sampler { return fakeSampler{} }
	}
	b := &bench{Scheduler: engine.New(load, opt), recorder: &recorder{}, engine: e, clock: opt.Clock}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- b.Run(ctx, b.recorder) }()
	b.stop = sync.OnceValue(func() error {
		cancel()
		return <-ended
	})
	return b
}

// mustSubmit submits a request that must be accepted.
func (b *bench) mustSubmit(t *testing.T, text string, tokens int) *engine.Handle {
	t.Helper()
	h, err := b.Submit(engine.Request{Text: text, MaxTokens: tokens, SendText: true, Label: "test"})
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// want checks how a request ended.
func want(t *testing.T, h *engine.Handle, state event.State, reason, text string) {
	t.Helper()
	r := h.Result()
	if got, wanted := fmt.Sprintf("%v %s %q", r.State, r.Reason, r.Text), fmt.Sprintf("%v %s %q", state, reason, text); got != wanted {
		t.Errorf("request #%d ended %s, want %s", h.ID, got, wanted)
	}
}
