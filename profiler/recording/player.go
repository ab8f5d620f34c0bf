package recording

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/event/wire"
)

// The range of replay speeds, as multiples of the recorded speed.
const (
	Slowest = 0.1
	Fastest = 1000
)

// Unpaced is the speed of a replay as fast as possible.
var Unpaced = math.Inf(1)

const (
	burst    = 4096                   // events between two calls of Drain: a quarter of a store's queue
	nap      = time.Millisecond       // shortest wait between two bursts, so that a fast replay does not wake up for every event
	patience = 100 * time.Millisecond // largest lag of a replay that is caught up; beyond it the clock is reset

	// DefaultRebuild is how many bytes of a recording a seek replays at most to rebuild the state before its target.
	DefaultRebuild = 256 << 20
)

// PlayOptions configure a Player.
type PlayOptions struct {
	Speed     float64 // Slowest to Fastest, or Unpaced; 0 is 1
	Paused    bool    // start paused
	StopAtEnd bool    // Run returns at the end; otherwise it waits for a seek
	Rebuild   int64   // bytes that a seek may replay; 0: DefaultRebuild

	// Reset returns an empty sink: a seek back starts over. If nil, only seeks forward are possible. It runs on the
	// goroutine of Run, after Now has gone back.
	Reset func() event.Sink
	// Clock paces the replay; nil: the clock of the machine. With Advance only, it may stand still.
	Clock func() time.Time
	// SinkFor returns the sink of an engine, by its number, in a recording of several engines; it is called for each
	// event. nil: all events go to the sink of Run.
	SinkFor func(engine int) event.Sink
	// Drain lets the sink process its queue. Without it, a fast replay overruns the queue of a store.
	Drain func()
}

// Player is an event source that emits the events of a recording at their times, faster, or one by one. Now is the
// clock of the recording: a store with this clock shows what it showed live.
type Player struct {
	opt   PlayOptions
	rec   *Recording
	wake  chan struct{}
	exact bool // the clock is Clock and waits for the events: there is no lag to catch up

	emitted atomic.Int64 // time of the newest emitted event
	next    atomic.Int64 // time of the next event; afterEnd at the end

	mu          sync.Mutex // guards what follows
	base        event.Time // position at anchor
	anchor      time.Time
	speed       float64
	paused      bool
	ended       bool
	seeking     bool
	target      event.Time // target of the seek
	step        Step
	totalsSince event.Time // start of the events that the sink has received
	damage      Damage
	undecoded   uint64

	// Used by the goroutine of Run only.
	decoder    wire.Decoder
	sink       event.Sink
	cursor     *Cursor
	entry      Entry
	more       bool // entry is the next one to emit
	sinceDrain int  // events since the last Drain

	// The screen shows the sum of what the engine reports to have dropped and of what the recorder has.
	engineDrops, recorderDrops event.Drops
}

// Step is how far a paused replay advances at once.
type Step uint8

// The steps.
const (
	StepNone  Step = iota
	StepEvent      // to the next event
	StepToken      // to the next token
)

