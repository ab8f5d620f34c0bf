package socket

import (
	"errors"
	"fmt"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/event/wire"
	"github.com/llmtop/llmtop/runtime"
)

const (
	// maxKnown is how many live requests a client remembers, some 64 bytes each.
	maxKnown = 1 << 14
	// jump is by how much the engine's clock may run away from the client's.
	jump = event.Time(250 * time.Millisecond)
	// ties is how many heartbeats in a row must have come late, and settles for how long they must do so, before that is put down to the
	// engine's clock: those of a client that was stopped come late, too, but all at once.
	ties    = 3
	settles = event.Time(1500 * time.Millisecond)
	// maxID is the largest request id that an engine should use. Larger ones are taken as they are.
	maxID = event.RequestID(1)<<53 - 1
)

// follow makes sense of what an engine says, across its connections and runs.
type follow struct {
	sink    event.Sink
	clock   runtime.Clock
	decoder wire.Decoder
	batch   []event.Event // of the line
	held    []event.Event // steps that wait for the tokens they made

	engine event.Engine // as it has introduced itself
	remote event.Remote
	model  event.Model
	took   int64 // ns of its load
	run    string
	known  bool // the engine has introduced itself over this connection

	offset  event.Time // client's clock less the engine's
	settles event.Time // see the constant
	late    lateness

	live    map[event.RequestID]*progress
	highest event.RequestID // of all runs, on the client's side
	base    event.RequestID // added to the ids of this run

	syncing bool   // the engine tells its state
	round   uint64 // number of times that it has done so
	synced  bool   // it has done so in this run before

	came        uint64 // events of this connection that count
	garbage     uint64 // of remote.Garbage, what has been told
	lost        event.Lost
	lostThen    event.Lost // over the connections before
	missing     int64      // see event.Remote
	missingThen int64      // over the connections before
}

// progress is what a client knows of a live request.
type progress struct {
	next  int32  // index of the token to come
	begun uint64 // round in which it was first heard of
	named uint64 // round of the last state that named it
}

// lateness is what a client knows of the heartbeats in a row that have come late.
type lateness struct {
	beats int
	since event.Time // when the first of them came
	least event.Time // of what the offset would be
}

// begin begins a connection.
func (f *follow) begin() {
	f.known, f.syncing, f.late, f.came = false, false, lateness{}, 0
	f.release()
	for k := range f.lost {
		f.lostThen[k] += f.lost[k]
	}
	f.missingThen += f.missing
	f.lost, f.missing = event.Lost{}, 0
}

// line makes events of a line. Errors: ErrVersion; a line that makes no sense is counted.
func (f *follow) line(line []byte) (wire.Session, error) {
	clear(f.batch)
	f.batch = f.batch[:0]
	session, err := f.decoder.Decode(line, func(e event.Event) { f.batch = append(f.batch, e) })
	switch {
	case errors.Is(err, ErrVersion):
		return session, err
	case err != nil:
		f.remote.Garbage++
		return wire.Session{}, nil
	case session.Type == wire.Hello:
		f.greet(&session)
	case !f.known:
		return session, nil // nobody has introduced himself
	}
	f.heard()
	if session.Type == wire.None && !f.syncing {
		f.came += uint64(len(f.batch))
	}
	f.events()
	f.about(&session)
	return session, nil
}

// greet takes an introduction, which tells whether this is the engine of before.
func (f *follow) greet(s *wire.Session) {
	f.engine = *f.batch[0].Data.(*event.Engine)
	run := fmt.Sprint(s.Run, "/", f.engine.PID)
	if f.run != "" && run != f.run {
		f.remote.Restarts++
		f.endAll("the engine was started anew", 0)
		f.base, f.synced = f.highest, false
		if f.highest > maxID { // no room to number on: such ids are random, and do not come again
			f.base, f.highest = 0, 0
		}
	}
	f.run, f.known = run, true
	f.offset = f.clock.Now() - s.At
	f.remote.Link, f.remote.Why, f.remote.Since = event.LinkConnected, "", f.clock.Now()
}

// heard says that the engine is not silent.
func (f *follow) heard() {
	if f.remote.Link != event.LinkConnected {
		f.linked(event.LinkConnected, "")
	}
}

// silent says that the engine is.
func (f *follow) silent() {
	if f.known {
		f.linked(event.LinkStale, "")
	}
}

// linked tells that the connection has changed.
func (f *follow) linked(l event.Link, why string) {
	f.release()
	if f.remote.Link == l && f.remote.Why == why {
		return
	}
	f.remote.Link, f.remote.Why, f.remote.Since = l, why, f.clock.Now()
	f.introduce(f.clock.Now())
}

// introduce tells what the engine is and how it is connected.
func (f *follow) introduce(at event.Time) {
	e := f.engine
	e.Epoch, e.Remote = f.clock.Epoch(), f.remote
	e.Remote.Missing = f.missing + f.missingThen
	f.garbage = f.remote.Garbage
	f.sink.Emit(event.Event{Kind: event.KindEngine, At: at, Layer: -1, Data: &e})
}

// about takes what the line says about the connection.
func (f *follow) about(s *wire.Session) {
	switch s.Type {
	case wire.Sync:
		f.syncing = true
		f.round++
	case wire.Synced:
		if f.syncing {
			f.endAll("its end was not seen", f.round)
		}
		f.syncing, f.synced = false, true
	case wire.Clock:
		f.beat(s.At)
		f.balance(s)
	case wire.Lost:
		f.balance(s)
	}
}

// balance compares what came with what the engine has sent.
func (f *follow) balance(s *wire.Session) {
	if !s.Counted {
		return
	}
	missing := int64(s.Events) - int64(f.came+f.lost.Total())
	if missing != f.missing || f.garbage != f.remote.Garbage {
		f.missing = missing
		f.introduce(f.clock.Now())
	}
}

// beat compares the clocks. A heartbeat cannot come early, but may come late where the client does not keep up.
func (f *follow) beat(at event.Time) {
	now := f.clock.Now()
	offset := now - at
	switch {
	case offset < f.offset-jump:
	case offset <= f.offset+jump:
		f.late = lateness{}
		return
	default:
		if !f.late.stays(now, offset, f.settles) {
			return
		}
		offset = f.late.least
	}
	f.late = lateness{}
	text := fmt.Sprintf("the engine's clock has jumped by %v", time.Duration(f.offset-offset))
	f.offset = offset
	f.sink.Emit(event.Event{Kind: event.KindLog, At: f.clock.Now(), Layer: -1, Text: text})
}

// stays takes in a late heartbeat and reports whether they have been late for too long to be those of a client that is behind.
func (l *lateness) stays(now, offset, settles event.Time) bool {
	if l.beats == 0 {
		l.since, l.least = now, offset
	}
	l.beats++
	l.least = min(l.least, offset)
	return l.beats >= ties && now-l.since >= settles
}

// endAll ends the live requests that the given state did not name.
func (f *follow) endAll(why string, round uint64) {
	f.release()
	for id, p := range f.live {
		if p.named == round && round > 0 {
			continue
		}
		delete(f.live, id)
		f.sink.Emit(event.Event{
			Kind: event.KindRequest, At: f.clock.Now(), Req: id, State: event.StateCancelled, Layer: -1, Data: &event.Outcome{Reason: why},
		})
	}
}
