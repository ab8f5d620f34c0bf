package runtime_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// What the fake engine's work takes, per batch or per row of it. Time is virtual in these tests, so stamps are exact.
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

// fakeEngine continues the alphabet: after the byte b comes b+1, after 'z' the end of the text, and then 'a'.
type fakeEngine struct {
	t              testing.TB
	slots, context int
	batch          int
	fail           map[int]error // by number of Forward, from 1
	falls          string        // the method that panics
	sticks         error         // Close's error

	mu       sync.Mutex
	hooks    runtime.Hooks
	batches  [][]runtime.Row
	filled   []int
	prompt   uint64
	decode   uint64
	closed   bool
	released []int

	logits [][]float32
	picks  [][]uint16
	layers []runtime.LayerTime
}

func newFake(t testing.TB, slots, context, batch int) *fakeEngine {
	e := &fakeEngine{t: t, slots: slots, context: context, batch: batch, filled: make([]int, slots)}
	for range batch {
		e.logits = append(e.logits, make([]float32, fakeVocab))
		e.picks = append(e.picks, make([]uint16, fakeLayers*fakeUsed))
	}
	e.layers = make([]runtime.LayerTime, fakeLayers)
	return e
}

func (e *fakeEngine) Info() event.Engine {
	return event.Engine{Name: "fake", Device: event.Device{Name: "CPU", Host: true}}
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

func (e *fakeEngine) Piece(id int32) string    { return fakePieces[id] }
func (e *fakeEngine) IsEOG(id int32) bool      { return id == fakeEOG }
func (e *fakeEngine) Slots() int               { return e.slots }
func (e *fakeEngine) Context() int             { return e.context }
func (e *fakeEngine) MaxBatch() int            { return e.batch }
func (e *fakeEngine) SetHooks(h runtime.Hooks) { e.mu.Lock(); e.hooks = h; e.mu.Unlock() }

func (e *fakeEngine) Close() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.closed = true
	e.fall("Close")
	return e.sticks
}

// fall panics if it is this method's turn to.
func (e *fakeEngine) fall(method string) {
	if e.falls == method {
		panic("the fake engine fell over\nin " + method)
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

// Forward checks the rows against what the slots hold, and leaves logits that favour the next letter.
func (e *fakeEngine) Forward(b *runtime.Batch) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.batches = append(e.batches, append([]runtime.Row(nil), b.Rows...))
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

func (e *fakeEngine) count(r runtime.Row) {
	if r.Prompt {
		e.prompt++
	} else {
		e.decode++
	}
}

// next are the logits after a token.
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

// work passes the time that a batch takes and reports it.
func (e *fakeEngine) work(b *runtime.Batch) {
	rows := time.Duration(len(b.Rows))
	b.Time = runtime.BatchTime{Embed: int64(rows * fakeEmbed)}
	if len(b.Logits) > 0 {
		b.Time.Head = int64(fakeHead)
	}
	layer := runtime.LayerTime{
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

// fakeSampler takes the highest logit.
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

// recorder is a Sink that keeps everything.
type recorder struct {
	mu     sync.Mutex
	events []event.Event
}

func (r *recorder) Emit(e event.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, e)
}

// of are the events of one kind, of one request or (0) of any.
func (r *recorder) of(kind event.Kind, req event.RequestID) (found []event.Event) {
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
	*runtime.Scheduler
	*recorder
	engine *fakeEngine
	clock  runtime.Clock
	stop   func() error // ends Run and returns its error
}

// run starts a scheduler on e and hands it to body, all in virtual time.
func run(t *testing.T, e *fakeEngine, opt runtime.Options, body func(t *testing.T, b *bench)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		e.t = t
		opt.Clock = runtime.NewClock()
		b := start(e, opt, runtime.Loaded(e))
		synctest.Wait()
		body(t, b)
		if err := b.stop(); err != nil {
			t.Errorf("Run ended with %v", err)
		}
	})
}

// start runs a scheduler on its own goroutine.
func start(e *fakeEngine, opt runtime.Options, load runtime.Load) *bench {
	if opt.Sampler == nil {
		opt.Sampler = func(runtime.Params, int) runtime.Sampler { return fakeSampler{} }
	}
	b := &bench{Scheduler: runtime.New(load, opt), recorder: &recorder{}, engine: e, clock: opt.Clock}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- b.Run(ctx, b.recorder) }()
	b.stop = sync.OnceValue(func() error {
		cancel()
		return <-ended
	})
	return b
}

// ask submits a request that must be accepted.
func (b *bench) ask(t *testing.T, text string, tokens int) *runtime.Handle {
	t.Helper()
	h, err := b.Submit(runtime.Request{Text: text, MaxTokens: tokens, SendText: true, Label: "test"})
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// want checks how a request ended.
func want(t *testing.T, h *runtime.Handle, state event.State, reason, text string) {
	t.Helper()
	r := h.Result()
	if got, wanted := fmt.Sprintf("%v %s %q", r.State, r.Reason, r.Text), fmt.Sprintf("%v %s %q", state, reason, text); got != wanted {
		t.Errorf("request #%d ended %s, want %s", h.ID, got, wanted)
	}
}
