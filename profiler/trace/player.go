package trace

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
)

// The speeds of a replay, times that of the recording.
const (
	Slowest = 0.1
	Fastest = 1000
)

// Unpaced is the speed of a replay as fast as possible.
var Unpaced = math.Inf(1)

const (
	burst    = 4096                   // events between two calls of Drain, a quarter of what a queue holds
	nap      = time.Millisecond       // between two bursts at least, so that a fast replay does not wake up for every event
	patience = 100 * time.Millisecond // that a replay may lag before it lets go of catching up

	// DefaultRebuild is how many bytes of a recording are replayed at most when a seek rebuilds what was before.
	DefaultRebuild = 256 << 20
)

// PlayOptions configure a Player.
type PlayOptions struct {
	Codec     func() Codec
	Speed     float64 // Slowest to Fastest, or Unpaced; 0 is 1
	Paused    bool    // begin with a pause
	StopAtEnd bool    // Run returns at the end; without it, it waits for a seek
	Rebuild   int64   // bytes that a seek may go through; 0: DefaultRebuild

	// Reset gives a sink that has seen nothing: a seek back begins anew. Without it, there is only the way forward.
	// It runs on the goroutine of Run; Now has gone back before.
	Reset func() event.Sink
	// Clock is what the replay is paced by; nil: the clock of the machine. One that only Advance is called with may stand still.
	Clock func() time.Time
	// Of gives the sink of a source in a recording of several, by its number, for each event anew; nil: all go to the sink of Run.
	Of func(source int) event.Sink
	// Drain lets the sink take in what it has queued. Without it, a fast replay overruns the queue of a store.
	Drain func()
}

// Player is a source that emits the events of a recording at their times, or faster, or one by one. Its clock is that of the
// recording: a store that takes Now for its clock shows what it showed live.
type Player struct {
	opt   PlayOptions
	rec   *Recording
	wake  chan struct{}
	exact bool // the clock waits for what is emitted, so that there is nothing to catch up with

	emitted atomic.Int64 // time of the newest event that was emitted
	next    atomic.Int64 // time of the event after it; beyond is the end

	mu      sync.Mutex // guards what follows
	base    event.Time // position at anchor
	anchor  time.Time
	speed   float64
	paused  bool
	ended   bool
	seeking bool
	target  event.Time // of the seek
	step    Step
	from    event.Time // where what the sink has seen begins
	damage  Damage
	unread  uint64

	// Used by the goroutine of Run only.
	codec  Codec
	sink   event.Sink
	cursor *Cursor
	entry  Entry
	more   bool // entry holds what comes next
	fed    int  // events since the last Drain
	loss   losses
}

// Step is how far a paused replay goes on at once.
type Step uint8

// The steps.
const (
	StepNone  Step = iota
	StepEvent      // to the next event
	StepToken      // to the next token
)

// NewPlayer makes a player of a recording, which stays the caller's to close after Run has returned.
func NewPlayer(rec *Recording, opt PlayOptions) (*Player, error) {
	codec := opt.Codec()
	if err := reads(codec, rec.Codec); err != nil {
		return nil, fmt.Errorf("replay recording: %w", err)
	}
	if opt.Rebuild <= 0 {
		opt.Rebuild = DefaultRebuild
	}
	exact := opt.Clock != nil
	if !exact {
		opt.Clock = time.Now
	}
	p := &Player{exact: exact, opt: opt, rec: rec, codec: codec, wake: make(chan struct{}, 1), speed: 1, paused: opt.Paused, base: rec.Begin, anchor: opt.Clock()}
	p.emitted.Store(int64(rec.Begin))
	p.next.Store(int64(rec.Begin))
	if opt.Speed != 0 {
		if err := p.SetSpeed(opt.Speed); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// Run emits the recording to sink, and to what Reset gives after that, until ctx ends or the disk fails.
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

// Begin gets ready to emit the recording by Advance, for those who move the clock themselves; it stands in for Run.
func (p *Player) Begin(sink event.Sink) error {
	p.sink = sink
	p.begin(0)
	return p.fetch()
}

// Advance emits what is due by the clock, and returns when that is all.
func (p *Player) Advance() error {
	defer p.drain()
	for {
		if wait, err := p.turn(); err != nil || wait != 0 {
			return err
		}
	}
}

// sleep waits for a time, without end if it is negative, or until something is asked for.
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

// begin goes to a segment. Its state is the first that is emitted.
func (p *Player) begin(segment int) {
	s := p.rec.segments[segment]
	p.cursor, p.loss, p.fed = p.rec.Cursor(segment), losses{}, 0
	p.mu.Lock()
	defer p.mu.Unlock()
	p.from = s.begin
	p.emitted.Store(int64(s.begin))
	p.base, p.anchor = s.begin, p.opt.Clock()
}

// beyond is the time of what comes after the last event.
const beyond = math.MaxInt64

// fetch reads the next entry.
func (p *Player) fetch() error {
	for {
		e, err := p.cursor.Next()
		p.more = err == nil
		if errors.Is(err, io.EOF) {
			p.next.Store(beyond)
			return nil
		}
		if err != nil {
			return fmt.Errorf("replay recording: %w", err)
		}
		if e.Note != nil {
			if lost, news := p.loss.note(e.Note, event.Time(p.emitted.Load())); news && p.opt.Of == nil {
				p.emit(p.sink, lost)
			}
			continue
		}
		p.entry = e
		p.next.Store(min(max(int64(e.At), p.emitted.Load()), beyond-1)) // times never go back, and the end is no time
		return nil
	}
}

// emit hands an event to a sink.
func (p *Player) emit(to event.Sink, e event.Event) {
	to.Emit(e)
	if p.fed++; p.fed >= burst {
		p.drain()
	}
}

func (p *Player) drain() {
	if p.fed = 0; p.opt.Drain != nil {
		p.opt.Drain()
	}
}

// play emits the entry and fetches the one after it.
func (p *Player) play() (token bool, err error) {
	if p.cursor.Gap() && p.opt.Reset != nil {
		p.anew(event.Time(p.next.Load()))
	}
	p.emitted.Store(p.next.Load()) // before the event is out, so that no clock is behind it
	bad := p.codec.Decode(p.entry.Line, func(e event.Event) {
		token = token || e.Kind == event.KindToken
		if p.opt.Of != nil { // what the recorder has lost of all of them is in the status
			p.emit(p.opt.Of(p.entry.Source), e)
			return
		}
		p.emit(p.sink, p.loss.event(e))
	})
	if bad != nil {
		p.mu.Lock()
		p.unread++
		p.mu.Unlock()
	}
	return token, p.fetch()
}

// anew goes on with a sink that has seen nothing.
func (p *Player) anew(from event.Time) {
	p.mu.Lock()
	p.from = from
	p.mu.Unlock()
	p.sink, p.fed = p.opt.Reset(), 0
}