// NewPlayer returns a player of a recording. The caller closes the recording after Run has returned.
func NewPlayer(rec *Recording, opt PlayOptions) (*Player, error) {
	if opt.Rebuild <= 0 {
		opt.Rebuild = DefaultRebuild
	}
	exact := opt.Clock != nil
	if !exact {
		opt.Clock = time.Now
	}
	p := &Player{exact: exact, opt: opt, rec: rec, wake: make(chan struct{}, 1), speed: 1, paused: opt.Paused, base: rec.Begin, anchor: opt.Clock()}
	p.emitted.Store(int64(rec.Begin))
	p.next.Store(int64(rec.Begin))
	if opt.Speed != 0 {
		if err := p.SetSpeed(opt.Speed); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// Run emits the recording to sink, and after a reset to the sink from Reset, until ctx ends or reading fails.
func (p *Player) Run(ctx context.Context, sink event.Sink) error {
	defer p.drain()
	if err := p.Begin(sink); err != nil {
		return err
	}
	for ctx.Err() == nil {
		wait, err := p.turn()
		if err != nil {
			return err
		}
		if wait < 0 && p.opt.StopAtEnd && p.Status().State == Ended {
			return nil
		}
		p.sleep(ctx, wait)
	}
	return nil
}

// Begin prepares for Advance, for callers that move the clock themselves. Use it instead of Run.
func (p *Player) Begin(sink event.Sink) error {
	p.sink = sink
	p.begin(0)
	return p.fetch()
}

// Advance emits all events that are due by the clock.
func (p *Player) Advance() error {
	defer p.drain()
	for {
		if wait, err := p.turn(); err != nil || wait != 0 {
			return err
		}
	}
}

// sleep waits for a duration (forever if it is negative) or until a method changes the player.
func (p *Player) sleep(ctx context.Context, wait time.Duration) {
	if wait == 0 {
		return
	}
	var due <-chan time.Time
	if wait > 0 {
		timer := time.NewTimer(wait)
		defer timer.Stop()
		due = timer.C
	}
	select {
	case <-ctx.Done():
	case <-p.wake:
	case <-due:
	}
}

// begin moves to the start of a segment, whose state is emitted first.
func (p *Player) begin(segment int) {
	s := p.rec.segments[segment]
	p.cursor, p.sinceDrain = p.rec.Cursor(segment), 0
	p.engineDrops, p.recorderDrops = event.Drops{}, event.Drops{}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.totalsSince = s.begin
	p.emitted.Store(int64(s.begin))
	p.base, p.anchor = s.begin, p.opt.Clock()
}

// afterEnd is the time of the entry after the last event.
const afterEnd = math.MaxInt64

// fetch reads the next entry.
func (p *Player) fetch() error {
	for {
		e, err := p.cursor.Next()
		p.more = err == nil
		if errors.Is(err, io.EOF) {
			p.next.Store(afterEnd)
			return nil
		}
		if err != nil {
			return fmt.Errorf("replay recording: %w", err)
		}
		if e.Note != nil {
			if d := e.Note.drops(); d != p.recorderDrops && d.Total() >= p.recorderDrops.Total() {
				p.recorderDrops = d
				p.emitDrops()
			}
			continue
		}
		p.entry = e
		p.next.Store(min(max(int64(e.At), p.emitted.Load()), afterEnd-1)) // times never decrease and are below afterEnd
		return nil
	}
}

// emit passes an event to a sink.
func (p *Player) emit(to event.Sink, e event.Event) {
	to.Emit(e)
	if p.sinceDrain++; p.sinceDrain >= burst {
		p.drain()
	}
}

// drain calls Drain.
func (p *Player) drain() {
	if p.sinceDrain = 0; p.opt.Drain != nil {
		p.opt.Drain()
	}
}

// emitNext emits the current entry and fetches the next one. token reports whether it was a token.
func (p *Player) emitNext() (token bool, err error) {
	if p.cursor.Gap() && p.opt.Reset != nil {
		p.restart(event.Time(p.next.Load()))
	}
	p.emitted.Store(p.next.Load()) // before the event is emitted, so that no clock is behind it
	_, bad := p.decoder.Decode(p.entry.Line, func(e event.Event) {
		token = token || e.Kind == event.KindToken
		if p.opt.SinkFor != nil { // drops of all engines together are in the status
			p.emit(p.opt.SinkFor(p.entry.Engine), e)
			return
		}
		if d, ok := e.Data.(*event.Drops); ok {
			p.engineDrops = *d
			e.Data = p.drops()
		}
		p.emit(p.sink, e)
	})
	if bad != nil {
		p.mu.Lock()
		p.undecoded++
		p.mu.Unlock()
	}
	return token, p.fetch()
}

// restart continues with an empty sink. The state that follows has the engine's drops, but not the recorder's.
func (p *Player) restart(from event.Time) {
	p.mu.Lock()
	p.totalsSince = from
	p.mu.Unlock()
	p.sink, p.sinceDrain = p.opt.Reset(), 0
	if p.engineDrops = (event.Drops{}); p.recorderDrops.Total() > 0 {
		p.emitDrops()
	}
}

// emitDrops emits all drops, unless there are several engines: then only the status has them.
func (p *Player) emitDrops() {
	if p.opt.SinkFor == nil {
		p.emit(p.sink, event.Event{Kind: event.KindDrops, Layer: -1, At: event.Time(p.emitted.Load()), Data: p.drops()})
	}
}

func (p *Player) drops() *event.Drops {
	sum := p.engineDrops
	for k, n := range p.recorderDrops {
		sum[k] += n
	}
	return &sum
}
